//! The interface of a device that runs plans: buffers, kernels bound to buffers, and submits of dispatches.

use crate::device::limits::DeviceLimits;
use crate::error::GpuError;
use crate::kernel::Kernel;

/// One run of a bound kernel.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch<'a, B> {
    /// The kernel with its buffers.
    pub bound: &'a B,
    /// Workgroups in x, y and z.
    pub groups: [u32; 3],
    /// The kernel's immediates, in the order of `Step` in `invocation.wgsl`.
    pub step: [u32; 6],
}

/// A device that runs kernels in the order in which they were submitted.
pub trait Executor: Send {
    /// Memory on the device.
    type Buffer: Clone + Send;
    /// A kernel with its buffers.
    type BoundKernel: Send;
    /// A submit in flight, with its readback.
    type Submission: Send;

    /// Limits of the device.
    fn limits(&self) -> DeviceLimits;
    /// Allocates `bytes`, zeroed.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], or the device's error.
    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Self::Buffer, GpuError>;
    /// Writes into a buffer before the next submit. Offset and length are multiples of 4 bytes.
    ///
    /// # Errors
    /// Returns the device's error.
    fn write(&mut self, buffer: &Self::Buffer, offset: u64, bytes: &[u8]) -> Result<(), GpuError>;
    /// Copies the first `bytes` of a buffer into another.
    ///
    /// # Errors
    /// Returns the device's error.
    fn copy(&mut self, from: &Self::Buffer, to: &Self::Buffer, bytes: u64) -> Result<(), GpuError>;
    /// Compiles a kernel and binds buffers in the order of its bindings.
    ///
    /// # Errors
    /// Fails if the driver refuses the kernel.
    fn bind(
        &mut self,
        kernel: &Kernel,
        buffers: &[&Self::Buffer],
    ) -> Result<Self::BoundKernel, GpuError>;
    /// Submits dispatches, each of which sees the writes of those before it, and with `readback` a copy of the first
    /// bytes of a buffer after them.
    ///
    /// # Errors
    /// Returns the device's error.
    fn submit(
        &mut self,
        dispatches: &[Dispatch<'_, Self::BoundKernel>],
        readback: Option<(&Self::Buffer, u64)>,
    ) -> Result<Self::Submission, GpuError>;
    /// Waits for a submit and returns its readback.
    ///
    /// # Errors
    /// Fails if the device fails or does not answer in time.
    fn wait(&mut self, submission: Self::Submission) -> Result<Vec<u8>, GpuError>;

    /// Runs dispatches one after the other and returns the seconds that each took on the device; `None`, with nothing
    /// run, on a device without timestamps.
    ///
    /// # Errors
    /// Returns the device's error.
    fn timed(
        &mut self,
        dispatches: &[Dispatch<'_, Self::BoundKernel>],
    ) -> Result<Option<Vec<f64>>, GpuError>;

    /// Waits until the device is idle; memory that was released before is then free.
    ///
    /// # Errors
    /// Fails if the device fails or does not answer in time.
    fn wait_idle(&mut self) -> Result<(), GpuError> {
        let submission = self.submit(&[], None)?;
        self.wait(submission).map(drop)
    }

    /// Waits until the device is idle and reads the first `bytes` of a buffer.
    ///
    /// # Errors
    /// Fails if the device fails or does not answer in time.
    fn read(&mut self, buffer: &Self::Buffer, bytes: u64) -> Result<Vec<u8>, GpuError> {
        let submission = self.submit(&[], Some((buffer, bytes)))?;
        self.wait(submission)
    }
}

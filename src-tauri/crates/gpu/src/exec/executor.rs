//! What runs a plan: buffers, kernels bound to buffers, and submits of dispatches, all plain data to the caller.

use crate::error::GpuError;
use crate::kernel::Kernel;

/// One run of a bound kernel.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch<'a, B> {
    /// The kernel with its buffers.
    pub bound: &'a B,
    /// Workgroups.
    pub groups: [u32; 3],
    /// What differs from run to run, as the kernels' `Step` has it.
    pub step: [u32; 6],
}

/// What a device allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Most bytes that a kernel sees of a buffer.
    pub binding: u64,
    /// Bytes that a workgroup shares.
    pub shared: u32,
    /// Invocations of a workgroup.
    pub invocations: u32,
    /// The cooperative matrices that it has, of those that the kernels use.
    pub matrices: Option<CoopMatrices>,
}

/// Square matrices of half precision with sums in single precision, each of which a subgroup holds together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoopMatrices {
    /// Rows and columns: 8 or 16.
    pub edge: usize,
    /// Invocations of the largest subgroup.
    pub subgroup: usize,
    /// They can be loaded from memory that holds pairs of halves; Metal's only from single ones.
    pub paired: bool,
}

/// A device that runs kernels in the order in which they were submitted.
pub trait Executor: Send {
    /// Memory on the device.
    type Buffer: Clone + Send;
    /// A kernel with its buffers.
    type BoundKernel: Send;
    /// What a submit is to read.
    type Submission: Send;

    /// What the device allows.
    fn limits(&self) -> DeviceLimits;
    /// Memory of so many bytes, zeroed.
    ///
    /// # Errors
    /// When there is none left.
    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Self::Buffer, GpuError>;
    /// Writes into a buffer before whatever is submitted next. Offset and length are whole words.
    ///
    /// # Errors
    /// When the device has failed.
    fn write(&mut self, buffer: &Self::Buffer, offset: u64, bytes: &[u8]) -> Result<(), GpuError>;
    /// Copies the first `bytes` of a buffer into another.
    ///
    /// # Errors
    /// When the device has failed.
    fn copy(&mut self, from: &Self::Buffer, to: &Self::Buffer, bytes: u64) -> Result<(), GpuError>;
    /// A kernel with the buffers of its bindings, in their order.
    ///
    /// # Errors
    /// When the driver refuses the kernel.
    fn bind(
        &mut self,
        kernel: &Kernel,
        buffers: &[&Self::Buffer],
    ) -> Result<Self::BoundKernel, GpuError>;
    /// Hands dispatches to the device, each of which sees what those before it have written, and asks for the first
    /// `bytes` of a buffer as they are then.
    ///
    /// # Errors
    /// When the device has failed.
    fn submit(
        &mut self,
        dispatches: &[Dispatch<'_, Self::BoundKernel>],
        reading: Option<(&Self::Buffer, u64)>,
    ) -> Result<Self::Submission, GpuError>;
    /// Waits for what a submit asked for.
    ///
    /// # Errors
    /// When the device fails or does not answer.
    fn take(&mut self, ticket: Self::Submission) -> Result<Vec<u8>, GpuError>;

    /// Runs dispatches one after the other and gives the seconds that each took on the device; `None`, with nothing
    /// run, where it does not tell the time.
    ///
    /// # Errors
    /// When the device fails.
    fn timed(
        &mut self,
        dispatches: &[Dispatch<'_, Self::BoundKernel>],
    ) -> Result<Option<Vec<f64>>, GpuError>;

    /// Waits for everything submitted; what was given back before is then free.
    ///
    /// # Errors
    /// When the device fails or does not answer.
    fn settle(&mut self) -> Result<(), GpuError> {
        let ticket = self.submit(&[], None)?;
        self.take(ticket).map(drop)
    }

    /// Waits for everything submitted and reads the first `bytes` of a buffer.
    ///
    /// # Errors
    /// When the device fails or does not answer.
    fn read(&mut self, buffer: &Self::Buffer, bytes: u64) -> Result<Vec<u8>, GpuError> {
        let ticket = self.submit(&[], Some((buffer, bytes)))?;
        self.take(ticket)
    }
}

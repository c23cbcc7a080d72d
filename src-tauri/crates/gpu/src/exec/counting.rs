//! An executor without a device for tests: it expands the kernels' sources and counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::device::limits::{CoopMatrices, DeviceLimits};
use crate::error::GpuError;
use crate::exec::executor::{Dispatch, Executor};
use crate::kernel::Kernel;

/// Counts the calls of its methods.
#[derive(Default)]
pub(crate) struct CountingExecutor {
    /// Kernel files of each submit.
    pub(crate) submits: Vec<Vec<&'static str>>,
    /// Every bound kernel.
    pub(crate) kernels: Vec<Kernel>,
    /// Number of waits.
    pub(crate) waits: Arc<AtomicUsize>,
    /// Size of all buffers, in bytes.
    pub(crate) bytes: u64,
    /// True if its limits are those of a card.
    pub(crate) discrete: bool,
    /// The cooperative matrices of its limits.
    pub(crate) matrices: Option<CoopMatrices>,
    /// Seconds of every dispatch; `None` without timestamps.
    pub(crate) seconds: Option<f64>,
}

impl Executor for CountingExecutor {
    type Buffer = u64;
    type BoundKernel = &'static str;
    type Submission = u64;

    fn limits(&self) -> DeviceLimits {
        DeviceLimits {
            binding: 2 << 30,
            shared: 16 << 10,
            invocations: if self.discrete { 1024 } else { 256 },
            discrete: self.discrete,
            matrices: self.matrices,
        }
    }

    fn buffer(&mut self, _: &str, bytes: u64) -> Result<u64, GpuError> {
        self.bytes += bytes;
        Ok(bytes)
    }

    fn write(&mut self, buffer: &u64, offset: u64, bytes: &[u8]) -> Result<(), GpuError> {
        assert!(offset + bytes.len() as u64 <= buffer.next_multiple_of(16));
        Ok(())
    }

    fn copy(&mut self, from: &u64, to: &u64, bytes: u64) -> Result<(), GpuError> {
        assert!(bytes <= *from && bytes <= *to);
        Ok(())
    }

    fn bind(&mut self, kernel: &Kernel, buffers: &[&u64]) -> Result<&'static str, GpuError> {
        let text = kernel.source()?;
        let bindings = text.matches("@binding(").count();
        assert_eq!(
            bindings,
            buffers.len(),
            "{} {:?}",
            kernel.file,
            kernel.flags
        );
        self.kernels.push(kernel.clone());
        Ok(kernel.file)
    }

    fn submit(
        &mut self,
        dispatches: &[Dispatch<'_, &'static str>],
        readback: Option<(&u64, u64)>,
    ) -> Result<u64, GpuError> {
        let most = dispatches.iter().flat_map(|it| it.groups).max();
        assert!(most.is_none_or(|groups| groups <= 65_535));
        self.submits
            .push(dispatches.iter().map(|it| *it.bound).collect());
        Ok(readback.map_or(0, |(_, bytes)| bytes))
    }

    fn timed(
        &mut self,
        dispatches: &[Dispatch<'_, &'static str>],
    ) -> Result<Option<Vec<f64>>, GpuError> {
        Ok(self.seconds.map(|each| vec![each; dispatches.len()]))
    }

    fn wait(&mut self, submission: u64) -> Result<Vec<u8>, GpuError> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        #[expect(clippy::cast_possible_truncation, reason = "it is in memory")]
        Ok(vec![0; submission as usize])
    }
}

//! The time of each operation of a token, and the device's memory bandwidth.

use super::DeviceModel;
use crate::error::GpuError;
use crate::exec::executor::{Dispatch, Executor};
use crate::kernel::Kernel;
use crate::plan::pass::Grid;

/// The cost in a token of all operations of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCost {
    /// Name of the operation.
    pub what: &'static str,
    /// Number of dispatches.
    pub count: usize,
    /// Weights and KV cache that they read in all, in bytes.
    pub bytes: u64,
    /// Seconds that they take in all, each run by itself; `None` on a device without timestamps.
    pub seconds: Option<f64>,
}

/// Size of the buffer that is read to measure the bandwidth, in bytes: more than the caches of a GPU hold.
const BYTES: u64 = 256 << 20;
/// Workgroups of the bandwidth kernel, and invocations of each.
const READERS: usize = 2048;
const THREADS: usize = 128;
/// Measurements; the best counts.
const REPEATS: usize = 5;

impl<E: Executor> DeviceModel<E> {
    /// The cost of the next token by kind of operation, in the order of a pass. The KV cache is unchanged.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn profile(&mut self) -> Result<Vec<KernelCost>, GpuError> {
        self.reserve(self.sequence.len + 1)?;
        let plans = self
            .sequence
            .plans
            .take()
            .map_or_else(|| self.build_plans(), Ok)?;
        let params = self.token_params();
        let (mut dispatches, mut ops) = (Vec::new(), Vec::new());
        for plan in plans.decode.token(!self.sampler_embeds()) {
            params.record(plan, &mut dispatches);
            ops.extend(plan.iter().filter(|op| params.includes(op)));
        }
        let times = self.exec.timed(&dispatches)?;
        let attended = self
            .sequence
            .cache
            .bytes_read(&self.shape, self.sequence.len + 1);
        let mut kinds: Vec<KernelCost> = Vec::new();
        for (index, op) in ops.iter().enumerate() {
            let seconds = times.as_ref().map(|times| times[index]);
            let bytes = match op.grid {
                Grid::Chunks { .. } => attended,
                _ => op.bytes,
            };
            match kinds.iter_mut().find(|kind| kind.what == op.what) {
                Some(kind) => {
                    kind.count += 1;
                    kind.bytes += bytes;
                    kind.seconds = kind.seconds.zip(seconds).map(|(a, b)| a + b);
                }
                None => kinds.push(KernelCost {
                    what: op.what,
                    count: 1,
                    bytes,
                    seconds,
                }),
            }
        }
        self.sequence.plans = Some(plans);
        Ok(kinds)
    }

    /// Read bandwidth of the device's memory, in bytes per second; `None` on a device without room for the test
    /// buffer or without timestamps.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn read_bandwidth(&mut self) -> Result<Option<f64>, GpuError> {
        match read_buffer(&mut self.exec) {
            Err(GpuError::OutOfMemory(_)) => Ok(None),
            found => found,
        }
    }
}

/// Reads a large buffer once.
fn read_buffer<E: Executor>(exec: &mut E) -> Result<Option<f64>, GpuError> {
    let round = (16 * READERS * THREADS) as u64;
    let bytes = BYTES.min(exec.limits().binding) / round * round;
    let source = exec.buffer("stream", bytes)?;
    let sums = exec.buffer("sums", round)?;
    let kernel = Kernel::new("read_bandwidth")
        .number("THREADS", THREADS)
        .number("READERS", READERS)
        .number("ROUNDS", usize::try_from(bytes / round).unwrap_or(0));
    let bound = exec.bind(&kernel, &[&source, &sums])?;
    // The first run is a warm-up.
    let dispatches = [(); REPEATS + 1].map(|()| Dispatch {
        bound: &bound,
        groups: [READERS as u32, 1, 1],
        step: [0; 6],
    });
    let times = exec.timed(&dispatches)?;
    let best = times.map(|times| times[1..].iter().copied().fold(f64::INFINITY, f64::min));
    Ok(best
        .filter(|&best| best > 0.0)
        .map(|best| bytes as f64 / best))
}

//! What a token costs, kernel by kernel, and how fast the device reads memory at all.

use super::DeviceModel;
use crate::error::GpuError;
use crate::exec::executor::{Dispatch, Executor};
use crate::kernel::Kernel;
use crate::plan::buffers::MOST_CHUNKS;
use crate::plan::pass::{Grid, PassParams};

/// Operations of a token that do the same.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCost {
    /// What they do.
    pub what: &'static str,
    /// How many there are.
    pub count: usize,
    /// Bytes of weights and cache that they read together.
    pub bytes: u64,
    /// Seconds that they take together, each run by itself; `None` where the device does not tell the time.
    pub seconds: Option<f64>,
}

/// Bytes that are read to measure the memory: more than any cache on a chip holds.
const BYTES: u64 = 256 << 20;
/// Workgroups that read, and invocations of each.
const READERS: usize = 2048;
const THREADS: usize = 128;
/// Measurements, of which the best counts.
const REPEATS: usize = 5;

impl<E: Executor> DeviceModel<E> {
    /// What a token behind those in the cache takes, by kind, in the order of a pass. The cache is as before.
    ///
    /// # Errors
    /// When the device fails.
    pub fn profile(&mut self) -> Result<Vec<KernelCost>, GpuError> {
        self.reserve(self.len + 1)?;
        let plans = self.plans.take().map_or_else(|| self.plan(), Ok)?;
        let pass = PassParams::new(self.len, 1, MOST_CHUNKS);
        let (mut dispatches, mut ops) = (Vec::new(), Vec::new());
        for plan in plans.one.token(!self.embeds_choice()) {
            pass.record(plan, &mut dispatches);
            ops.extend(plan.iter().filter(|op| pass.has(op)));
        }
        let times = self.exec.timed(&dispatches)?;
        let attended = self.cache.read_by(&self.shape, self.len + 1);
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
        self.plans = Some(plans);
        Ok(kinds)
    }

    /// Bytes that the device reads from its memory in a second; `None` where it has no room to try, or does not tell
    /// the time.
    ///
    /// # Errors
    /// When the device fails.
    pub fn read_bandwidth(&mut self) -> Result<Option<f64>, GpuError> {
        match stream(&mut self.exec) {
            Err(GpuError::OutOfMemory(_)) => Ok(None),
            found => found,
        }
    }
}

/// Reads a large buffer through and through.
fn stream<E: Executor>(exec: &mut E) -> Result<Option<f64>, GpuError> {
    let round = (16 * READERS * THREADS) as u64;
    let bytes = BYTES.min(exec.limits().binding) / round * round;
    let source = exec.buffer("stream", bytes)?;
    let sums = exec.buffer("sums", round)?;
    let kernel = Kernel::new("stream")
        .number("THREADS", THREADS)
        .number("READERS", READERS)
        .number("ROUNDS", usize::try_from(bytes / round).unwrap_or(0));
    let bound = exec.bind(&kernel, &[&source, &sums])?;
    // The first run brings memory and kernel into place.
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

//! Integer multiplications per second: the compute bound of prefill.

use std::hint::black_box;
use std::time::Instant;

use crate::dispatch::routines_for;
use crate::isa::peak::{PRODUCTS, TOKENS, VECTORS};
use crate::level::CpuLevel;
use crate::pool::Pool;

/// Passes of a task.
const PASSES: usize = 2_000;
const TASKS: usize = 64;
/// Products of bytes per second that `threads` threads multiply and add at `level`: the best of a few runs of the dot
/// product on operands in registers and the L1 cache.
pub fn integer_rate(threads: usize, level: CpuLevel) -> f64 {
    let pool = Pool::new(threads);
    let routines = routines_for(level.checked().unwrap_or(CpuLevel::Scalar));
    // A scalar pass takes about a hundred times as long.
    let passes = if level == CpuLevel::Scalar {
        PASSES / 50
    } else {
        PASSES
    };
    let run = || {
        let start = Instant::now();
        pool.parallel_for(TASKS, |_, _| {
            // SAFETY: `checked` has found the level on this machine, or it is the scalar one.
            black_box(unsafe { (routines.peak_dots)(black_box(passes)) });
        });
        start.elapsed().as_secs_f64()
    };
    let best = (0..5).map(|_| run()).fold(f64::INFINITY, f64::min);
    (TASKS * passes * VECTORS * TOKENS * PRODUCTS) as f64 / best
}

//! How fast this machine multiplies small integers: the roof over reading a prompt.

use std::hint::black_box;
use std::time::Instant;

use crate::dispatch::routines_for;
use crate::isa::peak::{PRODUCTS, TOKENS, VECTORS};
use crate::level::CpuLevel;
use crate::pool::Pool;

/// Passes of a task.
const PASSES: usize = 2_000;
const TASKS: usize = 64;
/// Products of bytes that `threads` threads together add up per second at `level`: the best of a few runs of the
/// instruction that the products live on, on operands in registers and the L1 cache.
pub fn integer_rate(threads: usize, level: CpuLevel) -> f64 {
    let pool = Pool::new(threads);
    let routines = routines_for(level.checked().unwrap_or(CpuLevel::Scalar));
    // A scalar pass takes some hundred times as long.
    let passes = if level == CpuLevel::Scalar {
        PASSES / 50
    } else {
        PASSES
    };
    let run = || {
        let start = Instant::now();
        pool.tasks(TASKS, |_, _| {
            // SAFETY: the routines are those of a level that this machine has.
            black_box(unsafe { (routines.peak_dots)(black_box(passes)) });
        });
        start.elapsed().as_secs_f64()
    };
    let best = (0..5).map(|_| run()).fold(f64::INFINITY, f64::min);
    (TASKS * passes * VECTORS * TOKENS * PRODUCTS) as f64 / best
}

//! How fast this machine multiplies small integers: the roof over reading a prompt.

use std::hint::black_box;
use std::time::Instant;

use crate::isa::{Isa, LANES};
use crate::level::CpuLevel;
use crate::pool::Pool;
use crate::routines::Routines;

/// Vectors of weights that a pass goes over: they stay in the L1 cache.
const VECTORS: usize = 64;
/// Activations that meet each of them: as many sums as hide an instruction's latency.
const TOKENS: usize = 12;
/// Passes of a piece.
const PASSES: usize = 2_000;
const PIECES: usize = 64;
/// Products in a vector.
const PRODUCTS: usize = 4 * LANES;

/// Products of bytes that `threads` threads together add up per second at `level`: the best of a few runs of the
/// instruction that the products live on, on operands in registers and the L1 cache.
pub fn integer_rate(threads: usize, level: CpuLevel) -> f64 {
    let pool = Pool::new(threads);
    let routines = Routines::of(level.checked().unwrap_or(CpuLevel::Scalar));
    // A scalar pass takes some hundred times as long.
    let passes = if level == CpuLevel::Scalar {
        PASSES / 50
    } else {
        PASSES
    };
    let run = || {
        let start = Instant::now();
        pool.pieces(PIECES, |_, _| {
            // SAFETY: the routines are those of a level that this machine has.
            black_box(unsafe { (routines.dots)(black_box(passes)) });
        });
        start.elapsed().as_secs_f64()
    };
    let best = (0..5).map(|_| run()).fold(f64::INFINITY, f64::min);
    (PIECES * passes * VECTORS * TOKENS * PRODUCTS) as f64 / best
}

/// Multiplies weights with the activations of a few tokens, over and over.
///
/// # Safety
/// The machine has the level.
#[inline(always)]
pub(crate) unsafe fn dots<S: Isa>(passes: usize) -> i32 {
    let mut weights = [3_u8; VECTORS * PRODUCTS];
    let activations: [i8; 4 * TOKENS] = std::array::from_fn(|i| i as i8 - 24);
    let mut total = 0;
    for _ in 0..passes {
        // Not the same weights as in the pass before, for all that the compiler knows.
        let weights = black_box(&mut weights);
        // SAFETY: the level is the caller's; all pointers are to whole vectors and quads in the arrays.
        unsafe {
            let mut sums = [S::zero_i(); TOKENS];
            for at in 0..VECTORS {
                let w = S::load_w(weights.as_ptr().add(at * PRODUCTS));
                for (token, sum) in sums.iter_mut().enumerate() {
                    let x = S::splat_quad(activations.as_ptr().add(4 * token));
                    *sum = S::dot(*sum, w, x);
                }
            }
            for sum in sums {
                total ^= S::sum_i(sum);
            }
        }
    }
    total
}

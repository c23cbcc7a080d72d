//! The loop of the integer benchmark.

use std::hint::black_box;

use super::{Isa, LANES};

/// Vectors of weights in a pass; they stay in the L1 cache.
pub(crate) const VECTORS: usize = 64;
/// Tokens, each with a sum: enough to hide the latency of the dot product.
pub(crate) const TOKENS: usize = 12;
/// Products in a vector.
pub(crate) const PRODUCTS: usize = 4 * LANES;

/// Multiplies weights with the activations of a few tokens, `passes` times.
///
/// # Safety
/// The machine has the level.
#[inline(always)]
pub(crate) unsafe fn peak_dots<S: Isa>(passes: usize) -> i32 {
    let mut weights = [3_u8; VECTORS * PRODUCTS];
    let activations: [i8; 4 * TOKENS] = std::array::from_fn(|i| i as i8 - 24);
    let mut total = 0;
    for _ in 0..passes {
        // Keeps the compiler from hoisting the loads out of the loop.
        let weights = black_box(&mut weights);
        // SAFETY: the machine has the level by this function's contract; all pointers are to whole vectors and quads of
        // the arrays.
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

//! The online softmax.

use super::kv::KV_TILE;
use crate::isa::{Isa, LANES};

/// Turns a row's scores of whole tiles of positions into weights relative to the running maximum, and rescales the sums
/// where the maximum has grown; only the first `seen` positions count. `state` is the row's maximum, denominator and sums.
///
/// # Safety
/// The machine has `I`; `scores` and the sums are whole vectors.
#[inline(always)]
pub(super) unsafe fn update_softmax<I: Isa>(
    scores: &mut [f32],
    state: (&mut f32, &mut f32, &mut [f32]),
    seen: usize,
) {
    let (row_max, row_sum, sums) = state;
    debug_assert!(scores.len().is_multiple_of(KV_TILE) && sums.len().is_multiple_of(LANES));
    // SAFETY: steps of whole vectors stay inside the row's scores and sums, whose lengths are multiples of 16.
    unsafe {
        if seen < scores.len() {
            scores[seen..].fill(f32::NEG_INFINITY);
            if seen == 0 {
                scores.fill(0.0);
                return;
            }
        }
        let p = scores.as_mut_ptr();
        let mut largest = I::splat(f32::NEG_INFINITY);
        for t in (0..scores.len()).step_by(KV_TILE) {
            largest = I::max(largest, I::load(p.add(t)));
        }
        let now = I::largest(largest).max(*row_max);
        if now > *row_max {
            let fade = (*row_max - now).exp();
            *row_max = now;
            *row_sum *= fade;
            for d in (0..sums.len()).step_by(LANES) {
                let p = sums.as_mut_ptr().add(d);
                I::store(p, I::mul(I::load(p), I::splat(fade)));
            }
        }
        let mut weights = I::splat(0.0);
        for t in (0..scores.len()).step_by(KV_TILE) {
            let weight = I::exp(I::sub(I::load(p.add(t)), I::splat(now)));
            I::store(p.add(t), weight);
            weights = I::add(weights, weight);
        }
        if seen < scores.len() {
            // The vector exponential has no exact zero.
            scores[seen..].fill(0.0);
        }
        *row_sum += I::sum(weights);
    }
}

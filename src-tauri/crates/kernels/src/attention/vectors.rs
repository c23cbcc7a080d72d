//! One task of attention on vectors.

use half::f16;

use super::floats::{accumulate_values, load_keys, load_values, scores};
use super::int16;
use super::kv::{KV_SCALE_GROUP, KV_TILE, KvTile};
use super::scratch::AttentionScratch;
use super::softmax::update_softmax;
use super::task::{Attention, AttentionTask};
use crate::blocking::{BATCH_INVARIANT_MAX, KV_BLOCK};
use crate::isa::Isa;

/// Runs a task; leaves sums, maxima and denominators in the scratch.
///
/// # Safety
/// The machine has `I`; the lengths in `a` agree, and `task` lies inside it.
#[inline(always)]
pub(crate) unsafe fn attend_task<I: Isa>(
    a: &Attention,
    task: &AttentionTask,
    scratch: &mut AttentionScratch,
) {
    let (dim, value_dim) = (a.kv.head_dim(), a.kv.value_dim());
    let shared = a.heads / a.kv.kv_heads();
    let rows = task.queries.len() * shared;
    scratch.start(rows, dim, value_dim);
    scratch.load_queries(a, task);
    scratch.int16.start(rows, dim, value_dim);
    scratch.int16.quantise_queries(&scratch.q, dim);
    for first in task.positions.clone().step_by(KV_BLOCK) {
        let positions = (task.positions.end - first).min(KV_BLOCK);
        let tiles = positions.div_ceil(KV_TILE);
        let at = first / KV_TILE..first / KV_TILE + tiles;
        let (keys, values) = (
            a.kv.keys(task.kv_head, at.clone()),
            a.kv.values(task.kv_head, at),
        );
        // Many queries amortise the conversion of a KV block to 16-bit integers; the heads of one query read f16 as
        // stored. Integers are made from floats, so the last rows of a block need floats, too, even if they are fewer
        // than four.
        let in_int16 = I::WORDS && !a.exact && a.m > BATCH_INVARIANT_MAX && int16::supports(dim);
        let as_stored = match (keys, values) {
            (KvTile::F16(k), KvTile::F16(v)) if rows <= 4 && !in_int16 => {
                Some((k.as_ptr(), v.as_ptr()))
            }
            _ => None,
        };
        // SAFETY: `start` has sized all buffers for whole KV blocks and `rows` rows; the cache has tiles for all
        // positions of the task; the machine has `I` by the caller's contract.
        unsafe {
            if as_stored.is_none() {
                load_keys::<I>(keys, dim, tiles, scratch.keys.as_mut_ptr());
                let groups = dim.div_ceil(KV_SCALE_GROUP);
                load_values::<I>(
                    values,
                    value_dim,
                    groups,
                    tiles,
                    scratch.values.as_mut_ptr(),
                );
            }
            if in_int16 {
                int16::quantise_kv_block::<I>(scratch, dim, value_dim, positions);
            }
            let keys: *const f32 = scratch.keys.as_ptr();
            let mut row = 0;
            while row < rows {
                row += if in_int16 && rows - row >= 4 {
                    int16::scores::<I, 4>(scratch, row, dim, tiles);
                    4
                } else if rows - row >= 4 {
                    match as_stored {
                        Some((keys, _)) => scores::<I, f16, 4>(scratch, keys, row, dim, tiles),
                        None => scores::<I, f32, 4>(scratch, keys, row, dim, tiles),
                    }
                    4
                } else {
                    match as_stored {
                        Some((keys, _)) => scores::<I, f16, 1>(scratch, keys, row, dim, tiles),
                        None => scores::<I, f32, 1>(scratch, keys, row, dim, tiles),
                    }
                    1
                };
            }
            for row in 0..rows {
                let seen = a.past + task.queries.start + row / shared + 1;
                let seen = seen.saturating_sub(first).min(KV_BLOCK);
                let scores = &mut scratch.scores[row * KV_BLOCK..][..tiles * KV_TILE];
                let sums = &mut scratch.sums[row * value_dim..][..value_dim];
                let state = (&mut scratch.row_max[row], &mut scratch.row_sum[row], sums);
                update_softmax::<I>(scores, state, seen);
            }
            let values: *const f32 = scratch.values.as_ptr();
            let positions = tiles * KV_TILE;
            let mut row = 0;
            while row < rows {
                row += if in_int16 && rows - row >= 4 {
                    int16::quantise_weights::<I, 4>(scratch, row, tiles);
                    int16::accumulate_values::<I, 4>(scratch, row, value_dim, tiles);
                    4
                } else if rows - row >= 4 {
                    match as_stored {
                        Some((_, v)) => {
                            accumulate_values::<I, f16, 4>(scratch, v, row, value_dim, positions)
                        }
                        None => accumulate_values::<I, f32, 4>(
                            scratch, values, row, value_dim, positions,
                        ),
                    }
                    4
                } else {
                    match as_stored {
                        Some((_, v)) => {
                            accumulate_values::<I, f16, 1>(scratch, v, row, value_dim, positions)
                        }
                        None => accumulate_values::<I, f32, 1>(
                            scratch, values, row, value_dim, positions,
                        ),
                    }
                    1
                };
            }
        }
    }
}

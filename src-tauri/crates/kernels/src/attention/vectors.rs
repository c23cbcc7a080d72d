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

/// Passes over a task's positions; leaves sums, maxima and totals on the scratch.
///
/// # Safety
/// The machine has `I`; `a` is consistent and `task` lies inside it.
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
        let there = (task.positions.end - first).min(KV_BLOCK);
        let tiles = there.div_ceil(KV_TILE);
        let at = first / KV_TILE..first / KV_TILE + tiles;
        let (keys, values) = (
            a.kv.keys(task.kv_head, at.clone()),
            a.kv.values(task.kv_head, at),
        );
        // Many queries are worth a KV block in integers; one query's heads meet it as it is. The integers are made of the
        // floats, so that the last query of many, alone in its block, needs these too.
        let in_words = I::WORDS && !a.exact && a.m > BATCH_INVARIANT_MAX && int16::supports(dim);
        let as_it_is = match (keys, values) {
            (KvTile::F16(k), KvTile::F16(v)) if rows <= 4 && !in_words => {
                Some((k.as_ptr(), v.as_ptr()))
            }
            _ => None,
        };
        // SAFETY: buffers were sized by `start` for whole KV blocks; tiles exist for all positions.
        unsafe {
            if as_it_is.is_none() {
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
            if in_words {
                int16::quantise_kv_block::<I>(scratch, dim, value_dim, there);
            }
            let keys: *const f32 = scratch.keys.as_ptr();
            let mut row = 0;
            while row < rows {
                row += if in_words && rows - row >= 4 {
                    int16::scores::<I, 4>(scratch, row, dim, tiles);
                    4
                } else if rows - row >= 4 {
                    match as_it_is {
                        Some((keys, _)) => scores::<I, f16, 4>(scratch, keys, row, dim, tiles),
                        None => scores::<I, f32, 4>(scratch, keys, row, dim, tiles),
                    }
                    4
                } else {
                    match as_it_is {
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
                row += if in_words && rows - row >= 4 {
                    int16::quantise_weights::<I, 4>(scratch, row, tiles);
                    int16::accumulate_values::<I, 4>(scratch, row, value_dim, tiles);
                    4
                } else if rows - row >= 4 {
                    match as_it_is {
                        Some((_, v)) => {
                            accumulate_values::<I, f16, 4>(scratch, v, row, value_dim, positions)
                        }
                        None => accumulate_values::<I, f32, 4>(
                            scratch, values, row, value_dim, positions,
                        ),
                    }
                    4
                } else {
                    match as_it_is {
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

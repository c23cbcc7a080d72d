//! Attention of many queries on AMX: keys, values and weights in bf16, sums in f32.
//!
//! bf16 is the precision that the models were trained in.

use super::floats::{KvFloat, load_keys, load_values};
use super::kv::{KV_SCALE_GROUP, KV_TILE, KvTile};
use super::scratch::AttentionScratch;
use super::softmax::update_softmax;
use super::task::{Attention, AttentionTask};
use super::vectors::attend_task;
use crate::blocking::{BATCH_INVARIANT_MAX, KV_BLOCK_AMX as KV_BLOCK, KV_SEGMENT};
use crate::isa::avx512::Avx512;
use crate::isa::{LANES, amx};
use crate::product::activations::Granularity;
use crate::product::amx::pack::pack_activations;

const _: () = assert!(KV_SEGMENT.is_multiple_of(KV_BLOCK));
/// Rows of a micro-tile.
const ROWS: usize = amx::PAIR;

/// Runs a task like [`attend_task`], on AMX if queries and dimensions allow it.
///
/// # Safety
/// AMX is permitted; the lengths in `a` agree, and `task` lies inside it.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
pub(crate) unsafe fn attend_task_amx(
    a: &Attention,
    task: &AttentionTask,
    scratch: &mut AttentionScratch,
) {
    let (dim, value_dim) = (a.kv.head_dim(), a.kv.value_dim());
    let fits = |dim: usize| dim.is_multiple_of(amx::COLUMNS);
    if a.exact || a.m <= BATCH_INVARIANT_MAX || !fits(dim) || !fits(value_dim) {
        // SAFETY: AMX implies AVX-512; the rest of the contract is the same.
        return unsafe { attend_task::<Avx512>(a, task, scratch) };
    }
    let shared = a.heads / a.kv.kv_heads();
    let rows = task.queries.len() * shared;
    scratch.start(rows, dim, value_dim);
    scratch.keys.resize(KV_BLOCK * dim, 0.0);
    scratch.values.resize(KV_BLOCK * value_dim, 0.0);
    scratch.load_queries(a, task);
    scratch.amx.q.resize(rows.next_multiple_of(ROWS) * dim);
    scratch.amx.keys.resize(KV_BLOCK * dim);
    scratch.amx.values.resize(KV_BLOCK * value_dim);
    scratch.amx.scores.resize(ROWS * KV_BLOCK);
    scratch.amx.weights.resize(ROWS * KV_BLOCK);
    // SAFETY: the buffers were sized above for whole multiples of `ROWS` and whole KV blocks; the cache has tiles for all
    // positions of the task; AMX is permitted by the caller's contract.
    unsafe {
        let q = &mut scratch.amx.q[..rows.next_multiple_of(amx::PAIR) * dim];
        pack_activations(Granularity::Group, &scratch.q, dim, 0..dim, q);
        let _tiles = amx::TileRegisters::new();
        let mut first = task.positions.start;
        while first < task.positions.end {
            // KV blocks are aligned to their size, so that each lies within one segment of the cache.
            let next = (first / KV_BLOCK + 1) * KV_BLOCK;
            let tiles = (task.positions.end.min(next) - first).div_ceil(KV_TILE);
            let at = first / KV_TILE..first / KV_TILE + tiles;
            if tiles * KV_TILE < KV_BLOCK {
                // 0 · NaN is NaN: values of a previous KV block must not remain where weights are zero.
                scratch.amx.values.fill(0);
            }
            load_kv_block(
                a.kv.keys(task.kv_head, at.clone()),
                a.kv.values(task.kv_head, at),
                [dim, value_dim, tiles],
                scratch,
            );
            let AttentionScratch {
                amx,
                sums,
                row_max,
                row_sum,
                ..
            } = scratch;
            for start in (0..rows).step_by(ROWS) {
                let queries = amx.q.as_ptr().add(start * dim);
                amx::scores(
                    queries,
                    amx.keys.as_ptr(),
                    dim,
                    KV_BLOCK,
                    amx.scores.as_mut_ptr(),
                );
                for row in start..(start + ROWS).min(rows) {
                    let seen = a.past + task.queries.start + row / shared + 1;
                    let seen = seen.saturating_sub(first).min(tiles * KV_TILE);
                    let scores = &mut amx.scores[(row - start) * KV_BLOCK..][..KV_BLOCK];
                    let (scores, none) = scores.split_at_mut(tiles * KV_TILE);
                    let sums = &mut sums[row * value_dim..][..value_dim];
                    update_softmax::<Avx512>(
                        scores,
                        (&mut row_max[row], &mut row_sum[row], sums),
                        seen,
                    );
                    none.fill(0.0);
                }
                let weights = &mut amx.weights;
                pack_activations(
                    Granularity::Group,
                    &amx.scores,
                    KV_BLOCK,
                    0..KV_BLOCK,
                    weights,
                );
                let sums = sums.as_mut_ptr().add(start * value_dim);
                amx::accumulate_values(
                    weights.as_ptr(),
                    amx.values.as_ptr(),
                    KV_BLOCK,
                    value_dim,
                    sums,
                );
            }
            first = next;
        }
    }
}

/// Packs the keys and values of a KV block as tiles.
///
/// # Safety
/// Same as [`attend_task_amx`]; `dims` are the components of keys and of values, and the number of tiles of the cache.
#[inline(always)]
unsafe fn load_kv_block(
    keys: KvTile,
    values: KvTile,
    dims: [usize; 3],
    scratch: &mut AttentionScratch,
) {
    let [dim, value_dim, tiles] = dims;
    // SAFETY: the scratch was sized for these dimensions and whole KV blocks, and the tiles are as long as `dims` says.
    unsafe {
        match (keys, values) {
            (KvTile::F16(k), KvTile::F16(v)) => {
                tile_kv_block(k.as_ptr(), v.as_ptr(), dims, scratch)
            }
            _ => {
                load_keys::<Avx512>(keys, dim, tiles, scratch.keys.as_mut_ptr());
                let (groups, to) = (dim.div_ceil(KV_SCALE_GROUP), scratch.values.as_mut_ptr());
                load_values::<Avx512>(values, value_dim, groups, tiles, to);
                let (k, v): (*const f32, *const f32) = (scratch.keys.as_ptr(), to);
                tile_kv_block(k, v, dims, scratch);
            }
        }
    }
}

/// Packs keys `[tile][dim][16]` and values `[position][value_dim]` as tiles.
///
/// # Safety
/// Same as [`load_kv_block`]; `keys` and `values` have these lengths.
#[inline(always)]
unsafe fn tile_kv_block<K: KvFloat>(
    keys: *const K,
    values: *const K,
    dims: [usize; 3],
    scratch: &mut AttentionScratch,
) {
    let [dim, value_dim, tiles] = dims;
    // SAFETY: reads stay inside `tiles` tiles of keys and values, writes inside the tiles of one KV block, for which the
    // scratch was sized; AVX-512 with bf16 comes with AMX.
    unsafe {
        for t in 0..tiles {
            for d in (0..dim).step_by(2) {
                let key = |d: usize| K::load::<Avx512>(keys.add((t * dim + d) * LANES));
                let pair = t / 2 * (dim / amx::COLUMNS) + d / amx::COLUMNS;
                let tile = pair * 2 + t % 2;
                let row = d % amx::COLUMNS / 2;
                let to = scratch
                    .amx
                    .keys
                    .as_mut_ptr()
                    .add((tile * 16 + row) * amx::COLUMNS);
                amx::put_pair(to, key(d), key(d + 1));
            }
        }
        for p in (0..tiles * KV_TILE).step_by(2) {
            for d in (0..value_dim).step_by(LANES) {
                let value = |p: usize| K::load::<Avx512>(values.add(p * value_dim + d));
                let pair = d / amx::COLUMNS * (KV_BLOCK / amx::COLUMNS) + p / amx::COLUMNS;
                let tile = pair * 2 + d / LANES % 2;
                let row = p % amx::COLUMNS / 2;
                let to = scratch
                    .amx
                    .values
                    .as_mut_ptr()
                    .add((tile * 16 + row) * amx::COLUMNS);
                amx::put_pair(to, value(p), value(p + 1));
            }
        }
    }
}

//! Causal attention with an online softmax, blocked over queries and positions as FlashAttention is.
//!
//! A task is one key head, a query block and a KV split. It passes over the split in KV blocks: the keys and values of a
//! block are converted to floats once, and then meet every query of the block in every query head that shares the key head
//! (grouped-query attention). If a context has several splits (Flash-Decoding), each leaves its sums, maximum and
//! denominator as a partial result, and these are merged.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
mod floats;
mod int16;
pub(crate) mod kv;
pub(crate) mod scratch;
mod softmax;
pub(crate) mod task;
pub(crate) mod vectors;

use crate::blocking::{BATCH_INVARIANT_MAX, KV_BLOCK, KV_SPLIT_BLOCKS};
use crate::memory::reserve::{OutOfMemory, reserve};
use crate::pool::Pool;
use crate::pool::disjoint::DisjointSlice;
use crate::routines::Routines;
use scratch::AttentionBuffers;
use task::{Attention, AttentionTask, output_offset};

/// Queries per block. More queries amortise the conversion of keys and values; fewer leave more tasks for the threads.
/// After a long past all tasks cost the same, so that few tasks suffice.
fn query_block(m: usize, past: usize) -> usize {
    let tasks = if past < m { 8 } else { 2 };
    (m / tasks).next_multiple_of(16).clamp(16, 128)
}

/// Writes the attention of all queries to `out`, `[m][heads][head_dim]`; query `i` sees positions `0..=past + i`.
///
/// # Errors
/// Fails if the system has no memory left for the scratch, before anything is written.
pub(crate) fn attend(
    pool: &Pool,
    routines: &Routines,
    buffers: &mut AttentionBuffers,
    a: &Attention,
    out: &mut [f32],
) -> Result<(), OutOfMemory> {
    let (kv_heads, dim) = (a.kv.kv_heads(), a.kv.head_dim());
    let shared = a.heads / kv_heads;
    let block = query_block(a.m, a.past);
    let blocks = a.m.div_ceil(block);
    let kv_blocks = (a.past + a.m).div_ceil(KV_BLOCK);
    let batch_invariant = a.m <= BATCH_INVARIANT_MAX;
    let splits = if batch_invariant {
        kv_blocks.div_ceil(KV_SPLIT_BLOCKS)
    } else if pool.threads() == 1 {
        1
    } else {
        // Several tasks for each thread, so that fast cores take over from slow ones.
        let wanted = (4 * pool.threads()).div_ceil(blocks * kv_heads);
        wanted.min(kv_blocks.div_ceil(2))
    };
    let task = |i: usize| {
        let (b, split) = (i / splits / kv_heads, i % splits);
        let queries = b * block..((b + 1) * block).min(a.m);
        let seen = a.past + queries.end;
        let kv_blocks = seen.div_ceil(KV_BLOCK);
        let edge = |split: usize| {
            let kv_block = if batch_invariant {
                split * KV_SPLIT_BLOCKS
            } else {
                kv_blocks * split / splits
            };
            (kv_block * KV_BLOCK).min(seen)
        };
        AttentionTask {
            kv_head: i / splits % kv_heads,
            queries,
            positions: edge(split)..edge(split + 1),
        }
    };
    let (rows, value_dim) = (block.min(a.m) * shared, a.kv.value_dim());
    for scratch in &mut buffers.workers {
        scratch.reserve(rows, dim, value_dim, routines.attends_on_amx)?;
    }
    let partial_len = value_dim + 2;
    let stride = rows * partial_len;
    let partials_len = blocks * kv_heads * splits * stride;
    if splits > 1 && buffers.partials.len() < partials_len {
        reserve(&mut buffers.partials, partials_len)?;
        buffers.partials.resize(partials_len, 0.0);
    }
    let out = DisjointSlice::new(out);
    let partials = DisjointSlice::new(&mut buffers.partials);
    let workers = DisjointSlice::new(&mut buffers.workers);
    pool.parallel_for(blocks * kv_heads * splits, |worker, i| {
        // The last queries see the most positions: they go first, so that the tasks that remain at the end are short.
        let i = blocks * kv_heads * splits - 1 - i;
        let task = task(i);
        // SAFETY: a worker is one thread, and runs one task at a time.
        let scratch = &mut unsafe { workers.slice(worker, 1) }[0];
        // SAFETY: this executor's routines are its machine's.
        unsafe { (routines.attend)(a, &task, scratch) };
        let rows = scratch
            .row_max
            .iter()
            .zip(&scratch.row_sum)
            .zip(scratch.sums.chunks_exact(partial_len - 2));
        for (row, ((row_max, row_sum), sums)) in rows.enumerate() {
            if splits > 1 {
                // SAFETY: partial results of task `i` are written by that task alone.
                let to = unsafe { partials.slice(i * stride + row * partial_len, partial_len) };
                to[..partial_len - 2].copy_from_slice(sums);
                (to[partial_len - 2], to[partial_len - 1]) = (*row_max, *row_sum);
            } else {
                let at = output_offset(a, &task, row);
                // SAFETY: with one split, the results of a query and head are written by one task.
                let to = unsafe { out.slice(at, dim) };
                to.iter_mut()
                    .zip(sums)
                    .for_each(|(to, sum)| *to = sum / row_sum);
            }
        }
    });
    if splits > 1 {
        pool.parallel_for(blocks * kv_heads, |_, first| {
            let task = task(first * splits);
            for row in 0..task.queries.len() * shared {
                // SAFETY: `parallel_for` has returned, so that the partial results are only read; the results of a query and
                // head are written by one task.
                let (partials, to) = unsafe {
                    let start = first * splits * stride + row * partial_len;
                    let length = (splits - 1) * stride + partial_len;
                    (
                        partials.slice(start, length),
                        out.slice(output_offset(a, &task, row), dim),
                    )
                };
                merge(partials, stride, partial_len, to);
            }
        });
    }
    Ok(())
}

/// Merges the partial results of one row, which are `stride` apart and `len` long: sums, maximum and denominator.
fn merge(partials: &[f32], stride: usize, len: usize, out: &mut [f32]) {
    let parts = || partials.chunks(stride).map(|r| r[..len].split_at(len - 2));
    let row_max = parts().fold(f32::NEG_INFINITY, |row_max, (_, tail)| row_max.max(tail[0]));
    let row_sum: f32 = parts()
        .map(|(_, tail)| (tail[0] - row_max).exp() * tail[1])
        .sum();
    out.fill(0.0);
    for (sums, tail) in parts() {
        let weight = (tail[0] - row_max).exp();
        out.iter_mut()
            .zip(sums)
            .for_each(|(out, sum)| *out += weight * sum);
    }
    // Divided last, so that one split among empty ones gives the same bits as alone.
    out.iter_mut().for_each(|out| *out /= row_sum);
}

//! Causal attention, blocked over keys and values with a running maximum.
//!
//! A task of work is one key head, a block of queries and a split of positions. It passes over
//! its positions KV block by KV block: a KV block's keys and values are turned to floats once and then meet
//! every query of the block, the query heads that share the key head included. Long stretches are
//! split among tasks, whose results are merged by their maxima and sums.

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
use crate::pool::parts::DisjointSlice;
use crate::routines::Routines;
use scratch::AttentionBuffers;
use task::{Attention, AttentionTask, output_offset};

/// Queries that share a KV block: the more, the less its conversion costs, but the fewer tasks. Behind a deep past tasks
/// cost the same, so that fewer do.
fn block(m: usize, past: usize) -> usize {
    let tasks = if past < m { 8 } else { 2 };
    (m / tasks).next_multiple_of(16).clamp(16, 128)
}

/// `out[m][heads][head_dim]`; query `i` sees positions `0..=past + i`.
///
/// # Errors
/// When the system has no memory left for the scratch, before anything is written.
pub(crate) fn attend(
    pool: &Pool,
    routines: &Routines,
    buffers: &mut AttentionBuffers,
    a: &Attention,
    out: &mut [f32],
) -> Result<(), OutOfMemory> {
    let (kv_heads, dim) = (a.kv.kv_heads(), a.kv.head_dim());
    let shared = a.heads / kv_heads;
    let block = block(a.m, a.past);
    let blocks = a.m.div_ceil(block);
    let kv_blocks = (a.past + a.m).div_ceil(KV_BLOCK);
    let batch_invariant = a.m <= BATCH_INVARIANT_MAX;
    let splits = if batch_invariant {
        kv_blocks.div_ceil(KV_SPLIT_BLOCKS)
    } else if pool.threads() == 1 {
        1
    } else {
        // Enough tasks that a slow core can leave some to the others.
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
    for scratch in &mut buffers.of_workers {
        scratch.reserve(rows, dim, value_dim, routines.attends_on_amx)?;
    }
    let record = value_dim + 2;
    let room = rows * record;
    let records = blocks * kv_heads * splits * room;
    if splits > 1 && buffers.partial.len() < records {
        reserve(&mut buffers.partial, records)?;
        buffers.partial.resize(records, 0.0);
    }
    let out = DisjointSlice::new(out);
    let partial = DisjointSlice::new(&mut buffers.partial);
    let workers = DisjointSlice::new(&mut buffers.of_workers);
    pool.tasks(blocks * kv_heads * splits, |worker, i| {
        // The last queries see the row_max: begin with them, so that the end is fine-grained.
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
            .zip(scratch.sums.chunks_exact(record - 2));
        for (row, ((row_max, row_sum), sums)) in rows.enumerate() {
            if splits > 1 {
                // SAFETY: a record is one task's own.
                let to = unsafe { partial.slice(i * room + row * record, record) };
                to[..record - 2].copy_from_slice(sums);
                (to[record - 2], to[record - 1]) = (*row_max, *row_sum);
            } else {
                let at = output_offset(a, &task, row);
                // SAFETY: a query's head is one task's own when stretches are not split.
                let to = unsafe { out.slice(at, dim) };
                to.iter_mut()
                    .zip(sums)
                    .for_each(|(to, sum)| *to = sum / row_sum);
            }
        }
    });
    if splits > 1 {
        pool.tasks(blocks * kv_heads, |_, first| {
            let task = task(first * splits);
            for row in 0..task.queries.len() * shared {
                // SAFETY: nothing is written to the records any more, and a query's head is one
                // task's own.
                let (records, to) = unsafe {
                    let start = first * splits * room + row * record;
                    let length = (splits - 1) * room + record;
                    (
                        partial.slice(start, length),
                        out.slice(output_offset(a, &task, row), dim),
                    )
                };
                merge(records, room, record, to);
            }
        });
    }
    Ok(())
}

/// Merges the records of one row, `room` apart, each `record` long.
fn merge(records: &[f32], room: usize, record: usize, out: &mut [f32]) {
    let records = || {
        records
            .chunks(room)
            .map(|r| r[..record].split_at(record - 2))
    };
    let row_max = records().fold(f32::NEG_INFINITY, |row_max, (_, tail)| row_max.max(tail[0]));
    let row_sum: f32 = records()
        .map(|(_, tail)| (tail[0] - row_max).exp() * tail[1])
        .sum();
    out.fill(0.0);
    for (sums, tail) in records() {
        let weight = (tail[0] - row_max).exp();
        out.iter_mut()
            .zip(sums)
            .for_each(|(out, sum)| *out += weight * sum);
    }
    // In the end, so that one record among empty ones gives what it gives alone.
    out.iter_mut().for_each(|out| *out /= row_sum);
}

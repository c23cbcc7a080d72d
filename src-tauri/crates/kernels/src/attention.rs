//! Causal attention, blocked over keys and values with a running maximum.
//!
//! A piece of work is one key head, a block of queries and a stretch of positions. It passes over
//! its positions slab by slab: a slab's keys and values are turned to floats once and then meet
//! every query of the block, the query heads that share the key head included. Long stretches are
//! split among pieces, whose results are merged by their maxima and sums.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
mod floats;
mod int16;
pub(crate) mod kv;
pub(crate) mod scratch;
mod softmax;
pub(crate) mod task;
pub(crate) mod vectors;

use crate::blocking::{SLAB, STREAM, STRETCH};
use crate::memory::reserve::{OutOfMemory, reserve};
use crate::pool::Pool;
use crate::pool::parts::Parts;
use crate::routines::Routines;
use scratch::Desks;
use task::{Attention, Piece, place};

/// Queries that share a slab: the more, the less its conversion costs, but the fewer pieces. Behind a deep past pieces
/// cost the same, so that fewer do.
fn block(m: usize, past: usize) -> usize {
    let pieces = if past < m { 8 } else { 2 };
    (m / pieces).next_multiple_of(16).clamp(16, 128)
}

/// `out[m][heads][head_dim]`; query `i` sees positions `0..=past + i`.
///
/// # Errors
/// When the system has no memory left for the scratch, before anything is written.
pub(crate) fn attend(
    pool: &Pool,
    routines: &Routines,
    desks: &mut Desks,
    a: &Attention,
    out: &mut [f32],
) -> Result<(), OutOfMemory> {
    let (kv_heads, dim) = (a.kv.kv_heads(), a.kv.head_dim());
    let shared = a.heads / kv_heads;
    let block = block(a.m, a.past);
    let blocks = a.m.div_ceil(block);
    let slabs = (a.past + a.m).div_ceil(SLAB);
    let few = a.m <= STREAM;
    let splits = if few {
        slabs.div_ceil(STRETCH)
    } else if pool.threads() == 1 {
        1
    } else {
        // Enough pieces that a slow core can leave some to the others.
        let wanted = (4 * pool.threads()).div_ceil(blocks * kv_heads);
        wanted.min(slabs.div_ceil(2))
    };
    let piece = |i: usize| {
        let (b, split) = (i / splits / kv_heads, i % splits);
        let queries = b * block..((b + 1) * block).min(a.m);
        let seen = a.past + queries.end;
        let slabs = seen.div_ceil(SLAB);
        let edge = |split: usize| {
            let slab = if few {
                split * STRETCH
            } else {
                slabs * split / splits
            };
            (slab * SLAB).min(seen)
        };
        Piece {
            kv_head: i / splits % kv_heads,
            queries,
            positions: edge(split)..edge(split + 1),
        }
    };
    let (rows, value_dim) = (block.min(a.m) * shared, a.kv.value_dim());
    for desk in &mut desks.of_workers {
        desk.reserve(rows, dim, value_dim, routines.attends_in_tiles)?;
    }
    let record = value_dim + 2;
    let room = rows * record;
    let records = blocks * kv_heads * splits * room;
    if splits > 1 && desks.partial.len() < records {
        reserve(&mut desks.partial, records)?;
        desks.partial.resize(records, 0.0);
    }
    let out = Parts::new(out);
    let partial = Parts::new(&mut desks.partial);
    let workers = Parts::new(&mut desks.of_workers);
    pool.pieces(blocks * kv_heads * splits, |worker, i| {
        // The last queries see the most: begin with them, so that the end is fine-grained.
        let i = blocks * kv_heads * splits - 1 - i;
        let piece = piece(i);
        // SAFETY: a worker is one thread, and runs one piece at a time.
        let desk = &mut unsafe { workers.slice(worker, 1) }[0];
        // SAFETY: this executor's routines are its machine's.
        unsafe { (routines.attend)(a, &piece, desk) };
        let rows = desk
            .most
            .iter()
            .zip(&desk.total)
            .zip(desk.sums.chunks_exact(record - 2));
        for (row, ((most, total), sums)) in rows.enumerate() {
            if splits > 1 {
                // SAFETY: a record is one piece's own.
                let to = unsafe { partial.slice(i * room + row * record, record) };
                to[..record - 2].copy_from_slice(sums);
                (to[record - 2], to[record - 1]) = (*most, *total);
            } else {
                let at = place(a, &piece, row);
                // SAFETY: a query's head is one piece's own when stretches are not split.
                let to = unsafe { out.slice(at, dim) };
                to.iter_mut()
                    .zip(sums)
                    .for_each(|(to, sum)| *to = sum / total);
            }
        }
    });
    if splits > 1 {
        pool.pieces(blocks * kv_heads, |_, first| {
            let piece = piece(first * splits);
            for row in 0..piece.queries.len() * shared {
                // SAFETY: nothing is written to the records any more, and a query's head is one
                // piece's own.
                let (records, to) = unsafe {
                    let start = first * splits * room + row * record;
                    let length = (splits - 1) * room + record;
                    (
                        partial.slice(start, length),
                        out.slice(place(a, &piece, row), dim),
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
    let most = records().fold(f32::NEG_INFINITY, |most, (_, tail)| most.max(tail[0]));
    let total: f32 = records()
        .map(|(_, tail)| (tail[0] - most).exp() * tail[1])
        .sum();
    out.fill(0.0);
    for (sums, tail) in records() {
        let weight = (tail[0] - most).exp();
        out.iter_mut()
            .zip(sums)
            .for_each(|(out, sum)| *out += weight * sum);
    }
    // In the end, so that one record among empty ones gives what it gives alone.
    out.iter_mut().for_each(|out| *out /= total);
}

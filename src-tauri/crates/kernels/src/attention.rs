//! Causal attention, blocked over keys and values with a running maximum.
//!
//! A piece of work is one key head, a block of queries and a stretch of positions. It passes over
//! its positions slab by slab: a slab's keys and values are turned to floats once and then meet
//! every query of the block, the query heads that share the key head included. Long stretches are
//! split among pieces, whose results are merged by their maxima and sums.

use std::ops::Range;

use half::f16;

use crate::OutOfMemory;
use crate::attention::kv::{GROUP, KvLayer, TILE, Tile};
use crate::isa::{Isa, LANES};
use crate::memory::{Buffer, reserve};
use crate::pool::{Parts, Pool};
use crate::product::STREAM;
use crate::routines::Routines;

#[cfg(target_arch = "x86_64")]
mod amx;
mod floats;
mod int16;
pub(crate) mod kv;
#[cfg(target_arch = "x86_64")]
pub(crate) use amx::attend_in_tiles;
use floats::{gather, load_keys, load_values, scores};
use int16::Words;

/// Positions of a slab.
const SLAB: usize = 64;
const SLAB_TILES: usize = SLAB / TILE;
/// Slabs of a stretch when queries are few. Stretches are then the same whatever the number of
/// queries, so that a token's result does not depend on how many others come with it.
const STRETCH: usize = 8;

/// Queries that share a slab: the more, the less its conversion costs, but the fewer pieces. Behind a deep past pieces
/// cost the same, so that fewer do.
fn block(m: usize, past: usize) -> usize {
    let pieces = if past < m { 8 } else { 2 };
    (m / pieces).next_multiple_of(16).clamp(16, 128)
}

/// What there is to attend with.
#[derive(Clone, Copy)]
pub(crate) struct Attention<'a> {
    /// `[m][heads][head_dim]`.
    pub q: &'a [f32],
    pub m: usize,
    pub heads: usize,
    pub kv: &'a KvLayer,
    pub past: usize,
    /// All arithmetic in f32.
    pub exact: bool,
}

/// One piece: rows are `[query][shared head]`.
pub(crate) struct Piece {
    kv_head: usize,
    queries: Range<usize>,
    positions: Range<usize>,
}

/// A worker's memory for a piece.
#[derive(Default)]
pub(crate) struct Desk {
    /// Scaled queries, `[row][head_dim]`.
    q: Vec<f32>,
    /// `[tile][head_dim][16]`.
    keys: Vec<f32>,
    /// `[position][value_dim]`.
    values: Vec<f32>,
    /// Scores, then weights, `[row][SLAB]`.
    scores: Buffer<f32>,
    /// Weighted values, `[row][value_dim]`.
    sums: Buffer<f32>,
    /// Per row: the largest score, and the sum of weights relative to it.
    most: Vec<f32>,
    total: Vec<f32>,
    words: Words,
    #[cfg(target_arch = "x86_64")]
    tiled: amx::Tiled,
}

impl Desk {
    /// Makes room for `rows` rows, in tiles of a matrix unit or not.
    fn reserve(
        &mut self,
        rows: usize,
        dim: usize,
        value_dim: usize,
        in_tiles: bool,
    ) -> Result<(), OutOfMemory> {
        #[cfg(target_arch = "x86_64")]
        if in_tiles {
            self.tiled.reserve(rows, dim, value_dim)?;
            reserve(&mut self.keys, amx::SLAB * dim)?;
            reserve(&mut self.values, amx::SLAB * value_dim)?;
        }
        #[cfg(not(target_arch = "x86_64"))]
        debug_assert!(!in_tiles, "there is no such unit");
        reserve(&mut self.q, rows * dim)?;
        reserve(&mut self.keys, SLAB * dim)?;
        reserve(&mut self.values, SLAB * value_dim)?;
        let room = whole_tiles(rows);
        self.scores.reserve(room * SLAB)?;
        self.sums.reserve(room * value_dim)?;
        reserve(&mut self.most, rows)?;
        reserve(&mut self.total, rows)?;
        self.words.reserve(rows, dim, value_dim)
    }

    /// Starts `rows` rows, for which there is room.
    fn start(&mut self, rows: usize, dim: usize, value_dim: usize) {
        self.q.resize(rows * dim, 0.0);
        self.keys.resize(SLAB * dim, 0.0);
        self.values.resize(SLAB * value_dim, 0.0);
        let room = whole_tiles(rows);
        self.scores.resize(room * SLAB);
        self.sums.resize(room * value_dim);
        self.sums.fill(0.0);
        self.most.clear();
        self.most.resize(rows, f32::NEG_INFINITY);
        self.total.clear();
        self.total.resize(rows, 0.0);
    }

    /// Takes the piece's queries, scaled.
    fn place_queries(&mut self, a: &Attention, piece: &Piece) {
        let dim = a.kv.head_dim();
        let scale = 1.0 / (dim as f32).sqrt();
        for (row, q) in self.q.chunks_exact_mut(dim).enumerate() {
            let from = &a.q[place(a, piece, row)..][..dim];
            q.iter_mut()
                .zip(from)
                .for_each(|(to, from)| *to = from * scale);
        }
    }
}

/// A matrix unit fills whole pairs of tiles of rows.
fn whole_tiles(rows: usize) -> usize {
    rows.next_multiple_of(2 * TILE)
}

/// Memory for attention, made once and grown to the largest.
pub(crate) struct Desks {
    of_workers: Vec<Desk>,
    /// Results of pieces that share queries: `[piece][row][value_dim + 2]`.
    partial: Vec<f32>,
}

impl Desks {
    pub fn new(workers: usize) -> Self {
        Desks {
            of_workers: (0..workers).map(|_| Desk::default()).collect(),
            partial: Vec::new(),
        }
    }
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

/// Where the results of a piece's row go.
fn place(a: &Attention, piece: &Piece, row: usize) -> usize {
    let shared = a.heads / a.kv.kv_heads();
    let query = piece.queries.start + row / shared;
    (query * a.heads + piece.kv_head * shared + row % shared) * a.kv.head_dim()
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

/// Passes over a piece's positions; leaves sums, maxima and totals on the desk.
///
/// # Safety
/// The machine has `I`; `a` is consistent and `piece` lies inside it.
#[inline(always)]
pub(crate) unsafe fn attend_piece<I: Isa>(a: &Attention, piece: &Piece, desk: &mut Desk) {
    let (dim, value_dim) = (a.kv.head_dim(), a.kv.value_dim());
    let shared = a.heads / a.kv.kv_heads();
    let rows = piece.queries.len() * shared;
    desk.start(rows, dim, value_dim);
    desk.place_queries(a, piece);
    desk.words.start(rows, dim, value_dim);
    desk.words.round_queries(&desk.q, dim);
    for first in piece.positions.clone().step_by(SLAB) {
        let there = (piece.positions.end - first).min(SLAB);
        let tiles = there.div_ceil(TILE);
        let at = first / TILE..first / TILE + tiles;
        let (keys, values) = (
            a.kv.keys(piece.kv_head, at.clone()),
            a.kv.values(piece.kv_head, at),
        );
        // Many queries are worth a slab in integers; one query's heads meet it as it is. The integers are made of the
        // floats, so that the last query of many, alone in its block, needs these too.
        let in_words = I::WORDS && !a.exact && a.m > STREAM && int16::fit(dim);
        let as_it_is = match (keys, values) {
            (Tile::F16(k), Tile::F16(v)) if rows <= 4 && !in_words => {
                Some((k.as_ptr(), v.as_ptr()))
            }
            _ => None,
        };
        // SAFETY: buffers were sized by `start` for whole slabs; tiles exist for all positions.
        unsafe {
            if as_it_is.is_none() {
                load_keys::<I>(keys, dim, tiles, desk.keys.as_mut_ptr());
                let groups = dim.div_ceil(GROUP);
                load_values::<I>(values, value_dim, groups, tiles, desk.values.as_mut_ptr());
            }
            if in_words {
                int16::slab::<I>(desk, dim, value_dim, there);
            }
            let keys: *const f32 = desk.keys.as_ptr();
            let mut row = 0;
            while row < rows {
                row += if in_words && rows - row >= 4 {
                    int16::scores::<I, 4>(desk, row, dim, tiles);
                    4
                } else if rows - row >= 4 {
                    match as_it_is {
                        Some((keys, _)) => scores::<I, f16, 4>(desk, keys, row, dim, tiles),
                        None => scores::<I, f32, 4>(desk, keys, row, dim, tiles),
                    }
                    4
                } else {
                    match as_it_is {
                        Some((keys, _)) => scores::<I, f16, 1>(desk, keys, row, dim, tiles),
                        None => scores::<I, f32, 1>(desk, keys, row, dim, tiles),
                    }
                    1
                };
            }
            for row in 0..rows {
                let seen = a.past + piece.queries.start + row / shared + 1;
                let seen = seen.saturating_sub(first).min(SLAB);
                let scores = &mut desk.scores[row * SLAB..][..tiles * TILE];
                let sums = &mut desk.sums[row * value_dim..][..value_dim];
                let state = (&mut desk.most[row], &mut desk.total[row], sums);
                weigh::<I>(scores, state, seen);
            }
            let values: *const f32 = desk.values.as_ptr();
            let positions = tiles * TILE;
            let mut row = 0;
            while row < rows {
                row += if in_words && rows - row >= 4 {
                    int16::weights::<I, 4>(desk, row, tiles);
                    int16::gather::<I, 4>(desk, row, value_dim, tiles);
                    4
                } else if rows - row >= 4 {
                    match as_it_is {
                        Some((_, v)) => gather::<I, f16, 4>(desk, v, row, value_dim, positions),
                        None => gather::<I, f32, 4>(desk, values, row, value_dim, positions),
                    }
                    4
                } else {
                    match as_it_is {
                        Some((_, v)) => gather::<I, f16, 1>(desk, v, row, value_dim, positions),
                        None => gather::<I, f32, 1>(desk, values, row, value_dim, positions),
                    }
                    1
                };
            }
        }
    }
}

/// Turns a row's scores for whole tiles of positions into weights relative to its largest score so far; only the first
/// `seen` positions count. `state` is the row's largest score, total of weights, and sums.
///
/// # Safety
/// The machine has `I`.
#[inline(always)]
unsafe fn weigh<I: Isa>(scores: &mut [f32], state: (&mut f32, &mut f32, &mut [f32]), seen: usize) {
    let (most, total, sums) = state;
    debug_assert!(scores.len().is_multiple_of(TILE) && sums.len().is_multiple_of(LANES));
    // SAFETY: steps of whole vectors stay inside the row's scores and sums.
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
        for t in (0..scores.len()).step_by(TILE) {
            largest = I::max(largest, I::load(p.add(t)));
        }
        let now = I::largest(largest).max(*most);
        if now > *most {
            let fade = (*most - now).exp();
            *most = now;
            *total *= fade;
            for d in (0..sums.len()).step_by(LANES) {
                let p = sums.as_mut_ptr().add(d);
                I::store(p, I::mul(I::load(p), I::splat(fade)));
            }
        }
        let mut weights = I::splat(0.0);
        for t in (0..scores.len()).step_by(TILE) {
            let weight = I::exp(I::sub(I::load(p.add(t)), I::splat(now)));
            I::store(p.add(t), weight);
            weights = I::add(weights, weight);
        }
        if seen < scores.len() {
            // The exponential is never quite zero.
            scores[seen..].fill(0.0);
        }
        *total += I::sum(weights);
    }
}

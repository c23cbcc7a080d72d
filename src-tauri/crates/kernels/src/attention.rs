//! Causal attention, blocked over keys and values with a running maximum.
//!
//! A piece of work is one key head, a block of queries and a stretch of positions. It passes over
//! its positions slab by slab: a slab's keys and values are turned to floats once and then meet
//! every query of the block, the query heads that share the key head included. Long stretches are
//! split among pieces, whose results are merged by their maxima and sums.

use std::ops::Range;

use crate::isa::{Isa, LANES};
use crate::kv::{GROUP, KvLayer, TILE, Tile};
use crate::pool::{Parts, Pool};
use crate::routines::Routines;

mod words;
use words::Words;

/// Positions of a slab.
const SLAB: usize = 64;
const SLAB_TILES: usize = SLAB / TILE;
/// Queries of a block, times the heads that share keys: rows of a piece.
const BLOCK: usize = 16;

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
    scores: Vec<f32>,
    /// Weighted values, `[row][value_dim]`.
    sums: Vec<f32>,
    /// Per row: the largest score, and the sum of weights relative to it.
    most: Vec<f32>,
    total: Vec<f32>,
    words: Words,
}

impl Desk {
    /// Makes room for `rows` rows, and starts them.
    fn start(&mut self, rows: usize, dim: usize, value_dim: usize) {
        self.q.resize(rows * dim, 0.0);
        self.keys.resize(SLAB * dim, 0.0);
        self.values.resize(SLAB * value_dim, 0.0);
        self.scores.resize(rows * SLAB, 0.0);
        self.sums.clear();
        self.sums.resize(rows * value_dim, 0.0);
        self.most.clear();
        self.most.resize(rows, f32::NEG_INFINITY);
        self.total.clear();
        self.total.resize(rows, 0.0);
        self.words.start(rows, dim, value_dim);
    }
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
pub(crate) fn attend(
    pool: &Pool,
    routines: &Routines,
    desks: &mut Desks,
    a: &Attention,
    out: &mut [f32],
) {
    let (kv_heads, dim) = (a.kv.kv_heads(), a.kv.head_dim());
    let shared = a.heads / kv_heads;
    let blocks = a.m.div_ceil(BLOCK);
    let slabs = (a.past + a.m).div_ceil(SLAB);
    // Enough pieces that a slow core can leave some to the others.
    let splits = (4 * pool.threads())
        .div_ceil(blocks * kv_heads)
        .min(slabs.div_ceil(2))
        .max(1);
    let splits = if pool.threads() == 1 { 1 } else { splits };
    let piece = |i: usize| {
        let (block, split) = (i / splits / kv_heads, i % splits);
        let queries = block * BLOCK..((block + 1) * BLOCK).min(a.m);
        let seen = a.past + queries.end;
        let slabs = seen.div_ceil(SLAB);
        let edge = |split: usize| (slabs * split / splits * SLAB).min(seen);
        Piece {
            kv_head: i / splits % kv_heads,
            queries,
            positions: edge(split)..edge(split + 1),
        }
    };
    let record = a.kv.value_dim() + 2;
    let room = BLOCK.min(a.m) * shared * record;
    if splits > 1 {
        desks.partial.resize(
            (blocks * kv_heads * splits * room).max(desks.partial.len()),
            0.0,
        );
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
        let weight = (tail[0] - most).exp() / total;
        out.iter_mut()
            .zip(sums)
            .for_each(|(out, sum)| *out += weight * sum);
    }
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
    let scale = 1.0 / (dim as f32).sqrt();
    for (row, q) in desk.q.chunks_exact_mut(dim).enumerate() {
        let from = &a.q[place(a, piece, row)..][..dim];
        q.iter_mut()
            .zip(from)
            .for_each(|(to, from)| *to = from * scale);
    }
    desk.words.round_queries(&desk.q, dim);
    for first in piece.positions.clone().step_by(SLAB) {
        let tiles = (piece.positions.end - first).min(SLAB).div_ceil(TILE);
        // SAFETY: buffers were sized by `start` for whole slabs; tiles exist for all positions.
        unsafe {
            // Many queries are worth a slab in integers.
            let in_words = !a.exact && rows >= 16 && words::fit(dim);
            for t in 0..tiles {
                let keys = a.kv.keys(piece.kv_head, first / TILE + t);
                load_keys::<I>(keys, dim, desk.keys.as_mut_ptr().add(t * TILE * dim));
                let values = a.kv.values(piece.kv_head, first / TILE + t);
                let to = desk.values.as_mut_ptr().add(t * TILE * value_dim);
                load_values::<I>(values, value_dim, dim.div_ceil(GROUP), to);
            }
            if in_words {
                words::slab::<I>(desk, dim, value_dim, tiles);
            }
            let mut row = 0;
            while row < rows {
                row += if in_words && rows - row >= 4 {
                    words::scores::<I, 4>(desk, row, dim, tiles);
                    4
                } else if rows - row >= 4 {
                    scores::<I, 4>(desk, row, dim, tiles);
                    4
                } else {
                    scores::<I, 1>(desk, row, dim, tiles);
                    1
                };
            }
            for row in 0..rows {
                let seen = a.past + piece.queries.start + row / shared + 1;
                weigh::<I>(
                    desk,
                    row,
                    seen.saturating_sub(first).min(SLAB),
                    tiles,
                    value_dim,
                );
            }
            let positions = tiles * TILE;
            let mut row = 0;
            while row < rows {
                row += if in_words && rows - row >= 4 {
                    words::weights::<I, 4>(desk, row, tiles);
                    words::gather::<I, 4>(desk, row, value_dim, tiles);
                    4
                } else if rows - row >= 4 {
                    gather::<I, 4>(desk, row, value_dim, positions);
                    4
                } else {
                    gather::<I, 1>(desk, row, value_dim, positions);
                    1
                };
            }
        }
    }
}

/// One tile of keys as floats.
///
/// # Safety
/// The machine has `I`; `to` has room for `dim × 16`.
#[inline(always)]
unsafe fn load_keys<I: Isa>(keys: Tile, dim: usize, to: *mut f32) {
    // SAFETY: a tile has `dim` vectors, and a vector of scales for every GROUP of them.
    unsafe {
        for d in 0..dim {
            let at = d * LANES;
            let v = match keys {
                Tile::F32(k) => I::load(k.as_ptr().add(at)),
                Tile::F16(k) => I::load_f16(k.as_ptr().add(at).cast()),
                Tile::Q8(k, s) => {
                    let scale = I::load_f16(s.as_ptr().add(d / GROUP * LANES).cast());
                    I::mul(I::load_i8(k.as_ptr().add(at)), scale)
                }
            };
            I::store(to.add(at), v);
        }
    }
}

/// One tile of values as floats.
///
/// # Safety
/// The machine has `I`; `to` has room for `16 × value_dim`.
#[inline(always)]
unsafe fn load_values<I: Isa>(values: Tile, value_dim: usize, groups: usize, to: *mut f32) {
    // SAFETY: a tile has 16 rows of whole vectors, and `groups` scales for each.
    unsafe {
        for p in 0..TILE {
            for d in (0..value_dim).step_by(LANES) {
                let at = p * value_dim + d;
                let v = match values {
                    Tile::F32(v) => I::load(v.as_ptr().add(at)),
                    Tile::F16(v) => I::load_f16(v.as_ptr().add(at).cast()),
                    Tile::Q8(v, s) => {
                        let scale = s[p * groups + d / GROUP].to_f32();
                        I::mul(I::load_i8(v.as_ptr().add(at)), I::splat(scale))
                    }
                };
                I::store(to.add(at), v);
            }
        }
    }
}

/// Scores of `R` rows with the slab's tiles.
///
/// # Safety
/// The machine has `I`; the desk holds rows and tiles.
#[inline(always)]
unsafe fn scores<I: Isa, const R: usize>(desk: &mut Desk, row: usize, dim: usize, tiles: usize) {
    // SAFETY: `row + R` rows and `tiles` tiles are on the desk.
    unsafe {
        let q = desk.q.as_ptr().add(row * dim);
        let out = desk.scores.as_mut_ptr().add(row * SLAB);
        let mut t = 0;
        while t < tiles {
            let keys = desk.keys.as_ptr().add(t * TILE * dim);
            let to = out.add(t * TILE);
            t += if I::WIDE && tiles - t >= SLAB_TILES {
                dots::<I, R, SLAB_TILES>(q, keys, dim, to);
                SLAB_TILES
            } else {
                dots::<I, R, 1>(q, keys, dim, to);
                1
            };
        }
    }
}

/// Dot products of `R` queries with the keys of `T` tiles.
///
/// # Safety
/// As [`scores`].
#[inline(always)]
unsafe fn dots<I: Isa, const R: usize, const T: usize>(
    q: *const f32,
    keys: *const f32,
    dim: usize,
    to: *mut f32,
) {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [[I::splat(0.0); T]; R];
        for d in 0..dim {
            let mut k = [I::splat(0.0); T];
            for t in 0..T {
                k[t] = I::load(keys.add((t * dim + d) * TILE));
            }
            for r in 0..R {
                let q = I::splat(*q.add(r * dim + d));
                for t in 0..T {
                    sums[r][t] = I::fma(q, k[t], sums[r][t]);
                }
            }
        }
        for r in 0..R {
            for t in 0..T {
                I::store(to.add(r * SLAB + t * TILE), sums[r][t]);
            }
        }
    }
}

/// Turns a row's scores into weights relative to its largest score so far; only the first `seen`
/// positions of the slab count.
///
/// # Safety
/// The machine has `I`; the desk holds the row and its scores.
#[inline(always)]
unsafe fn weigh<I: Isa>(desk: &mut Desk, row: usize, seen: usize, tiles: usize, value_dim: usize) {
    let scores = &mut desk.scores[row * SLAB..][..tiles * TILE];
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
        let mut most = I::splat(f32::NEG_INFINITY);
        for t in 0..tiles {
            most = I::max(most, I::load(p.add(t * TILE)));
        }
        let before = desk.most[row];
        let most = I::largest(most).max(before);
        if most > before {
            desk.most[row] = most;
            let fade = (before - most).exp();
            desk.total[row] *= fade;
            for sum in &mut desk.sums[row * value_dim..(row + 1) * value_dim] {
                *sum *= fade;
            }
        }
        let mut total = I::splat(0.0);
        for t in 0..tiles {
            let weight = I::exp(I::sub(I::load(p.add(t * TILE)), I::splat(most)));
            total = I::add(total, weight);
            I::store(p.add(t * TILE), weight);
        }
        desk.total[row] += I::sum(total);
    }
}

/// Adds the slab's weighted values to the sums of `R` rows.
///
/// # Safety
/// The machine has `I`; the desk holds rows, weights and values.
#[inline(always)]
unsafe fn gather<I: Isa, const R: usize>(
    desk: &mut Desk,
    row: usize,
    value_dim: usize,
    positions: usize,
) {
    // SAFETY: `row + R` rows and `positions` positions are on the desk.
    unsafe {
        let weights = desk.scores.as_ptr().add(row * SLAB);
        let sums = desk.sums.as_mut_ptr().add(row * value_dim);
        let mut d = 0;
        while d < value_dim {
            let values = desk.values.as_ptr().add(d);
            d += if I::WIDE && value_dim - d >= 4 * LANES {
                accumulate::<I, R, 4>(weights, values, value_dim, positions, sums.add(d));
                4 * LANES
            } else {
                accumulate::<I, R, 1>(weights, values, value_dim, positions, sums.add(d));
                LANES
            };
        }
    }
}

/// Adds weighted values to `V` vectors of `R` rows.
///
/// # Safety
/// As [`gather`].
#[inline(always)]
unsafe fn accumulate<I: Isa, const R: usize, const V: usize>(
    weights: *const f32,
    values: *const f32,
    value_dim: usize,
    positions: usize,
    sums: *mut f32,
) {
    // SAFETY: the caller's.
    unsafe {
        let mut acc = [[I::splat(0.0); V]; R];
        for r in 0..R {
            for v in 0..V {
                acc[r][v] = I::load(sums.add(r * value_dim + v * LANES));
            }
        }
        for p in 0..positions {
            let mut value = [I::splat(0.0); V];
            for v in 0..V {
                value[v] = I::load(values.add(p * value_dim + v * LANES));
            }
            for r in 0..R {
                let weight = I::splat(*weights.add(r * SLAB + p));
                for v in 0..V {
                    acc[r][v] = I::fma(weight, value[v], acc[r][v]);
                }
            }
        }
        for r in 0..R {
            for v in 0..V {
                I::store(sums.add(r * value_dim + v * LANES), acc[r][v]);
            }
        }
    }
}

//! Many queries on a matrix unit: keys, values and weights in bf16, sums in f32.
//!
//! It is the precision that the models were trained in, and many times as fast as the vectors.

use super::floats::{Kept, load_keys, load_values};
use super::kv::{GROUP, GROWTH, TILE, Tile};
use super::scratch::Desk;
use super::softmax::weigh;
use super::task::{Attention, Piece};
use super::vectors::attend_piece;
use crate::blocking::{STREAM, TILE_SLAB as SLAB};
use crate::isa::avx512::Avx512;
use crate::isa::{LANES, amx};
use crate::product::activations::Grain;
use crate::product::amx::pack::arrange;

const _: () = assert!(GROWTH.is_multiple_of(SLAB));
/// Rows that are multiplied together.
const ROWS: usize = amx::PAIR;

/// As [`attend_piece`], in tiles where they serve.
///
/// # Safety
/// AMX is permitted; `a` is consistent and `piece` lies inside it.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
pub(crate) unsafe fn attend_in_tiles(a: &Attention, piece: &Piece, desk: &mut Desk) {
    let (dim, value_dim) = (a.kv.head_dim(), a.kv.value_dim());
    let fits = |dim: usize| dim.is_multiple_of(amx::COLUMNS);
    if a.exact || a.m <= STREAM || !fits(dim) || !fits(value_dim) {
        // SAFETY: passed on; AMX comes with AVX-512.
        return unsafe { attend_piece::<Avx512>(a, piece, desk) };
    }
    let shared = a.heads / a.kv.kv_heads();
    let rows = piece.queries.len() * shared;
    desk.start(rows, dim, value_dim);
    desk.keys.resize(SLAB * dim, 0.0);
    desk.values.resize(SLAB * value_dim, 0.0);
    desk.place_queries(a, piece);
    desk.tiled.q.resize(rows.next_multiple_of(ROWS) * dim);
    desk.tiled.keys.resize(SLAB * dim);
    desk.tiled.values.resize(SLAB * value_dim);
    desk.tiled.scores.resize(ROWS * SLAB);
    desk.tiled.weights.resize(ROWS * SLAB);
    // SAFETY: buffers are as long as their layouts say, for whole multiples of `ROWS`; tiles of the cache exist for
    // all positions.
    unsafe {
        let q = &mut desk.tiled.q[..rows.next_multiple_of(amx::PAIR) * dim];
        arrange(Grain::Group, &desk.q, dim, 0..dim, q);
        let _tiles = amx::Tiles::new();
        let mut first = piece.positions.start;
        while first < piece.positions.end {
            // A slab ends where one would that began at the first position: so it lies in what the cache keeps together.
            let next = (first / SLAB + 1) * SLAB;
            let tiles = (piece.positions.end.min(next) - first).div_ceil(TILE);
            let at = first / TILE..first / TILE + tiles;
            if tiles * TILE < SLAB {
                // Zero times what an earlier slab has left there may be no number.
                desk.tiled.values.fill(0);
            }
            load_slab(
                a.kv.keys(piece.kv_head, at.clone()),
                a.kv.values(piece.kv_head, at),
                [dim, value_dim, tiles],
                desk,
            );
            let Desk {
                tiled,
                sums,
                most,
                total,
                ..
            } = desk;
            for start in (0..rows).step_by(ROWS) {
                let queries = tiled.q.as_ptr().add(start * dim);
                amx::scores(
                    queries,
                    tiled.keys.as_ptr(),
                    dim,
                    SLAB,
                    tiled.scores.as_mut_ptr(),
                );
                for row in start..(start + ROWS).min(rows) {
                    let seen = a.past + piece.queries.start + row / shared + 1;
                    let seen = seen.saturating_sub(first).min(tiles * TILE);
                    let scores = &mut tiled.scores[(row - start) * SLAB..][..SLAB];
                    let (scores, none) = scores.split_at_mut(tiles * TILE);
                    let sums = &mut sums[row * value_dim..][..value_dim];
                    weigh::<Avx512>(scores, (&mut most[row], &mut total[row], sums), seen);
                    none.fill(0.0);
                }
                let weights = &mut tiled.weights;
                arrange(Grain::Group, &tiled.scores, SLAB, 0..SLAB, weights);
                let sums = sums.as_mut_ptr().add(start * value_dim);
                amx::gather(
                    weights.as_ptr(),
                    tiled.values.as_ptr(),
                    SLAB,
                    value_dim,
                    sums,
                );
            }
            first = next;
        }
    }
}

/// Makes tiles of a slab's keys and values.
///
/// # Safety
/// As [`attend_in_tiles`]; `dims` are components of keys and of values, and tiles of the cache.
#[inline(always)]
unsafe fn load_slab(keys: Tile, values: Tile, dims: [usize; 3], desk: &mut Desk) {
    let [dim, value_dim, tiles] = dims;
    // SAFETY: the desk was started for these dimensions and whole slabs.
    unsafe {
        match (keys, values) {
            (Tile::F16(k), Tile::F16(v)) => tile_slab(k.as_ptr(), v.as_ptr(), dims, desk),
            _ => {
                load_keys::<Avx512>(keys, dim, tiles, desk.keys.as_mut_ptr());
                let (groups, to) = (dim.div_ceil(GROUP), desk.values.as_mut_ptr());
                load_values::<Avx512>(values, value_dim, groups, tiles, to);
                let (k, v): (*const f32, *const f32) = (desk.keys.as_ptr(), to);
                tile_slab(k, v, dims, desk);
            }
        }
    }
}

/// The same of keys `[tile][dim][16]` and values `[position][value_dim]`.
///
/// # Safety
/// As [`load_slab`].
#[inline(always)]
unsafe fn tile_slab<K: Kept>(keys: *const K, values: *const K, dims: [usize; 3], desk: &mut Desk) {
    let [dim, value_dim, tiles] = dims;
    // SAFETY: as the caller's.
    unsafe {
        for t in 0..tiles {
            for d in (0..dim).step_by(2) {
                let key = |d: usize| K::load::<Avx512>(keys.add((t * dim + d) * LANES));
                let pair = t / 2 * (dim / amx::COLUMNS) + d / amx::COLUMNS;
                let tile = pair * 2 + t % 2;
                let row = d % amx::COLUMNS / 2;
                let to = desk
                    .tiled
                    .keys
                    .as_mut_ptr()
                    .add((tile * 16 + row) * amx::COLUMNS);
                amx::put_pair(to, key(d), key(d + 1));
            }
        }
        for p in (0..tiles * TILE).step_by(2) {
            for d in (0..value_dim).step_by(LANES) {
                let value = |p: usize| K::load::<Avx512>(values.add(p * value_dim + d));
                let pair = d / amx::COLUMNS * (SLAB / amx::COLUMNS) + p / amx::COLUMNS;
                let tile = pair * 2 + d / LANES % 2;
                let row = p % amx::COLUMNS / 2;
                let to = desk
                    .tiled
                    .values
                    .as_mut_ptr()
                    .add((tile * 16 + row) * amx::COLUMNS);
                amx::put_pair(to, value(p), value(p + 1));
            }
        }
    }
}

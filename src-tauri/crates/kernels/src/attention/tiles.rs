//! Many queries on a matrix unit: keys, values and weights in bf16, sums in f32.
//!
//! It is the precision that the models were trained in, and many times as fast as the vectors.

use crate::activations::Grain;
use crate::isa::{Avx512, LANES, amx};
use crate::kv::{GROUP, TILE, Tile};
use crate::memory::Buffer;
use crate::product::STREAM;

use super::floats::{Kept, load_keys, load_values};
use super::{Attention, Desk, Piece, SLAB, SLAB_TILES, attend_piece, weigh};

/// A desk's tiles, 16 × 32 numbers each.
#[derive(Default)]
pub(super) struct Tiled {
    /// `[row / 16][component / 32]`.
    q: Buffer<u16>,
    /// `[component / 32][position / 16]`.
    keys: Buffer<u16>,
    /// `[component / 16][position / 32]`.
    values: Buffer<u16>,
    /// `[row / 16][position / 32]`.
    weights: Buffer<u16>,
}

/// As [`attend_piece`], in tiles where they serve.
///
/// # Safety
/// AMX is permitted; `a` is consistent and `piece` lies inside it.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
pub(crate) unsafe fn attend_in_tiles(a: &Attention, piece: &Piece, desk: &mut Desk) {
    let (dim, value_dim) = (a.kv.head_dim(), a.kv.value_dim());
    if a.exact || a.m <= STREAM || !dim.is_multiple_of(amx::COLUMNS) {
        // SAFETY: passed on; AMX comes with AVX-512.
        return unsafe { attend_piece::<Avx512>(a, piece, desk) };
    }
    let shared = a.heads / a.kv.kv_heads();
    let rows = piece.queries.len() * shared;
    let blocks = rows.div_ceil(TILE);
    desk.start(rows, dim, value_dim);
    desk.place_queries(a, piece);
    desk.tiled.q.resize(blocks * TILE * dim);
    desk.tiled.keys.resize(SLAB * dim);
    desk.tiled.values.resize(SLAB * value_dim);
    desk.tiled.weights.resize(blocks * TILE * SLAB);
    // SAFETY: buffers are as long as their layouts say; tiles of the cache exist for all positions.
    unsafe {
        amx::arrange(Grain::Group, &desk.q, dim, 0..dim, &mut desk.tiled.q);
        let _tiles = amx::Tiles::new();
        for first in piece.positions.clone().step_by(SLAB) {
            let tiles = (piece.positions.end - first).min(SLAB).div_ceil(TILE);
            let at = first / TILE..first / TILE + tiles;
            load_slab(
                a.kv.keys(piece.kv_head, at.clone()),
                a.kv.values(piece.kv_head, at),
                [dim, value_dim, tiles],
                desk,
            );
            for block in 0..blocks {
                amx::times_four(
                    desk.tiled.q.as_ptr().add(block * TILE * dim),
                    desk.tiled.keys.as_ptr(),
                    dim / amx::COLUMNS,
                    desk.scores.as_mut_ptr().add(block * TILE * SLAB),
                );
            }
            for row in 0..rows {
                let seen = a.past + piece.queries.start + row / shared + 1;
                let seen = seen.saturating_sub(first).min(SLAB);
                weigh::<Avx512>(desk, row, seen, tiles, value_dim);
                desk.scores[row * SLAB + tiles * TILE..(row + 1) * SLAB].fill(0.0);
            }
            let weights = &desk.scores[..rows * SLAB];
            amx::arrange(
                Grain::Group,
                weights,
                SLAB,
                0..SLAB,
                &mut desk.tiled.weights,
            );
            for block in 0..blocks {
                amx::add_products(
                    desk.tiled.weights.as_ptr().add(block * TILE * SLAB),
                    desk.tiled.values.as_ptr(),
                    value_dim / LANES,
                    desk.sums.as_mut_ptr().add(block * TILE * value_dim),
                );
            }
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
                let tile = d / amx::COLUMNS * SLAB_TILES + t;
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
                let tile = d / LANES * (SLAB / amx::COLUMNS) + p / amx::COLUMNS;
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

//! One task of attention on vectors.

use half::f16;

use super::floats::{gather, load_keys, load_values, scores};
use super::int16;
use super::kv::{GROUP, TILE, Tile};
use super::scratch::Desk;
use super::softmax::weigh;
use super::task::{Attention, Piece};
use crate::blocking::{SLAB, STREAM};
use crate::isa::Isa;

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

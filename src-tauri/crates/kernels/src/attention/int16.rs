//! Attention of many queries in 16-bit integers, at twice the rate of floats.
//!
//! Queries, keys, weights and values are quantised to 11 and 12 bits with a scale per query, per key, per query and KV
//! block, and per component and KV block: about the precision of f16, in which keys and values are stored. Sums of their
//! products fit 32 bits.

use crate::blocking::KV_BLOCK;
use crate::isa::{Isa, LANES};

use super::kv::KV_TILE;
use super::scratch::{AttentionScratch, Int16Scratch};

/// The largest integers: 2047 · 4095 · 256 components and 4095 · 4095 · 64 positions stay below 2³¹.
const QUERY: f32 = 2047.0;
const REST: f32 = 4095.0;

/// Returns true if the products of heads of `dim` components fit 32 bits.
pub(super) fn supports(dim: usize) -> bool {
    dim <= 256 && dim.is_multiple_of(2)
}

impl Int16Scratch {
    #[inline(always)]
    pub fn quantise_queries(&mut self, q: &[f32], dim: usize) {
        let rows = q.chunks_exact(dim).zip(self.q.chunks_exact_mut(dim));
        for ((from, to), scale) in rows.zip(&mut self.q_scale) {
            let largest = from.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
            let inverse = if largest > 0.0 { QUERY / largest } else { 0.0 };
            *scale = largest / QUERY;
            for (to, from) in to.iter_mut().zip(from) {
                *to = (from * inverse).round_ties_even() as i16;
            }
        }
    }
}

/// `REST / largest` and `largest / REST` in each lane, or zeros where `largest` is zero.
///
/// # Safety
/// The machine has `I`.
#[inline(always)]
unsafe fn scale_and_inverse<I: Isa>(largest: I::F) -> (I::F, I::F) {
    // SAFETY: no pointers.
    unsafe {
        // The bound keeps the inverse finite; smaller values round to zero anyway.
        let inverse = I::div(I::splat(REST), I::max(largest, I::splat(1e-30)));
        (inverse, I::mul(largest, I::splat(1.0 / REST)))
    }
}

/// Quantises the KV block's keys and values of the first `positions` positions: values behind these may be left over
/// from truncated sequences and must not determine the scales.
///
/// # Safety
/// The machine has `I`; the scratch was sized for these dimensions and holds the KV block as floats.
#[inline(always)]
pub(super) unsafe fn quantise_kv_block<I: Isa>(
    scratch: &mut AttentionScratch,
    dim: usize,
    value_dim: usize,
    positions: usize,
) {
    let tiles = positions.div_ceil(KV_TILE);
    let int16 = &mut scratch.int16;
    // SAFETY: integers take the same indices as the floats, two to a lane, in buffers of the same number of elements.
    unsafe {
        for t in 0..tiles {
            let keys = scratch.keys.as_ptr().add(t * KV_TILE * dim);
            let mut largest = I::splat(0.0);
            for d in 0..dim {
                largest = I::max(largest, I::abs(I::load(keys.add(d * LANES))));
            }
            let (inverse, scale) = scale_and_inverse::<I>(largest);
            I::store(int16.key_scale.as_mut_ptr().add(t * KV_TILE), scale);
            let to = int16.keys.as_mut_ptr().add(t * KV_TILE * dim);
            for d in (0..dim).step_by(2) {
                let round = |d: usize| I::round(I::mul(I::load(keys.add(d * LANES)), inverse));
                I::store_w(to.add(d * LANES).cast(), I::words(round(d), round(d + 1)));
            }
        }
        for d in (0..value_dim).step_by(LANES) {
            let values = scratch.values.as_ptr().add(d);
            let mut largest = I::splat(0.0);
            for p in 0..positions {
                largest = I::max(largest, I::abs(I::load(values.add(p * value_dim))));
            }
            let (inverse, scale) = scale_and_inverse::<I>(largest);
            I::store(int16.value_scale.as_mut_ptr().add(d), scale);
            let to = int16.values.as_mut_ptr().add(d * 2);
            for p in (0..tiles * KV_TILE).step_by(2) {
                let round =
                    |p: usize| I::round(I::mul(I::load(values.add(p * value_dim)), inverse));
                I::store_w(
                    to.add(p * value_dim).cast(),
                    I::words(round(p), round(p + 1)),
                );
            }
        }
    }
}

/// Scores of `R` rows with the tiles of the KV block.
///
/// # Safety
/// Same as [`quantise_kv_block`], which has run for this KV block; the scratch has rows `row..row + R`.
#[inline(always)]
pub(super) unsafe fn scores<I: Isa, const R: usize>(
    scratch: &mut AttentionScratch,
    row: usize,
    dim: usize,
    tiles: usize,
) {
    // SAFETY: the scratch has `row + R` rows and `tiles` tiles, by the caller's contract.
    unsafe {
        let mut t = 0;
        while t < tiles {
            t += if I::WIDE && tiles - t >= 4 {
                dots::<I, R, 4>(scratch, row, t, dim);
                4
            } else {
                dots::<I, R, 1>(scratch, row, t, dim);
                1
            };
        }
    }
}

/// Dot products of `R` queries with the keys of `T` tiles.
///
/// # Safety
/// Same as [`scores`]; the KV block has tiles `tile..tile + T`.
#[inline(always)]
unsafe fn dots<I: Isa, const R: usize, const T: usize>(
    scratch: &mut AttentionScratch,
    row: usize,
    tile: usize,
    dim: usize,
) {
    let int16 = &scratch.int16;
    // SAFETY: rows, tiles and components lie inside the scratch's buffers, by the caller's contract.
    unsafe {
        let q = int16.q.as_ptr().add(row * dim);
        let keys = int16.keys.as_ptr().add(tile * KV_TILE * dim);
        let mut sums = [[I::zero_i(); T]; R];
        for d in (0..dim).step_by(2) {
            let mut k = [I::splat_w(0); T];
            for t in 0..T {
                k[t] = I::load_w(keys.add((t * dim + d) * KV_TILE).cast());
            }
            for r in 0..R {
                let q = I::splat_quad(q.add(r * dim + d).cast());
                for t in 0..T {
                    sums[r][t] = I::dot_words(sums[r][t], k[t], q);
                }
            }
        }
        for r in 0..R {
            let q_scale = I::splat(int16.q_scale[row + r]);
            for t in 0..T {
                let key_scale = I::load(int16.key_scale.as_ptr().add((tile + t) * KV_TILE));
                let score = I::mul(I::float(sums[r][t]), I::mul(q_scale, key_scale));
                I::store(
                    scratch
                        .scores
                        .as_mut_ptr()
                        .add((row + r) * KV_BLOCK + (tile + t) * KV_TILE),
                    score,
                );
            }
        }
    }
}

/// Quantises the weights of `R` rows for the KV block.
///
/// # Safety
/// Same as [`scores`].
#[inline(always)]
pub(super) unsafe fn quantise_weights<I: Isa, const R: usize>(
    scratch: &mut AttentionScratch,
    row: usize,
    tiles: usize,
) {
    // SAFETY: the scratch has rows `row..row + R` of `KV_BLOCK` scores and weights, by the caller's contract.
    unsafe {
        for row in row..row + R {
            let from = scratch.scores.as_ptr().add(row * KV_BLOCK);
            let mut largest = I::splat(0.0);
            for t in 0..tiles {
                largest = I::max(largest, I::load(from.add(t * KV_TILE)));
            }
            let largest = I::largest(largest);
            scratch.int16.weight_scale[row] = largest / REST;
            let (inverse, _) = scale_and_inverse::<I>(I::splat(largest));
            let to = scratch.int16.weights.as_mut_ptr().add(row * KV_BLOCK);
            for t in 0..tiles {
                let weight = I::round(I::mul(I::load(from.add(t * KV_TILE)), inverse));
                I::store_low_words(to.add(t * KV_TILE), weight);
            }
        }
    }
}

/// Adds the weighted values of the KV block to the sums of `R` rows.
///
/// # Safety
/// Same as [`scores`]; [`quantise_weights`] has run for these rows.
#[inline(always)]
pub(super) unsafe fn accumulate_values<I: Isa, const R: usize>(
    scratch: &mut AttentionScratch,
    row: usize,
    value_dim: usize,
    tiles: usize,
) {
    // SAFETY: `d` plus the width of each step is at most `value_dim`; the rest is this function's contract.
    unsafe {
        let mut d = 0;
        while d < value_dim {
            d += if I::WIDE && value_dim - d >= 4 * LANES {
                accumulate::<I, R, 4>(scratch, row, d, value_dim, tiles * KV_TILE);
                4 * LANES
            } else {
                accumulate::<I, R, 1>(scratch, row, d, value_dim, tiles * KV_TILE);
                LANES
            };
        }
    }
}

/// Adds weighted values to `V` vectors of `R` rows from component `d` on.
///
/// # Safety
/// Same as [`accumulate_values`]; `d + 16 V` is at most `value_dim`.
#[inline(always)]
unsafe fn accumulate<I: Isa, const R: usize, const V: usize>(
    scratch: &mut AttentionScratch,
    row: usize,
    d: usize,
    value_dim: usize,
    positions: usize,
) {
    let int16 = &scratch.int16;
    // SAFETY: rows, tiles and components lie inside the scratch's buffers, by the caller's contract.
    unsafe {
        let weights = int16.weights.as_ptr().add(row * KV_BLOCK);
        let values = int16.values.as_ptr().add(d * 2);
        let mut acc = [[I::zero_i(); V]; R];
        for p in (0..positions).step_by(2) {
            let mut value = [I::splat_w(0); V];
            for v in 0..V {
                value[v] = I::load_w(values.add(p * value_dim + v * LANES * 2).cast());
            }
            for r in 0..R {
                let weight = I::splat_quad(weights.add(r * KV_BLOCK + p).cast());
                for v in 0..V {
                    acc[r][v] = I::dot_words(acc[r][v], value[v], weight);
                }
            }
        }
        for r in 0..R {
            let weight_scale = I::splat(int16.weight_scale[row + r]);
            for v in 0..V {
                let value_scale = I::load(int16.value_scale.as_ptr().add(d + v * LANES));
                let sum = scratch
                    .sums
                    .as_mut_ptr()
                    .add((row + r) * value_dim + d + v * LANES);
                let scale = I::mul(weight_scale, value_scale);
                I::store(sum, I::fma(I::float(acc[r][v]), scale, I::load(sum)));
            }
        }
    }
}

//! The same in 16-bit integers, at twice the rate of floats.
//!
//! Queries, keys, weights and values are rounded to 11 and 12 bits by a scale per query, per key,
//! per query and slab, and per component and slab: about as exact as the f16 in which keys and
//! values are kept, and their products still fit 32 bits.

use crate::blocking::SLAB;
use crate::isa::{Isa, LANES};

use super::kv::TILE;
use super::scratch::{Desk, Words};

/// The largest integers: 2047 · 4095 · 256 components and 4095 · 4095 · 64 positions stay below 2³¹.
const QUERY: f32 = 2047.0;
const REST: f32 = 4095.0;

/// Whether heads of `dim` components can be multiplied in integers.
pub(super) fn fit(dim: usize) -> bool {
    dim <= 256 && dim.is_multiple_of(2)
}

impl Words {
    #[inline(always)]
    pub fn round_queries(&mut self, q: &[f32], dim: usize) {
        let rows = q.chunks_exact(dim).zip(self.q.chunks_exact_mut(dim));
        for ((from, to), unit) in rows.zip(&mut self.q_unit) {
            let largest = from.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            let inverse = if largest > 0.0 { QUERY / largest } else { 0.0 };
            *unit = largest / QUERY;
            for (to, from) in to.iter_mut().zip(from) {
                *to = (from * inverse).round_ties_even() as i16;
            }
        }
    }
}

/// `top / largest` and `largest / top`, lane by lane; zero and zero where all is zero.
///
/// # Safety
/// The machine has `I`.
#[inline(always)]
unsafe fn steps<I: Isa>(largest: I::F) -> (I::F, I::F) {
    // SAFETY: no pointers.
    unsafe {
        // Anything below is as good as zero, and this much keeps the inverse finite.
        let inverse = I::div(I::splat(REST), I::max(largest, I::splat(1e-30)));
        (inverse, I::mul(largest, I::splat(1.0 / REST)))
    }
}

/// Rounds the slab's keys and values, of which `positions` are there: what lies behind them is left
/// over from forgotten ones, and must not choose the scales.
///
/// # Safety
/// The machine has `I`; the desk was started for these dimensions and holds `tiles` tiles.
#[inline(always)]
pub(super) unsafe fn slab<I: Isa>(desk: &mut Desk, dim: usize, value_dim: usize, positions: usize) {
    let tiles = positions.div_ceil(TILE);
    let words = &mut desk.words;
    // SAFETY: integers have the floats' places, two to a lane.
    unsafe {
        for t in 0..tiles {
            let keys = desk.keys.as_ptr().add(t * TILE * dim);
            let mut largest = I::splat(0.0);
            for d in 0..dim {
                largest = I::max(largest, I::abs(I::load(keys.add(d * LANES))));
            }
            let (inverse, unit) = steps::<I>(largest);
            I::store(words.key_unit.as_mut_ptr().add(t * TILE), unit);
            let to = words.keys.as_mut_ptr().add(t * TILE * dim);
            for d in (0..dim).step_by(2) {
                let round = |d: usize| I::round(I::mul(I::load(keys.add(d * LANES)), inverse));
                I::store_w(to.add(d * LANES).cast(), I::words(round(d), round(d + 1)));
            }
        }
        for d in (0..value_dim).step_by(LANES) {
            let values = desk.values.as_ptr().add(d);
            let mut largest = I::splat(0.0);
            for p in 0..positions {
                largest = I::max(largest, I::abs(I::load(values.add(p * value_dim))));
            }
            let (inverse, unit) = steps::<I>(largest);
            I::store(words.value_unit.as_mut_ptr().add(d), unit);
            let to = words.values.as_mut_ptr().add(d * 2);
            for p in (0..tiles * TILE).step_by(2) {
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

/// Scores of `R` rows with the slab's tiles.
///
/// # Safety
/// As [`slab`], which was called for this slab.
#[inline(always)]
pub(super) unsafe fn scores<I: Isa, const R: usize>(
    desk: &mut Desk,
    row: usize,
    dim: usize,
    tiles: usize,
) {
    // SAFETY: `row + R` rows and `tiles` tiles are on the desk.
    unsafe {
        let mut t = 0;
        while t < tiles {
            t += if I::WIDE && tiles - t >= 4 {
                dots::<I, R, 4>(desk, row, t, dim);
                4
            } else {
                dots::<I, R, 1>(desk, row, t, dim);
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
    desk: &mut Desk,
    row: usize,
    tile: usize,
    dim: usize,
) {
    let words = &desk.words;
    // SAFETY: the caller's.
    unsafe {
        let q = words.q.as_ptr().add(row * dim);
        let keys = words.keys.as_ptr().add(tile * TILE * dim);
        let mut sums = [[I::zero_i(); T]; R];
        for d in (0..dim).step_by(2) {
            let mut k = [I::splat_w(0); T];
            for t in 0..T {
                k[t] = I::load_w(keys.add((t * dim + d) * TILE).cast());
            }
            for r in 0..R {
                let q = I::splat_quad(q.add(r * dim + d).cast());
                for t in 0..T {
                    sums[r][t] = I::dot_words(sums[r][t], k[t], q);
                }
            }
        }
        for r in 0..R {
            let q_unit = I::splat(words.q_unit[row + r]);
            for t in 0..T {
                let key_unit = I::load(words.key_unit.as_ptr().add((tile + t) * TILE));
                let score = I::mul(I::float(sums[r][t]), I::mul(q_unit, key_unit));
                I::store(
                    desk.scores
                        .as_mut_ptr()
                        .add((row + r) * SLAB + (tile + t) * TILE),
                    score,
                );
            }
        }
    }
}

/// Rounds the slab's weights of `R` rows.
///
/// # Safety
/// As [`scores`].
#[inline(always)]
pub(super) unsafe fn weights<I: Isa, const R: usize>(desk: &mut Desk, row: usize, tiles: usize) {
    // SAFETY: `row + R` rows are on the desk.
    unsafe {
        for row in row..row + R {
            let from = desk.scores.as_ptr().add(row * SLAB);
            let mut largest = I::splat(0.0);
            for t in 0..tiles {
                largest = I::max(largest, I::load(from.add(t * TILE)));
            }
            let largest = I::largest(largest);
            desk.words.weight_unit[row] = largest / REST;
            let (inverse, _) = steps::<I>(I::splat(largest));
            let to = desk.words.weights.as_mut_ptr().add(row * SLAB);
            for t in 0..tiles {
                let weight = I::round(I::mul(I::load(from.add(t * TILE)), inverse));
                I::store_low_words(to.add(t * TILE), weight);
            }
        }
    }
}

/// Adds the slab's weighted values to the sums of `R` rows.
///
/// # Safety
/// As [`scores`]; [`weights`] was called for these rows.
#[inline(always)]
pub(super) unsafe fn gather<I: Isa, const R: usize>(
    desk: &mut Desk,
    row: usize,
    value_dim: usize,
    tiles: usize,
) {
    // SAFETY: vectors end at `value_dim`.
    unsafe {
        let mut d = 0;
        while d < value_dim {
            d += if I::WIDE && value_dim - d >= 4 * LANES {
                accumulate::<I, R, 4>(desk, row, d, value_dim, tiles * TILE);
                4 * LANES
            } else {
                accumulate::<I, R, 1>(desk, row, d, value_dim, tiles * TILE);
                LANES
            };
        }
    }
}

/// Adds weighted values to `V` vectors of `R` rows from component `d` on.
///
/// # Safety
/// As [`gather`].
#[inline(always)]
unsafe fn accumulate<I: Isa, const R: usize, const V: usize>(
    desk: &mut Desk,
    row: usize,
    d: usize,
    value_dim: usize,
    positions: usize,
) {
    let words = &desk.words;
    // SAFETY: the caller's.
    unsafe {
        let weights = words.weights.as_ptr().add(row * SLAB);
        let values = words.values.as_ptr().add(d * 2);
        let mut acc = [[I::zero_i(); V]; R];
        for p in (0..positions).step_by(2) {
            let mut value = [I::splat_w(0); V];
            for v in 0..V {
                value[v] = I::load_w(values.add(p * value_dim + v * LANES * 2).cast());
            }
            for r in 0..R {
                let weight = I::splat_quad(weights.add(r * SLAB + p).cast());
                for v in 0..V {
                    acc[r][v] = I::dot_words(acc[r][v], value[v], weight);
                }
            }
        }
        for r in 0..R {
            let weight_unit = I::splat(words.weight_unit[row + r]);
            for v in 0..V {
                let value_unit = I::load(words.value_unit.as_ptr().add(d + v * LANES));
                let sum = desk
                    .sums
                    .as_mut_ptr()
                    .add((row + r) * value_dim + d + v * LANES);
                let unit = I::mul(weight_unit, value_unit);
                I::store(sum, I::fma(I::float(acc[r][v]), unit, I::load(sum)));
            }
        }
    }
}

//! Loops of attention in floats.

use half::f16;

use crate::isa::{Isa, LANES};

use super::kv::{KV_SCALE_GROUP, KV_TILE, KvTile};
use super::scratch::AttentionScratch;
use crate::blocking::{KV_BLOCK, KV_BLOCK_TILES};

/// Element types of the cache that load as floats.
pub(super) trait KvFloat: Copy {
    /// # Safety
    /// The machine has `I`; `p` is readable for 16 numbers.
    unsafe fn load<I: Isa>(p: *const Self) -> I::F;
}

impl KvFloat for f32 {
    #[inline(always)]
    unsafe fn load<I: Isa>(p: *const f32) -> I::F {
        // SAFETY: the machine has `I`, and `p` is readable for 16 numbers, by this method's contract.
        unsafe { I::load(p) }
    }
}

impl KvFloat for f16 {
    #[inline(always)]
    unsafe fn load<I: Isa>(p: *const f16) -> I::F {
        // SAFETY: the machine has `I`, and `p` is readable for 16 numbers, by this method's contract.
        unsafe { I::load_f16(p.cast()) }
    }
}

/// Loads tiles of keys as floats.
///
/// # Safety
/// The machine has `I`; `to` has room for `tiles × dim × 16`.
#[inline(always)]
pub(super) unsafe fn load_keys<I: Isa>(keys: KvTile, dim: usize, tiles: usize, to: *mut f32) {
    // SAFETY: a tile has `dim` vectors, and a vector of scales for every KV_SCALE_GROUP of them.
    unsafe {
        for i in 0..tiles * dim {
            let at = i * LANES;
            let v = match keys {
                KvTile::F32(k) => I::load(k.as_ptr().add(at)),
                KvTile::F16(k) => I::load_f16(k.as_ptr().add(at).cast()),
                KvTile::Q8(k, s) => {
                    let group = i / dim * dim.div_ceil(KV_SCALE_GROUP) + i % dim / KV_SCALE_GROUP;
                    let scale = I::load_f16(s.as_ptr().add(group * LANES).cast());
                    I::mul(I::load_i8(k.as_ptr().add(at)), scale)
                }
            };
            I::store(to.add(at), v);
        }
    }
}

/// Loads tiles of values as floats.
///
/// # Safety
/// The machine has `I`; `to` has room for `tiles × 16 × value_dim`.
#[inline(always)]
pub(super) unsafe fn load_values<I: Isa>(
    values: KvTile,
    value_dim: usize,
    groups: usize,
    tiles: usize,
    to: *mut f32,
) {
    // SAFETY: a tile has 16 rows of whole vectors, and `groups` scales for each.
    unsafe {
        for p in 0..tiles * KV_TILE {
            for d in (0..value_dim).step_by(LANES) {
                let at = p * value_dim + d;
                let v = match values {
                    KvTile::F32(v) => I::load(v.as_ptr().add(at)),
                    KvTile::F16(v) => I::load_f16(v.as_ptr().add(at).cast()),
                    KvTile::Q8(v, s) => {
                        let scale = s[p * groups + d / KV_SCALE_GROUP].to_f32();
                        I::mul(I::load_i8(v.as_ptr().add(at)), I::splat(scale))
                    }
                };
                I::store(to.add(at), v);
            }
        }
    }
}

/// Scores of `R` rows with the KV block's tiles of keys.
///
/// # Safety
/// The machine has `I`; the scratch has rows `row..row + R`, and `keys` are `tiles` tiles.
#[inline(always)]
pub(super) unsafe fn scores<I: Isa, K: KvFloat, const R: usize>(
    scratch: &mut AttentionScratch,
    keys: *const K,
    row: usize,
    dim: usize,
    tiles: usize,
) {
    // SAFETY: the scratch has rows `row..row + R`, and `tiles` tiles fit a KV block, by the caller's contract.
    unsafe {
        let q = scratch.q.as_ptr().add(row * dim);
        let out = scratch.scores.as_mut_ptr().add(row * KV_BLOCK);
        let mut t = 0;
        while t < tiles {
            let keys = keys.add(t * KV_TILE * dim);
            let to = out.add(t * KV_TILE);
            t += if I::WIDE && tiles - t >= KV_BLOCK_TILES {
                dots::<I, K, R, KV_BLOCK_TILES>(q, keys, dim, to);
                KV_BLOCK_TILES
            } else {
                dots::<I, K, R, 1>(q, keys, dim, to);
                1
            };
        }
    }
}

/// Dot products of `R` queries with the keys of `T` tiles.
///
/// # Safety
/// Same as [`scores`]: `q` has `R` rows, `keys` have `T` tiles, and `to` has `R` rows of scores.
#[inline(always)]
unsafe fn dots<I: Isa, K: KvFloat, const R: usize, const T: usize>(
    q: *const f32,
    keys: *const K,
    dim: usize,
    to: *mut f32,
) {
    // SAFETY: every index stays inside the rows, tiles and vectors that the caller's contract names.
    unsafe {
        let mut sums = [[I::splat(0.0); T]; R];
        for d in 0..dim {
            let mut k = [I::splat(0.0); T];
            for t in 0..T {
                k[t] = K::load::<I>(keys.add((t * dim + d) * KV_TILE));
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
                I::store(to.add(r * KV_BLOCK + t * KV_TILE), sums[r][t]);
            }
        }
    }
}

/// Adds the weighted values of the KV block to the sums of `R` rows.
///
/// # Safety
/// The machine has `I`; the scratch has rows `row..row + R` and their weights, and `values` are `positions` rows.
#[inline(always)]
pub(super) unsafe fn accumulate_values<I: Isa, K: KvFloat, const R: usize>(
    scratch: &mut AttentionScratch,
    values: *const K,
    row: usize,
    value_dim: usize,
    positions: usize,
) {
    // SAFETY: the scratch has rows `row..row + R` and `values` are `positions` rows, by the caller's contract.
    unsafe {
        let weights = scratch.scores.as_ptr().add(row * KV_BLOCK);
        let sums = scratch.sums.as_mut_ptr().add(row * value_dim);
        let mut d = 0;
        while d < value_dim {
            let values = values.add(d);
            d += if I::WIDE && value_dim - d >= 4 * LANES {
                accumulate::<I, K, R, 4>(weights, values, value_dim, positions, sums.add(d));
                4 * LANES
            } else {
                accumulate::<I, K, R, 1>(weights, values, value_dim, positions, sums.add(d));
                LANES
            };
        }
    }
}

/// Adds weighted values to `V` vectors of `R` rows.
///
/// # Safety
/// Same as [`accumulate_values`]: all pointers have `R` or `positions` rows, and `V` vectors left in each.
#[inline(always)]
unsafe fn accumulate<I: Isa, K: KvFloat, const R: usize, const V: usize>(
    weights: *const f32,
    values: *const K,
    value_dim: usize,
    positions: usize,
    sums: *mut f32,
) {
    // SAFETY: every index stays inside the rows, tiles and vectors that the caller's contract names.
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
                value[v] = K::load::<I>(values.add(p * value_dim + v * LANES));
            }
            for r in 0..R {
                let weight = I::splat(*weights.add(r * KV_BLOCK + p));
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

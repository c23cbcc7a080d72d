//! The vector operations of the loops.
//!
//! Every loop of this crate is generic over [`Isa`], and every vector has 16 lanes: one AVX-512 register, two AVX2
//! registers, four of NEON, or an array. A level's file implements these operations for its instructions and nothing else;
//! [`crate::dispatch`] compiles the loops once per level.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
mod arrays;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod peak;
pub(crate) mod scalar;

pub(crate) use arrays::LANES;

/// Vectors of 16 lanes at one instruction-set level.
///
/// # Safety
/// Callers: the machine has the level's instructions; pointers are valid for the 16 elements or 64 bytes read or
/// written, and need no alignment. Implementors: a method does what its doc comment says, so that the loops built on it
/// stay in bounds.
pub(crate) unsafe trait Isa: Copy {
    /// 16 floats.
    type F: Copy;
    /// 16 signed 32-bit integers.
    type I: Copy;
    /// 64 bytes: four for each of 16 lanes.
    type W: Copy;

    /// True if [`Isa::dot_bytes`] takes full bytes as signed numbers (otherwise with 128 added).
    const SIGNED_BYTES: bool;
    /// True if there are 32 registers of 16 lanes, room for larger tiles.
    const WIDE: bool;
    /// True if [`Isa::dot_short`] takes less time than [`Isa::dot`].
    const SHORT: bool = false;
    /// True if [`Isa::dot_words`] takes less time than the same products in floats.
    const WORDS: bool = true;

    unsafe fn splat(x: f32) -> Self::F;
    unsafe fn load(p: *const f32) -> Self::F;
    unsafe fn load_f16(p: *const u16) -> Self::F;
    unsafe fn load_bf16(p: *const u16) -> Self::F;
    unsafe fn load_i8(p: *const i8) -> Self::F;
    unsafe fn load_u8(p: *const u8) -> Self::F;
    unsafe fn store(p: *mut f32, x: Self::F);
    unsafe fn add(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn sub(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn div(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn max(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn min(a: Self::F, b: Self::F) -> Self::F;
    unsafe fn abs(a: Self::F) -> Self::F;
    /// `a · b + c`.
    unsafe fn fma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `c − a · b`.
    unsafe fn fnma(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Swaps lanes 2j and 2j + 1.
    unsafe fn swap_pairs(a: Self::F) -> Self::F;
    unsafe fn sum(a: Self::F) -> f32;
    unsafe fn largest(a: Self::F) -> f32;
    /// `a · 2ⁿ` for whole n in −126..=127 and results that are normal numbers.
    unsafe fn scale_by_power(a: Self::F, n: Self::I) -> Self::F;

    unsafe fn zero_i() -> Self::I;
    /// Rounds to the nearest integer, ties to even.
    unsafe fn round(a: Self::F) -> Self::I;
    unsafe fn float(a: Self::I) -> Self::F;
    unsafe fn sum_i(a: Self::I) -> i32;
    /// Stores the low byte of each lane.
    unsafe fn store_low_bytes(p: *mut i8, a: Self::I);

    /// Stores the low 16 bits of each lane.
    unsafe fn store_low_words(p: *mut i16, a: Self::I);
    /// The low 16 bits of both, side by side in each lane.
    unsafe fn words(first: Self::I, second: Self::I) -> Self::W;
    /// Adds to each lane the dot product of its two signed 16-bit words.
    unsafe fn dot_words(acc: Self::I, a: Self::W, b: Self::W) -> Self::I;

    /// Prefetches the cache line at `p`, which may be an invalid address.
    unsafe fn prefetch(p: *const u8);
    unsafe fn load_w(p: *const u8) -> Self::W;
    unsafe fn store_w(p: *mut u8, w: Self::W);
    unsafe fn splat_w(x: u8) -> Self::W;
    /// The same four bytes in every lane.
    unsafe fn splat_quad(p: *const i8) -> Self::W;
    unsafe fn and(a: Self::W, b: Self::W) -> Self::W;
    unsafe fn or(a: Self::W, b: Self::W) -> Self::W;
    unsafe fn xor(a: Self::W, b: Self::W) -> Self::W;
    /// Shifts 16-bit units right; the caller masks bits that cross bytes.
    unsafe fn shr(a: Self::W, n: u32) -> Self::W;
    /// Shifts 16-bit units left; the caller masks bits that cross bytes.
    unsafe fn shl(a: Self::W, n: u32) -> Self::W;
    /// The bytes of `table` at the indices in `places`, each below 16.
    unsafe fn look_up(table: &[u8; 16], places: Self::W) -> Self::W;
    /// Adds to each lane the dot product of its four unsigned weights (at most 63) and its four
    /// signed activations (−127..=127).
    unsafe fn dot(acc: Self::I, weights: Self::W, x: Self::W) -> Self::I;
    /// The same for weights of a full byte; see [`Isa::SIGNED_BYTES`].
    unsafe fn dot_bytes(acc: Self::I, weights: Self::W, x: Self::W) -> Self::I;

    /// [`Isa::dot`] with sums for [`Isa::add_short`], which may be 16 bits wide, two per lane; the caller adds no more
    /// than fit.
    #[inline(always)]
    unsafe fn dot_short(acc: Self::I, weights: Self::W, x: Self::W) -> Self::I {
        // SAFETY: the machine has the level, by this method's contract, which `dot` shares.
        unsafe { Self::dot(acc, weights, x) }
    }
    /// Adds the sums that [`Isa::dot_short`] accumulated from zero.
    unsafe fn add_short(acc: Self::I, short: Self::I) -> Self::I;

    /// 16 bytes each of 16 rows that begin `stride` bytes apart: lane r of vector i holds bytes
    /// 4i..4i + 4 of row r.
    #[inline(always)]
    unsafe fn load_quads(p: *const u8, stride: usize) -> [Self::W; 4] {
        // SAFETY: each of the 16 rows is readable for 16 bytes, by this method's contract; each array is 64 bytes.
        unsafe {
            // No closure: it would be compiled without the level's features.
            let [a, b, c, d] = arrays::load_quads(p, stride);
            [
                Self::load_w(a.as_ptr()),
                Self::load_w(b.as_ptr()),
                Self::load_w(c.as_ptr()),
                Self::load_w(d.as_ptr()),
            ]
        }
    }

    /// The low halves of all lanes, then the high halves.
    #[inline(always)]
    unsafe fn unzip_halves(w: Self::W) -> Self::W {
        let mut bytes = [0; 4 * LANES];
        // SAFETY: the array has 64 bytes.
        unsafe {
            Self::store_w(bytes.as_mut_ptr(), w);
            Self::load_w(arrays::unzip_halves(&bytes).as_ptr())
        }
    }

    /// The lowest bytes of all lanes, then the next, the next and the highest.
    #[inline(always)]
    unsafe fn unzip_bytes(w: Self::W) -> Self::W {
        let mut bytes = [0; 4 * LANES];
        // SAFETY: the array has 64 bytes.
        unsafe {
            Self::store_w(bytes.as_mut_ptr(), w);
            Self::load_w(arrays::unzip_bytes(&bytes).as_ptr())
        }
    }

    /// `eˣ` with a relative error below 4e-7 up to 88; inputs below −87 give about 1e-38.
    #[inline(always)]
    unsafe fn exp(x: Self::F) -> Self::F {
        // SAFETY: the machine has the level, by this method's contract; there are no pointers.
        unsafe {
            let x = Self::min(Self::max(x, Self::splat(-87.0)), Self::splat(88.0));
            let n = Self::round(Self::mul(x, Self::splat(std::f32::consts::LOG2_E)));
            let nf = Self::float(n);
            // ln 2 in two parts: the first has few enough bits that the product is exact.
            let r = Self::fnma(nf, Self::splat(0.693_359_4), x);
            let r = Self::fnma(nf, Self::splat(-2.121_944_4e-4), r);
            let mut p = Self::splat(1.987_569_1e-4);
            for c in [
                1.398_2e-3,
                8.333_452e-3,
                4.166_579_6e-2,
                1.666_666_5e-1,
                0.5,
            ] {
                p = Self::fma(p, r, Self::splat(c));
            }
            let p = Self::fma(Self::mul(p, r), r, Self::add(r, Self::splat(1.0)));
            Self::scale_by_power(p, n)
        }
    }
}

#[cfg(test)]
mod tests;

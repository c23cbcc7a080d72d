//! Arrays of 16: the reference for every level, and the level of unknown machines.

use half::{bf16, f16};

use super::{Isa, LANES, arrays};

/// Portable Rust.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

type F = [f32; LANES];
type I = [i32; LANES];
type W = [u8; 4 * LANES];

#[inline(always)]
fn map(a: F, f: impl Fn(f32) -> f32) -> F {
    a.map(f)
}

#[inline(always)]
fn zip(a: F, b: F, f: impl Fn(f32, f32) -> f32) -> F {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[inline(always)]
fn zip_w(a: W, b: W, f: impl Fn(u8, u8) -> u8) -> W {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[inline(always)]
fn units(a: W, f: impl Fn(u16) -> u16) -> W {
    let mut out = [0; 4 * LANES];
    for (out, unit) in out.as_chunks_mut().0.iter_mut().zip(a.as_chunks().0) {
        *out = f(u16::from_le_bytes(*unit)).to_le_bytes();
    }
    out
}

/// Reads an array through an unaligned pointer.
macro_rules! read {
    ($p:expr, $t:ty) => {
        // SAFETY: the pointer is readable for the array's elements, by the method's contract; an unaligned read needs no more.
        unsafe { $p.cast::<$t>().read_unaligned() }
    };
}

/// Writes an array through an unaligned pointer.
macro_rules! write {
    ($p:expr, $t:ty, $value:expr) => {
        // SAFETY: the pointer is writable for the array's elements, by the method's contract; an unaligned write needs no more.
        unsafe { $p.cast::<$t>().write_unaligned($value) }
    };
}

// SAFETY: plain Rust runs anywhere, and only the elements named by the trait are touched.
unsafe impl Isa for Scalar {
    type F = F;
    type I = I;
    type W = W;

    const SIGNED_BYTES: bool = false;
    const WIDE: bool = false;

    #[inline(always)]
    unsafe fn splat(x: f32) -> F {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> F {
        read!(p, F)
    }
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> F {
        read!(p, [u16; LANES]).map(|b| f16::from_bits(b).to_f32())
    }
    #[inline(always)]
    unsafe fn load_bf16(p: *const u16) -> F {
        read!(p, [u16; LANES]).map(|b| bf16::from_bits(b).to_f32())
    }
    #[inline(always)]
    unsafe fn load_i8(p: *const i8) -> F {
        read!(p, [i8; LANES]).map(f32::from)
    }
    #[inline(always)]
    unsafe fn load_u8(p: *const u8) -> F {
        read!(p, [u8; LANES]).map(f32::from)
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, x: F) {
        write!(p, F, x);
    }
    #[inline(always)]
    unsafe fn add(a: F, b: F) -> F {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(a: F, b: F) -> F {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(a: F, b: F) -> F {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn div(a: F, b: F) -> F {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    unsafe fn max(a: F, b: F) -> F {
        zip(a, b, f32::max)
    }
    #[inline(always)]
    unsafe fn min(a: F, b: F) -> F {
        zip(a, b, f32::min)
    }
    #[inline(always)]
    unsafe fn abs(a: F) -> F {
        map(a, f32::abs)
    }
    #[inline(always)]
    unsafe fn fma(a: F, b: F, c: F) -> F {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn fnma(a: F, b: F, c: F) -> F {
        std::array::from_fn(|i| c[i] - a[i] * b[i])
    }
    #[inline(always)]
    unsafe fn swap_pairs(a: F) -> F {
        std::array::from_fn(|i| a[i ^ 1])
    }
    #[inline(always)]
    unsafe fn sum(a: F) -> f32 {
        a.iter().sum()
    }
    #[inline(always)]
    unsafe fn largest(a: F) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
    #[inline(always)]
    unsafe fn scale_by_power(a: F, n: I) -> F {
        std::array::from_fn(|i| a[i] * f32::from_bits(((n[i] + 127) as u32) << 23))
    }
    #[inline(always)]
    unsafe fn zero_i() -> I {
        [0; LANES]
    }
    #[inline(always)]
    unsafe fn round(a: F) -> I {
        a.map(|x| x.round_ties_even() as i32)
    }
    #[inline(always)]
    unsafe fn float(a: I) -> F {
        a.map(|x| x as f32)
    }
    #[inline(always)]
    unsafe fn sum_i(a: I) -> i32 {
        a.iter().sum()
    }
    #[inline(always)]
    unsafe fn store_low_bytes(p: *mut i8, a: I) {
        write!(p, [i8; LANES], a.map(|x| x as i8));
    }
    #[inline(always)]
    unsafe fn store_low_words(p: *mut i16, a: I) {
        write!(p, [i16; LANES], a.map(|x| x as i16));
    }
    #[inline(always)]
    unsafe fn words(first: I, second: I) -> W {
        std::array::from_fn(|i| {
            let lane = [first[i / 4].to_le_bytes(), second[i / 4].to_le_bytes()];
            lane[i % 4 / 2][i % 2]
        })
    }
    #[inline(always)]
    unsafe fn dot_words(acc: I, a: W, b: W) -> I {
        let word = |w: &W, i: usize| i32::from(i16::from_le_bytes([w[i], w[i + 1]]));
        std::array::from_fn(|i| {
            let (first, second) = (4 * i, 4 * i + 2);
            acc[i] + word(&a, first) * word(&b, first) + word(&a, second) * word(&b, second)
        })
    }
    #[inline(always)]
    unsafe fn prefetch(_: *const u8) {}
    #[inline(always)]
    unsafe fn load_w(p: *const u8) -> W {
        read!(p, W)
    }
    #[inline(always)]
    unsafe fn store_w(p: *mut u8, w: W) {
        write!(p, W, w);
    }
    #[inline(always)]
    unsafe fn load_quads(p: *const u8, stride: usize) -> [W; 4] {
        // SAFETY: each of the 16 rows is readable for 16 bytes, by this method's contract.
        unsafe { arrays::load_quads(p, stride) }
    }
    #[inline(always)]
    unsafe fn unzip_halves(w: W) -> W {
        arrays::unzip_halves(&w)
    }
    #[inline(always)]
    unsafe fn unzip_bytes(w: W) -> W {
        arrays::unzip_bytes(&w)
    }
    #[inline(always)]
    unsafe fn splat_w(x: u8) -> W {
        [x; 4 * LANES]
    }
    #[inline(always)]
    unsafe fn splat_quad(p: *const i8) -> W {
        let quad = read!(p, [u8; 4]);
        std::array::from_fn(|i| quad[i % 4])
    }
    #[inline(always)]
    unsafe fn and(a: W, b: W) -> W {
        zip_w(a, b, |a, b| a & b)
    }
    #[inline(always)]
    unsafe fn or(a: W, b: W) -> W {
        zip_w(a, b, |a, b| a | b)
    }
    #[inline(always)]
    unsafe fn xor(a: W, b: W) -> W {
        zip_w(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    unsafe fn shr(a: W, n: u32) -> W {
        units(a, |u| u >> n)
    }
    #[inline(always)]
    unsafe fn shl(a: W, n: u32) -> W {
        units(a, |u| u << n)
    }
    #[inline(always)]
    unsafe fn look_up(table: &[u8; 16], places: W) -> W {
        places.map(|place| table[usize::from(place & 15)])
    }
    #[inline(always)]
    unsafe fn dot(acc: I, weights: W, x: W) -> I {
        std::array::from_fn(|i| {
            let product =
                |j: usize| i32::from(weights[4 * i + j]) * i32::from(x[4 * i + j].cast_signed());
            acc[i] + product(0) + product(1) + product(2) + product(3)
        })
    }
    #[inline(always)]
    unsafe fn add_short(acc: I, short: I) -> I {
        std::array::from_fn(|i| acc[i] + short[i])
    }
    #[inline(always)]
    unsafe fn dot_bytes(acc: I, weights: W, x: W) -> I {
        // SAFETY: plain Rust.
        unsafe { Self::dot(acc, weights, x) }
    }
}

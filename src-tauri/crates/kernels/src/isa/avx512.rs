//! AVX-512 F, BW, DQ, VL and VNNI: a vector is one register.

use std::arch::x86_64::*;

use super::Isa;

/// AVX-512 with the int8 dot product.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// Methods that are one expression of intrinsics.
macro_rules! methods {
    ($($name:ident($($arg:ident: $t:ty),*) $(-> $r:ty)? { $($body:tt)* })*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: $t),*) $(-> $r)? {
                // SAFETY: the trait's contract is the intrinsics': the machine has them, and
                // pointers are good for a whole vector, unaligned.
                unsafe { $($body)* }
            }
        )*
    };
}

// SAFETY: each method touches exactly the elements that the trait names.
unsafe impl Isa for Avx512 {
    type F = __m512;
    type I = __m512i;
    type W = __m512i;

    const SIGNED_BYTES: bool = false;
    const WIDE: bool = true;

    methods! {
        splat(x: f32) -> __m512 { _mm512_set1_ps(x) }
        load(p: *const f32) -> __m512 { _mm512_loadu_ps(p) }
        load_f16(p: *const u16) -> __m512 { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) }
        load_bf16(p: *const u16) -> __m512 {
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast()))))
        }
        load_i8(p: *const i8) -> __m512 { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast()))) }
        load_u8(p: *const u8) -> __m512 { _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(p.cast()))) }
        store(p: *mut f32, x: __m512) { _mm512_storeu_ps(p, x) }
        add(a: __m512, b: __m512) -> __m512 { _mm512_add_ps(a, b) }
        sub(a: __m512, b: __m512) -> __m512 { _mm512_sub_ps(a, b) }
        mul(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        div(a: __m512, b: __m512) -> __m512 { _mm512_div_ps(a, b) }
        max(a: __m512, b: __m512) -> __m512 { _mm512_max_ps(a, b) }
        min(a: __m512, b: __m512) -> __m512 { _mm512_min_ps(a, b) }
        abs(a: __m512) -> __m512 { _mm512_abs_ps(a) }
        fma(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fnma(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fnmadd_ps(a, b, c) }
        swap_pairs(a: __m512) -> __m512 { _mm512_permute_ps::<0b10_11_00_01>(a) }
        sum(a: __m512) -> f32 { _mm512_reduce_add_ps(a) }
        largest(a: __m512) -> f32 { _mm512_reduce_max_ps(a) }
        scale_by_power(a: __m512, n: __m512i) -> __m512 { _mm512_scalef_ps(a, _mm512_cvtepi32_ps(n)) }
        zero_i() -> __m512i { _mm512_setzero_si512() }
        round(a: __m512) -> __m512i { _mm512_cvtps_epi32(a) }
        float(a: __m512i) -> __m512 { _mm512_cvtepi32_ps(a) }
        sum_i(a: __m512i) -> i32 { _mm512_reduce_add_epi32(a) }
        store_low_bytes(p: *mut i8, a: __m512i) { _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(a)) }
        store_low_words(p: *mut i16, a: __m512i) { _mm256_storeu_si256(p.cast(), _mm512_cvtepi32_epi16(a)) }
        words(first: __m512i, second: __m512i) -> __m512i {
            _mm512_mask_blend_epi16(0xaaaa_aaaa, first, _mm512_slli_epi32::<16>(second))
        }
        dot_words(acc: __m512i, a: __m512i, b: __m512i) -> __m512i { _mm512_dpwssd_epi32(acc, a, b) }
        load_w(p: *const u8) -> __m512i { _mm512_loadu_si512(p.cast()) }
        store_w(p: *mut u8, w: __m512i) { _mm512_storeu_si512(p.cast(), w) }
        splat_w(x: u8) -> __m512i { _mm512_set1_epi8(x.cast_signed()) }
        splat_quad(p: *const i8) -> __m512i { _mm512_set1_epi32(p.cast::<i32>().read_unaligned()) }
        and(a: __m512i, b: __m512i) -> __m512i { _mm512_and_si512(a, b) }
        or(a: __m512i, b: __m512i) -> __m512i { _mm512_or_si512(a, b) }
        xor(a: __m512i, b: __m512i) -> __m512i { _mm512_xor_si512(a, b) }
        shr(a: __m512i, n: u32) -> __m512i { _mm512_srl_epi16(a, _mm_cvtsi32_si128(n.cast_signed())) }
        shl(a: __m512i, n: u32) -> __m512i { _mm512_sll_epi16(a, _mm_cvtsi32_si128(n.cast_signed())) }
        dot(acc: __m512i, weights: __m512i, x: __m512i) -> __m512i { _mm512_dpbusd_epi32(acc, weights, x) }
        dot_bytes(acc: __m512i, weights: __m512i, x: __m512i) -> __m512i { _mm512_dpbusd_epi32(acc, weights, x) }
    }
}

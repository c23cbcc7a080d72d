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
        prefetch(p: *const u8) { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        load_w(p: *const u8) -> __m512i { _mm512_loadu_si512(p.cast()) }
        store_w(p: *mut u8, w: __m512i) { _mm512_storeu_si512(p.cast(), w) }
        load_quads(p: *const u8, stride: usize) -> [__m512i; 4] {
            // Rows r, r + 4, r + 8 and r + 12 in the quarters of a register.
            let mut rows = [_mm512_setzero_si512(); 4];
            for (r, rows) in rows.iter_mut().enumerate() {
                let p = p.add(r * stride);
                let (a, b) = (_mm_loadu_si128(p.cast()), _mm_loadu_si128(p.add(4 * stride).cast()));
                let (c, d) = (_mm_loadu_si128(p.add(8 * stride).cast()), _mm_loadu_si128(p.add(12 * stride).cast()));
                let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b);
                let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(c), d);
                *rows = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            }
            let [a, b, c, d] = rows;
            let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
            [
                _mm512_unpacklo_epi64(ab, cd),
                _mm512_unpackhi_epi64(ab, cd),
                _mm512_unpacklo_epi64(ab_high, cd_high),
                _mm512_unpackhi_epi64(ab_high, cd_high),
            ]
        }
        unzip_halves(w: __m512i) -> __m512i {
            let order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
            let w = _mm512_shuffle_epi8(w, _mm512_broadcast_i32x4(order));
            _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), w)
        }
        unzip_bytes(w: __m512i) -> __m512i {
            let order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let order = _mm512_broadcast_i32x4(order);
            let quads = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_permutexvar_epi32(quads, _mm512_shuffle_epi8(w, order))
        }
        splat_w(x: u8) -> __m512i { _mm512_set1_epi8(x.cast_signed()) }
        splat_quad(p: *const i8) -> __m512i { _mm512_set1_epi32(p.cast::<i32>().read_unaligned()) }
        and(a: __m512i, b: __m512i) -> __m512i { _mm512_and_si512(a, b) }
        or(a: __m512i, b: __m512i) -> __m512i { _mm512_or_si512(a, b) }
        xor(a: __m512i, b: __m512i) -> __m512i { _mm512_xor_si512(a, b) }
        shr(a: __m512i, n: u32) -> __m512i { _mm512_srl_epi16(a, _mm_cvtsi32_si128(n.cast_signed())) }
        shl(a: __m512i, n: u32) -> __m512i { _mm512_sll_epi16(a, _mm_cvtsi32_si128(n.cast_signed())) }
        look_up(table: &[u8; 16], places: __m512i) -> __m512i {
            let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
            _mm512_shuffle_epi8(table, places)
        }
        dot(acc: __m512i, weights: __m512i, x: __m512i) -> __m512i { _mm512_dpbusd_epi32(acc, weights, x) }
        add_short(acc: __m512i, short: __m512i) -> __m512i { _mm512_add_epi32(acc, short) }
        dot_bytes(acc: __m512i, weights: __m512i, x: __m512i) -> __m512i { _mm512_dpbusd_epi32(acc, weights, x) }
    }
}

//! AVX2, FMA and F16C, with or without the 256-bit int8 dot product: a vector is two registers.

use std::arch::x86_64::*;

use super::Isa;

/// AVX2; `VNNI` adds AVX-VNNI.
#[derive(Clone, Copy)]
pub(crate) struct Avx2<const VNNI: bool>;

type F = [__m256; 2];
type I = [__m256i; 2];

/// Methods that are one expression of intrinsics; `each a, b => e` does `e` to both halves.
macro_rules! methods {
    ($($name:ident($($arg:ident: $t:ty),*) $(-> $r:ty)? { $($body:tt)* })*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: $t),*) $(-> $r)? {
                // SAFETY: the trait's contract is the intrinsics': the machine has them, and
                // pointers are good for both halves of a vector, unaligned.
                unsafe { $($body)* }
            }
        )*
    };
}

macro_rules! each {
    ($($a:ident),* => $f:expr) => {{
        let low = { $(let $a = $a[0];)* $f };
        let high = { $(let $a = $a[1];)* $f };
        [low, high]
    }};
}

// SAFETY: each method touches exactly the elements that the trait names.
unsafe impl<const VNNI: bool> Isa for Avx2<VNNI> {
    type F = F;
    type I = I;
    type W = I;

    const SIGNED_BYTES: bool = !VNNI;
    const WIDE: bool = false;

    methods! {
        splat(x: f32) -> F { [_mm256_set1_ps(x); 2] }
        load(p: *const f32) -> F { [_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))] }
        load_f16(p: *const u16) -> F {
            let h = [_mm_loadu_si128(p.cast()), _mm_loadu_si128(p.add(8).cast())];
            each!(h => _mm256_cvtph_ps(h))
        }
        load_bf16(p: *const u16) -> F {
            let h = [_mm_loadu_si128(p.cast()), _mm_loadu_si128(p.add(8).cast())];
            each!(h => _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(h))))
        }
        load_i8(p: *const i8) -> F {
            let b = [_mm_loadl_epi64(p.cast()), _mm_loadl_epi64(p.add(8).cast())];
            each!(b => _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b)))
        }
        load_u8(p: *const u8) -> F {
            let b = [_mm_loadl_epi64(p.cast()), _mm_loadl_epi64(p.add(8).cast())];
            each!(b => _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(b)))
        }
        store(p: *mut f32, x: F) {
            _mm256_storeu_ps(p, x[0]);
            _mm256_storeu_ps(p.add(8), x[1])
        }
        add(a: F, b: F) -> F { each!(a, b => _mm256_add_ps(a, b)) }
        sub(a: F, b: F) -> F { each!(a, b => _mm256_sub_ps(a, b)) }
        mul(a: F, b: F) -> F { each!(a, b => _mm256_mul_ps(a, b)) }
        div(a: F, b: F) -> F { each!(a, b => _mm256_div_ps(a, b)) }
        max(a: F, b: F) -> F { each!(a, b => _mm256_max_ps(a, b)) }
        min(a: F, b: F) -> F { each!(a, b => _mm256_min_ps(a, b)) }
        abs(a: F) -> F { each!(a => _mm256_andnot_ps(_mm256_set1_ps(-0.0), a)) }
        fma(a: F, b: F, c: F) -> F { each!(a, b, c => _mm256_fmadd_ps(a, b, c)) }
        fnma(a: F, b: F, c: F) -> F { each!(a, b, c => _mm256_fnmadd_ps(a, b, c)) }
        swap_pairs(a: F) -> F { each!(a => _mm256_permute_ps::<0b10_11_00_01>(a)) }
        sum(a: F) -> f32 {
            let s = _mm256_add_ps(a[0], a[1]);
            let s = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps::<1>(s));
            let s = _mm_add_ps(s, _mm_movehl_ps(s, s));
            _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)))
        }
        largest(a: F) -> f32 {
            let s = _mm256_max_ps(a[0], a[1]);
            let s = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps::<1>(s));
            let s = _mm_max_ps(s, _mm_movehl_ps(s, s));
            _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)))
        }
        scale_by_power(a: F, n: I) -> F {
            each!(a, n => {
                let exponent = _mm256_slli_epi32::<23>(_mm256_add_epi32(n, _mm256_set1_epi32(127)));
                _mm256_mul_ps(a, _mm256_castsi256_ps(exponent))
            })
        }
        zero_i() -> I { [_mm256_setzero_si256(); 2] }
        round(a: F) -> I { each!(a => _mm256_cvtps_epi32(a)) }
        float(a: I) -> F { each!(a => _mm256_cvtepi32_ps(a)) }
        sum_i(a: I) -> i32 {
            let s = _mm256_add_epi32(a[0], a[1]);
            let s = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256::<1>(s));
            let s = _mm_add_epi32(s, _mm_shuffle_epi32::<0b01_00_11_10>(s));
            _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32::<0b10_11_00_01>(s)))
        }
        store_low_bytes(p: *mut i8, a: I) {
            // Lanes come out of the two packs as 0-3, 8-11, 4-7, 12-15 of 128-bit halves.
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(a[0], a[1]));
            let (low, high) = (_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(p.cast(), _mm_packs_epi16(low, high))
        }
        store_low_words(p: *mut i16, a: I) {
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(a[0], a[1]));
            _mm256_storeu_si256(p.cast(), words)
        }
        words(first: I, second: I) -> I {
            each!(first, second => _mm256_blend_epi16::<0xaa>(first, _mm256_slli_epi32::<16>(second)))
        }
        dot_words(acc: I, a: I, b: I) -> I {
            each!(acc, a, b => if VNNI {
                _mm256_dpwssd_avx_epi32(acc, a, b)
            } else {
                _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
            })
        }
        load_w(p: *const u8) -> I { [_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(32).cast())] }
        store_w(p: *mut u8, w: I) {
            _mm256_storeu_si256(p.cast(), w[0]);
            _mm256_storeu_si256(p.add(32).cast(), w[1])
        }
        splat_w(x: u8) -> I { [_mm256_set1_epi8(x.cast_signed()); 2] }
        splat_quad(p: *const i8) -> I { [_mm256_set1_epi32(p.cast::<i32>().read_unaligned()); 2] }
        and(a: I, b: I) -> I { each!(a, b => _mm256_and_si256(a, b)) }
        or(a: I, b: I) -> I { each!(a, b => _mm256_or_si256(a, b)) }
        xor(a: I, b: I) -> I { each!(a, b => _mm256_xor_si256(a, b)) }
        shr(a: I, n: u32) -> I { each!(a => _mm256_srl_epi16(a, _mm_cvtsi32_si128(n.cast_signed()))) }
        shl(a: I, n: u32) -> I { each!(a => _mm256_sll_epi16(a, _mm_cvtsi32_si128(n.cast_signed()))) }
        dot(acc: I, weights: I, x: I) -> I {
            each!(acc, weights, x => if VNNI {
                _mm256_dpbusd_avx_epi32(acc, weights, x)
            } else {
                // Two products of at most 63 · 127 fit 16 bits.
                let pairs = _mm256_maddubs_epi16(weights, x);
                _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
            })
        }
        dot_bytes(acc: I, weights: I, x: I) -> I {
            each!(acc, weights, x => if VNNI {
                _mm256_dpbusd_avx_epi32(acc, weights, x)
            } else {
                // |w| · (sign(w) x): two products of at most 128 · 127 fit 16 bits.
                let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights));
                _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
            })
        }
    }
}

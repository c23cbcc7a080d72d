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

/// Half of [`Isa::load_quads`].
///
/// # Safety
/// The machine has AVX2, and each of eight rows is good for 16 bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn eight_rows(p: *const u8, stride: usize) -> [__m256i; 4] {
    // Rows r and r + 4 in the halves of a register.
    let mut rows = [_mm256_setzero_si256(); 4];
    for (r, rows) in rows.iter_mut().enumerate() {
        // SAFETY: 16 bytes of two of the rows.
        let [a, b] = unsafe {
            let p = p.add(r * stride);
            [
                _mm_loadu_si128(p.cast()),
                _mm_loadu_si128(p.add(4 * stride).cast()),
            ]
        };
        *rows = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b);
    }
    let [a, b, c, d] = rows;
    let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
    let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ]
}

// SAFETY: each method touches exactly the elements that the trait names.
unsafe impl<const VNNI: bool> Isa for Avx2<VNNI> {
    type F = F;
    type I = I;
    type W = I;

    const SIGNED_BYTES: bool = !VNNI;
    const WIDE: bool = false;
    const SHORT: bool = !VNNI;

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
        prefetch(p: *const u8) { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        load_w(p: *const u8) -> I { [_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(32).cast())] }
        store_w(p: *mut u8, w: I) {
            _mm256_storeu_si256(p.cast(), w[0]);
            _mm256_storeu_si256(p.add(32).cast(), w[1])
        }
        load_quads(p: *const u8, stride: usize) -> [I; 4] {
            let low = eight_rows(p, stride);
            let high = eight_rows(p.add(8 * stride), stride);
            [[low[0], high[0]], [low[1], high[1]], [low[2], high[2]], [low[3], high[3]]]
        }
        unzip_halves(w: I) -> I {
            let order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
            let order = _mm256_broadcastsi128_si256(order);
            let [a, b] = each!(w => _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_shuffle_epi8(w, order)));
            [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)]
        }
        unzip_bytes(w: I) -> I {
            let order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let order = _mm256_broadcastsi128_si256(order);
            // The first and third bytes in front, so that the next step finds them in one half.
            let pairs = _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7);
            let [a, b] = each!(w => _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(w, order), pairs));
            [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)]
        }
        splat_w(x: u8) -> I { [_mm256_set1_epi8(x.cast_signed()); 2] }
        splat_quad(p: *const i8) -> I { [_mm256_set1_epi32(p.cast::<i32>().read_unaligned()); 2] }
        and(a: I, b: I) -> I { each!(a, b => _mm256_and_si256(a, b)) }
        or(a: I, b: I) -> I { each!(a, b => _mm256_or_si256(a, b)) }
        xor(a: I, b: I) -> I { each!(a, b => _mm256_xor_si256(a, b)) }
        shr(a: I, n: u32) -> I { each!(a => _mm256_srl_epi16(a, _mm_cvtsi32_si128(n.cast_signed()))) }
        shl(a: I, n: u32) -> I { each!(a => _mm256_sll_epi16(a, _mm_cvtsi32_si128(n.cast_signed()))) }
        look_up(table: &[u8; 16], places: I) -> I {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            each!(places => _mm256_shuffle_epi8(table, places))
        }
        dot(acc: I, weights: I, x: I) -> I {
            each!(acc, weights, x => if VNNI {
                _mm256_dpbusd_avx_epi32(acc, weights, x)
            } else {
                // Two products of at most 63 · 127 fit 16 bits.
                let pairs = _mm256_maddubs_epi16(weights, x);
                _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
            })
        }
        dot_short(acc: I, weights: I, x: I) -> I {
            each!(acc, weights, x => if VNNI {
                _mm256_dpbusd_avx_epi32(acc, weights, x)
            } else {
                _mm256_add_epi16(acc, _mm256_maddubs_epi16(weights, x))
            })
        }
        add_short(acc: I, short: I) -> I {
            each!(acc, short => if VNNI {
                _mm256_add_epi32(acc, short)
            } else {
                _mm256_add_epi32(acc, _mm256_madd_epi16(short, _mm256_set1_epi16(1)))
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

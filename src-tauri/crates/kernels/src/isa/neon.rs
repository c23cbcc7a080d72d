//! NEON, with or without the int8 dot product: a vector is four registers.

use std::arch::aarch64::*;
use std::arch::asm;

use super::Isa;

/// NEON; `DOTPROD` adds SDOT.
#[derive(Clone, Copy)]
pub(crate) struct Neon<const DOTPROD: bool>;

type F = [float32x4_t; 4];
type I = [int32x4_t; 4];
type W = [uint8x16_t; 4];

/// Methods that are one expression of intrinsics.
macro_rules! methods {
    ($($name:ident($($arg:ident: $t:ty),*) $(-> $r:ty)? { $($body:tt)* })*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: $t),*) $(-> $r)? {
                // SAFETY: the trait's contract is the intrinsics': the machine has them, and
                // pointers are good for all four parts of a vector, unaligned.
                unsafe { $($body)* }
            }
        )*
    };
}

/// `each!(a, b => e)` does `e` to the four parts of both, without a closure, which would not have
/// the features of the function around it.
macro_rules! each {
    ($($a:ident),* => $f:expr) => {
        [
            { $(let $a = $a[0];)* $f },
            { $(let $a = $a[1];)* $f },
            { $(let $a = $a[2];)* $f },
            { $(let $a = $a[3];)* $f },
        ]
    };
}

/// The first lanes of a vector's four parts.
const PARTS: [usize; 4] = [0, 4, 8, 12];

/// Adds to each lane the dot product of its four bytes, both signed.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot(mut acc: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes these three registers only, and the function's
    // feature is the instruction's. Its intrinsic is not stable yet.
    unsafe {
        asm!(
            "sdot {acc:v}.4s, {a:v}.16b, {b:v}.16b",
            acc = inout(vreg) acc,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    acc
}

/// [`sdot`] without the instruction, for products that fit 16 bits in pairs: at most one byte of a product may be −128.
#[inline]
#[target_feature(enable = "neon")]
fn widening_dot(acc: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    let low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
    vpadalq_s16(acc, vpaddq_s16(low, vmull_high_s8(a, b)))
}

/// A quarter of [`Isa::load_quads`].
///
/// # Safety
/// Each of four rows is good for 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn four_rows(p: *const u8, stride: usize) -> [uint8x16_t; 4] {
    let row = [0, 1, 2, 3];
    // SAFETY: 16 bytes of each row.
    let [a, b, c, d] = unsafe { each!(row => vld1q_u32(p.add(row * stride).cast())) };
    // Zipped twice: rows two apart first, then neighbours.
    let (ac, bd) = (vzip1q_u32(a, c), vzip1q_u32(b, d));
    let (ac_high, bd_high) = (vzip2q_u32(a, c), vzip2q_u32(b, d));
    let columns = [
        vzip1q_u32(ac, bd),
        vzip2q_u32(ac, bd),
        vzip1q_u32(ac_high, bd_high),
        vzip2q_u32(ac_high, bd_high),
    ];
    each!(columns => vreinterpretq_u8_u32(columns))
}

// SAFETY: each method touches exactly the elements that the trait names.
unsafe impl<const DOTPROD: bool> Isa for Neon<DOTPROD> {
    type F = F;
    type I = I;
    type W = W;

    const SIGNED_BYTES: bool = true;
    const WIDE: bool = false;
    const WORDS: bool = false;

    methods! {
        splat(x: f32) -> F { [vdupq_n_f32(x); 4] }
        load(p: *const f32) -> F {
            let at = PARTS;
            each!(at => vld1q_f32(p.add(at)))
        }
        load_f16(p: *const u16) -> F {
            let at = PARTS;
            each!(at => vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p.add(at)))))
        }
        load_bf16(p: *const u16) -> F {
            let at = PARTS;
            each!(at => vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(p.add(at)))))
        }
        load_i8(p: *const i8) -> F {
            let bytes = vld1q_s8(p);
            let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes));
            Self::float([
                vmovl_s16(vget_low_s16(low)),
                vmovl_high_s16(low),
                vmovl_s16(vget_low_s16(high)),
                vmovl_high_s16(high),
            ])
        }
        load_u8(p: *const u8) -> F {
            let bytes = vld1q_u8(p);
            let (low, high) = (vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
            let numbers = [
                vmovl_u16(vget_low_u16(low)),
                vmovl_high_u16(low),
                vmovl_u16(vget_low_u16(high)),
                vmovl_high_u16(high),
            ];
            each!(numbers => vcvtq_f32_u32(numbers))
        }
        store(p: *mut f32, x: F) {
            let at = PARTS;
            each!(at, x => vst1q_f32(p.add(at), x));
        }
        add(a: F, b: F) -> F { each!(a, b => vaddq_f32(a, b)) }
        sub(a: F, b: F) -> F { each!(a, b => vsubq_f32(a, b)) }
        mul(a: F, b: F) -> F { each!(a, b => vmulq_f32(a, b)) }
        div(a: F, b: F) -> F { each!(a, b => vdivq_f32(a, b)) }
        max(a: F, b: F) -> F { each!(a, b => vmaxnmq_f32(a, b)) }
        min(a: F, b: F) -> F { each!(a, b => vminnmq_f32(a, b)) }
        abs(a: F) -> F { each!(a => vabsq_f32(a)) }
        fma(a: F, b: F, c: F) -> F { each!(a, b, c => vfmaq_f32(c, a, b)) }
        fnma(a: F, b: F, c: F) -> F { each!(a, b, c => vfmsq_f32(c, a, b)) }
        swap_pairs(a: F) -> F { each!(a => vrev64q_f32(a)) }
        sum(a: F) -> f32 {
            vaddvq_f32(vaddq_f32(vaddq_f32(a[0], a[1]), vaddq_f32(a[2], a[3])))
        }
        largest(a: F) -> f32 {
            vmaxnmvq_f32(vmaxnmq_f32(vmaxnmq_f32(a[0], a[1]), vmaxnmq_f32(a[2], a[3])))
        }
        scale_by_power(a: F, n: I) -> F {
            each!(a, n => {
                let exponent = vshlq_n_s32::<23>(vaddq_s32(n, vdupq_n_s32(127)));
                vmulq_f32(a, vreinterpretq_f32_s32(exponent))
            })
        }
        zero_i() -> I { [vdupq_n_s32(0); 4] }
        round(a: F) -> I { each!(a => vcvtnq_s32_f32(a)) }
        float(a: I) -> F { each!(a => vcvtq_f32_s32(a)) }
        sum_i(a: I) -> i32 {
            vaddvq_s32(vaddq_s32(vaddq_s32(a[0], a[1]), vaddq_s32(a[2], a[3])))
        }
        store_low_bytes(p: *mut i8, a: I) {
            let low = vmovn_high_s32(vmovn_s32(a[0]), a[1]);
            let high = vmovn_high_s32(vmovn_s32(a[2]), a[3]);
            vst1q_s8(p, vmovn_high_s16(vmovn_s16(low), high))
        }
        store_low_words(p: *mut i16, a: I) {
            vst1q_s16(p, vmovn_high_s32(vmovn_s32(a[0]), a[1]));
            vst1q_s16(p.add(8), vmovn_high_s32(vmovn_s32(a[2]), a[3]))
        }
        words(first: I, second: I) -> W {
            each!(first, second => vreinterpretq_u8_s32(vsliq_n_s32::<16>(first, second)))
        }
        dot_words(acc: I, a: W, b: W) -> I {
            each!(acc, a, b => {
                let (a, b) = (vreinterpretq_s16_u8(a), vreinterpretq_s16_u8(b));
                let low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
                vaddq_s32(acc, vpaddq_s32(low, vmull_high_s16(a, b)))
            })
        }
        prefetch(p: *const u8) {
            // Its intrinsic is not stable yet.
            asm!("prfm pldl1keep, [{}]", in(reg) p, options(nostack, readonly, preserves_flags))
        }
        load_w(p: *const u8) -> W {
            let at = PARTS;
            each!(at => vld1q_u8(p.add(4 * at)))
        }
        store_w(p: *mut u8, w: W) {
            let at = PARTS;
            each!(at, w => vst1q_u8(p.add(4 * at), w));
        }
        load_quads(p: *const u8, stride: usize) -> [W; 4] {
            let row = PARTS;
            let [a, b, c, d] = each!(row => four_rows(p.add(row * stride), stride));
            each!(a, b, c, d => [a, b, c, d])
        }
        unzip_halves(w: W) -> W {
            let [a, b, c, d] = each!(w => vreinterpretq_u16_u8(w));
            let halves = [vuzp1q_u16(a, b), vuzp1q_u16(c, d), vuzp2q_u16(a, b), vuzp2q_u16(c, d)];
            each!(halves => vreinterpretq_u8_u16(halves))
        }
        unzip_bytes(w: W) -> W {
            let even = [vuzp1q_u8(w[0], w[1]), vuzp1q_u8(w[2], w[3])];
            let odd = [vuzp2q_u8(w[0], w[1]), vuzp2q_u8(w[2], w[3])];
            [
                vuzp1q_u8(even[0], even[1]),
                vuzp1q_u8(odd[0], odd[1]),
                vuzp2q_u8(even[0], even[1]),
                vuzp2q_u8(odd[0], odd[1]),
            ]
        }
        splat_w(x: u8) -> W { [vdupq_n_u8(x); 4] }
        splat_quad(p: *const i8) -> W {
            [vreinterpretq_u8_u32(vdupq_n_u32(p.cast::<u32>().read_unaligned())); 4]
        }
        and(a: W, b: W) -> W { each!(a, b => vandq_u8(a, b)) }
        or(a: W, b: W) -> W { each!(a, b => vorrq_u8(a, b)) }
        xor(a: W, b: W) -> W { each!(a, b => veorq_u8(a, b)) }
        shr(a: W, n: u32) -> W {
            let n = vdupq_n_s16(-(n as i16));
            each!(a => vreinterpretq_u8_u16(vshlq_u16(vreinterpretq_u16_u8(a), n)))
        }
        shl(a: W, n: u32) -> W {
            let n = vdupq_n_s16(n as i16);
            each!(a => vreinterpretq_u8_u16(vshlq_u16(vreinterpretq_u16_u8(a), n)))
        }
        look_up(table: &[u8; 16], places: W) -> W {
            let table = vld1q_u8(table.as_ptr());
            each!(places => vqtbl1q_u8(table, places))
        }
        dot(acc: I, weights: W, x: W) -> I { Self::dot_bytes(acc, weights, x) }
        add_short(acc: I, short: I) -> I { each!(acc, short => vaddq_s32(acc, short)) }
        dot_bytes(acc: I, weights: W, x: W) -> I {
            each!(acc, weights, x => {
                let (weights, x) = (vreinterpretq_s8_u8(weights), vreinterpretq_s8_u8(x));
                if DOTPROD {
                    sdot(acc, weights, x)
                } else {
                    widening_dot(acc, weights, x)
                }
            })
        }
    }
}

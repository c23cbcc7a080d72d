//! Products of many tokens by the int8 matrix product (SMMLA): two rows times two tokens, eight columns at a time.
//!
//! The instruction's registers hold eight columns of two rows, those of a panel four columns of four rows. So a K block
//! is unpacked in that order, and pairs of tokens are multiplied with it. Few tokens stream without the instruction,
//! because memory bandwidth bounds them.

use std::arch::aarch64::*;
use std::arch::asm;

use crate::blocking::{BATCH_INVARIANT_MAX, KC_I8MM, ROW_BLOCK, UNPACKED_BYTES};
use crate::isa::neon::Neon;
use crate::isa::{Isa, LANES};
use crate::product::activations::ActivationScale;
use crate::product::row_block::{ProductScratch, RowBlockTask, TokenActivations};
use crate::product::stream::{self, add_group};
use crate::weights::layout::{GROUP, Layout, QuantFormat, quants, scales, with_quant_format};

/// The level of all other operations.
type Base = Neon<true>;

/// Columns of an instruction.
const STEP: usize = 8;
/// Pairs of rows in a panel.
const PAIRS: usize = LANES / 2;
/// Pairs of tokens in a micro-tile: 24 registers of sums.
const TOKEN_PAIRS: usize = 3;

/// 32 columns of a panel, unpacked.
#[repr(C)]
struct UnpackedGroup {
    /// `[step][pair of rows][row][column]`.
    weights: [[[i8; 2 * STEP]; PAIRS]; GROUP / STEP],
    /// The scales of each half.
    scale: [[f32; LANES]; 2],
    min: [[f32; LANES]; 2],
}

const _: () = assert!(size_of::<[UnpackedGroup; KC_I8MM / GROUP]>() <= UNPACKED_BYTES);

/// Adds to a 2 × 2 matrix of sums the products of two rows of eight bytes with two others.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn smmla(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes these three registers only, and the function's
    // feature is the instruction's. Its intrinsic is not stable yet.
    unsafe {
        asm!(
            "smmla {sums:v}.4s, {a:v}.16b, {b:v}.16b",
            sums = inout(vreg) sums,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// [`stream::multiply`] with the int8 matrix product for many tokens.
///
/// # Safety
/// The machine has the dot product and the matrix product; `row_block` is packed weights of its type, and its `x` has
/// `m × cols` activations.
#[target_feature(enable = "neon,dotprod,i8mm")]
pub(crate) unsafe fn multiply(row_block: &RowBlockTask, scratch: &mut ProductScratch) {
    match row_block.x {
        TokenActivations::Integers { m, bytes, scales } if m > BATCH_INVARIANT_MAX => {
            let x = I8mmActivations {
                bytes: bytes.as_ptr(),
                scales: scales.as_ptr(),
                cols: row_block.cols,
                m,
            };
            // SAFETY: the contract is the same, and `x` is the activations of the row block.
            unsafe {
                match Layout::of(row_block.ty).halves() {
                    1 => integers::<1>(row_block, x, scratch),
                    _ => integers::<2>(row_block, x, scratch),
                }
            }
        }
        // SAFETY: the machine has `Base`; the rest of the contract is the same.
        _ => unsafe { stream::multiply::<Base>(row_block, scratch) },
    }
}

/// The activations of all tokens.
#[derive(Clone, Copy)]
struct I8mmActivations {
    bytes: *const i8,
    scales: *const ActivationScale,
    cols: usize,
    m: usize,
}

/// A token's activations from some column on.
#[derive(Clone, Copy)]
struct ActivationRow {
    bytes: *const i8,
    scales: *const ActivationScale,
}

impl I8mmActivations {
    /// The row of token `t` from column `first` on. The last token is repeated to pad an odd number; its second result
    /// is stored but not read.
    ///
    /// # Safety
    /// `first` is a whole group of the row.
    #[inline(always)]
    unsafe fn row(self, t: usize, first: usize) -> ActivationRow {
        let cell = t.min(self.m - 1) * self.cols + first;
        // SAFETY: the cell is in one of the rows.
        unsafe {
            ActivationRow {
                bytes: self.bytes.add(cell),
                scales: self.scales.add(cell / GROUP),
            }
        }
    }
}

/// A row block times many tokens, with `HALVES` scales for each group.
///
/// # Safety
/// Same as [`multiply`]; `x` is its activations.
#[inline(always)]
unsafe fn integers<const HALVES: usize>(
    row_block: &RowBlockTask,
    x: I8mmActivations,
    scratch: &mut ProductScratch,
) {
    for (p, panel) in row_block
        .panels
        .chunks_exact(row_block.panel_bytes)
        .enumerate()
    {
        for first in (0..row_block.cols).step_by(KC_I8MM) {
            let groups = (row_block.cols - first).min(KC_I8MM) / GROUP;
            // SAFETY: `unpacked` has room for a K block, aligned, for which any bytes are valid; `sums` has room for whole
            // pairs of tokens, the last token of an odd number included.
            unsafe {
                let k_block = scratch
                    .unpacked
                    .weights
                    .as_mut_ptr()
                    .cast::<UnpackedGroup>();
                let k_block = std::slice::from_raw_parts_mut(k_block, groups);
                with_quant_format!(
                    row_block.ty,
                    F => unpack::<F>(panel.as_ptr(), first, k_block),
                    else debug_assert!(false, "float weights meet floats")
                );
                let sums = scratch.sums.0.as_mut_ptr().add(p * LANES);
                let mut t = 0;
                while t < x.m {
                    let to = sums.add(t * ROW_BLOCK);
                    if x.m - t >= 2 * TOKEN_PAIRS {
                        micro_tile::<HALVES, TOKEN_PAIRS>(k_block, x, t, first, to);
                        t += 2 * TOKEN_PAIRS;
                    } else {
                        micro_tile::<HALVES, 1>(k_block, x, t, first, to);
                        t += 2;
                    }
                }
            }
        }
    }
}

/// Unpacks a panel's groups from column `first` on, which begins a block.
///
/// # Safety
/// Same as [`multiply`]; the panel has these columns.
#[inline(always)]
unsafe fn unpack<F: QuantFormat>(panel: *const u8, first: usize, k_block: &mut [UnpackedGroup]) {
    let layout = F::LAYOUT;
    let (mut scale, mut min) = ([0.0_f32; 256], [0.0_f32; 256]);
    for (g, group) in k_block.iter_mut().enumerate() {
        let inner = g % (layout.cols / GROUP);
        // SAFETY: blocks and groups stay inside the panel.
        let w = unsafe {
            let block = panel.add((first + g * GROUP) / layout.cols * layout.block_bytes());
            if inner == 0 {
                scales::<Base, F>(block, scale.as_mut_ptr(), min.as_mut_ptr());
            }
            quants::<Base, F>(block, inner)
        };
        for (step, pairs) in group.weights.iter_mut().enumerate() {
            for (four, pairs) in pairs.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                // SAFETY: a pair of rows has 16 bytes.
                unsafe {
                    let low = vreinterpretq_u32_u8(w[2 * step][four]);
                    let high = vreinterpretq_u32_u8(w[2 * step + 1][four]);
                    vst1q_u32(pairs[0].as_mut_ptr().cast(), vzip1q_u32(low, high));
                    vst1q_u32(pairs[1].as_mut_ptr().cast(), vzip2q_u32(low, high));
                }
            }
        }
        for h in 0..layout.halves() {
            let at = layout.scale_of(inner, h) * LANES;
            group.scale[h].copy_from_slice(&scale[at..at + LANES]);
            group.min[h].copy_from_slice(&min[at..at + LANES]);
        }
    }
}

/// The micro-kernel: a K block of a panel, which begins at column `first`, times `T` pairs of tokens from `token` on.
///
/// # Safety
/// Same as [`multiply`]; `to` has room for the sums of as many tokens.
#[inline(always)]
unsafe fn micro_tile<const HALVES: usize, const T: usize>(
    k_block: &[UnpackedGroup],
    x: I8mmActivations,
    token: usize,
    first: usize,
    to: *mut f32,
) {
    // SAFETY: the K block is columns of the rows of `x`, and `to` has room for the sums, by the caller's contract.
    unsafe {
        let row = |t: usize| x.row(token + t, first);
        let x: [[ActivationRow; 2]; T] = std::array::from_fn(|t| [row(2 * t), row(2 * t + 1)]);
        let mut sums = [[Base::splat(0.0); 2]; T];
        if first > 0 {
            for t in 0..T {
                for k in 0..2 {
                    sums[t][k] = Base::load(to.add((2 * t + k) * ROW_BLOCK));
                }
            }
        }
        for (g, group) in k_block.iter().enumerate() {
            for h in 0..HALVES {
                let mut acc = [[vdupq_n_s32(0); PAIRS]; T];
                let steps = GROUP / STEP / HALVES;
                for step in h * steps..(h + 1) * steps {
                    let at = g * GROUP + step * STEP;
                    let mut tokens = [vdupq_n_s8(0); T];
                    for t in 0..T {
                        let [a, b] = [x[t][0].bytes.add(at), x[t][1].bytes.add(at)];
                        tokens[t] = vcombine_s8(vld1_s8(a), vld1_s8(b));
                    }
                    for r in 0..PAIRS {
                        let rows = vld1q_s8(group.weights[step][r].as_ptr());
                        for t in 0..T {
                            acc[t][r] = smmla(acc[t][r], tokens[t], rows);
                        }
                    }
                }
                let scale = Base::load(group.scale[h].as_ptr());
                let min = Base::load(group.min[h].as_ptr());
                for t in 0..T {
                    for (k, acc) in by_token(acc[t]).into_iter().enumerate() {
                        let s = &*x[t][k].scales.add(g);
                        let total = if HALVES == 1 { s.total } else { s.sum[h] };
                        let x = (s.scale[h], total);
                        sums[t][k] = add_group::<Base>(sums[t][k], acc, scale, min, x);
                    }
                }
            }
        }
        for t in 0..T {
            for k in 0..2 {
                Base::store(to.add((2 * t + k) * ROW_BLOCK), sums[t][k]);
            }
        }
    }
}

/// Transposes `[pair of rows][token][row]` to 16 rows of each token.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
unsafe fn by_token(acc: [int32x4_t; PAIRS]) -> [<Base as Isa>::I; 2] {
    let mut tokens = [[acc[0]; 4]; 2];
    for four in 0..4 {
        // SAFETY: no pointers.
        unsafe {
            let a = vreinterpretq_s64_s32(acc[2 * four]);
            let b = vreinterpretq_s64_s32(acc[2 * four + 1]);
            tokens[0][four] = vreinterpretq_s32_s64(vzip1q_s64(a, b));
            tokens[1][four] = vreinterpretq_s32_s64(vzip2q_s64(a, b));
        }
    }
    tokens
}

/// Products of bytes that [`crate::roofline::arithmetic::integer_rate`] counts in as many passes.
///
/// # Safety
/// The machine has the matrix product.
#[target_feature(enable = "neon,i8mm")]
pub(crate) unsafe fn peak_dots(passes: usize) -> i32 {
    // An instruction is 2 × 2 × 8 products; a pass counts 64 × 12 × 64. As many sums as in a micro-tile
    // hide its latency.
    let rounds = passes * (64 * 12 * 64) / (TOKEN_PAIRS * PAIRS * 4 * STEP);
    let mut sums = [vdupq_n_s32(0); TOKEN_PAIRS * PAIRS];
    let (rows, tokens) = (vdupq_n_s8(3), vdupq_n_s8(-5));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = smmla(*sum, rows, tokens);
        }
    }
    sums.into_iter().fold(0, |all, sum| all ^ vaddvq_s32(sum))
}

//! The int8 matrix product: two rows times two tokens, eight columns at a time.
//!
//! Its registers hold eight columns of two rows, where a panel's hold four columns of four. So a
//! slab of columns is unpacked in that order, and pairs of tokens pass over it. A few tokens
//! stream as they do without the instruction: there memory takes the time.

use std::arch::aarch64::*;
use std::arch::asm;

use crate::blocking::{STREAM, STRIP, UNPACKED};
use crate::isa::neon::Neon;
use crate::isa::{Isa, LANES};
use crate::product::activations::Scale;
use crate::product::row_block::{Stage, Strip, Tokens};
use crate::product::stream::{self, add_group};
use crate::weights::layout::{Format, GROUP, Layout, quants, scales, with_format};

/// What all else is done with.
type Base = Neon<true>;

/// Columns of an instruction.
const STEP: usize = 8;
/// Pairs of rows in a panel.
const PAIRS: usize = LANES / 2;
/// Pairs of tokens in a tile: 24 registers of sums.
const TILE: usize = 3;

/// 32 columns of a panel, unpacked.
#[repr(C)]
struct Group {
    /// `[step][pair of rows][row][column]`.
    weights: [[[i8; 2 * STEP]; PAIRS]; GROUP / STEP],
    /// Of each half.
    scale: [[f32; LANES]; 2],
    min: [[f32; LANES]; 2],
}

/// Columns of a slab, which takes the place of unpacked weights.
const SLAB: usize = 256;
const _: () = assert!(size_of::<[Group; SLAB / GROUP]>() <= UNPACKED);

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

/// As [`stream::multiply`].
///
/// # Safety
/// The machine has the dot product and the matrix product; the rest is as there.
#[target_feature(enable = "neon,dotprod,i8mm")]
pub(crate) unsafe fn multiply(strip: &Strip, stage: &mut Stage) {
    match strip.x {
        Tokens::Integers { m, bytes, scales } if m > STREAM => {
            let x = Rows {
                bytes: bytes.as_ptr(),
                scales: scales.as_ptr(),
                cols: strip.cols,
                m,
            };
            // SAFETY: passed on.
            unsafe {
                match Layout::of(strip.ty).halves() {
                    1 => integers::<1>(strip, x, stage),
                    _ => integers::<2>(strip, x, stage),
                }
            }
        }
        // SAFETY: passed on.
        _ => unsafe { stream::multiply::<Base>(strip, stage) },
    }
}

/// All activations.
#[derive(Clone, Copy)]
struct Rows {
    bytes: *const i8,
    scales: *const Scale,
    cols: usize,
    m: usize,
}

/// A token's activations from some column on.
#[derive(Clone, Copy)]
struct Row {
    bytes: *const i8,
    scales: *const Scale,
}

impl Rows {
    /// Token `t` from column `first` on. The last stands in for the one that an odd number lacks:
    /// that result is stored where nobody reads.
    ///
    /// # Safety
    /// `first` is a whole group of the row.
    #[inline(always)]
    unsafe fn row(self, t: usize, first: usize) -> Row {
        let cell = t.min(self.m - 1) * self.cols + first;
        // SAFETY: the cell is in one of the rows.
        unsafe {
            Row {
                bytes: self.bytes.add(cell),
                scales: self.scales.add(cell / GROUP),
            }
        }
    }
}

/// A strip times many tokens; scales go with groups or with their `HALVES`.
///
/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn integers<const HALVES: usize>(strip: &Strip, x: Rows, stage: &mut Stage) {
    for (p, panel) in strip.panels.chunks_exact(strip.panel_bytes).enumerate() {
        for first in (0..strip.cols).step_by(SLAB) {
            let groups = (strip.cols - first).min(SLAB) / GROUP;
            // SAFETY: there is room for a slab, aligned, and its numbers may be any bytes; a stage has
            // room for the sums of whole tiles of tokens, also of the one that may be lacking.
            unsafe {
                let slab = stage.unpacked.weights.as_mut_ptr().cast::<Group>();
                let slab = std::slice::from_raw_parts_mut(slab, groups);
                with_format!(
                    strip.ty,
                    F => unstage::<F>(panel.as_ptr(), first, slab),
                    else debug_assert!(false, "float weights meet floats")
                );
                let sums = stage.sums.0.as_mut_ptr().add(p * LANES);
                let mut t = 0;
                while t < x.m {
                    let to = sums.add(t * STRIP);
                    if x.m - t >= 2 * TILE {
                        tile::<HALVES, TILE>(slab, x, t, first, to);
                        t += 2 * TILE;
                    } else {
                        tile::<HALVES, 1>(slab, x, t, first, to);
                        t += 2;
                    }
                }
            }
        }
    }
}

/// Unpacks a panel's groups from column `first` on, the first of a block.
///
/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn unstage<F: Format>(panel: *const u8, first: usize, slab: &mut [Group]) {
    let layout = F::LAYOUT;
    let (mut scale, mut min) = ([0.0_f32; 256], [0.0_f32; 256]);
    for (g, group) in slab.iter_mut().enumerate() {
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

/// A slab of a panel, which begins at column `first`, times `T` pairs of tokens from `token` on.
///
/// # Safety
/// As [`multiply`]; `to` has room for the sums of as many tokens.
#[inline(always)]
unsafe fn tile<const HALVES: usize, const T: usize>(
    slab: &[Group],
    x: Rows,
    token: usize,
    first: usize,
    to: *mut f32,
) {
    // SAFETY: a slab is columns of the rows; the rest is the caller's.
    unsafe {
        let row = |t: usize| x.row(token + t, first);
        let x: [[Row; 2]; T] = std::array::from_fn(|t| [row(2 * t), row(2 * t + 1)]);
        let mut sums = [[Base::splat(0.0); 2]; T];
        if first > 0 {
            for t in 0..T {
                for k in 0..2 {
                    sums[t][k] = Base::load(to.add((2 * t + k) * STRIP));
                }
            }
        }
        for (g, group) in slab.iter().enumerate() {
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
                        let x = (s.unit[h], total);
                        sums[t][k] = add_group::<Base>(sums[t][k], acc, scale, min, x);
                    }
                }
            }
        }
        for t in 0..T {
            for k in 0..2 {
                Base::store(to.add((2 * t + k) * STRIP), sums[t][k]);
            }
        }
    }
}

/// From `[pair of rows][token][row]` to 16 rows of each token.
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
pub(crate) unsafe fn dots(passes: usize) -> i32 {
    // An instruction is 2 × 2 × 8 products; a pass counts 64 × 12 × 64. As many sums as in a tile
    // hide its latency.
    let rounds = passes * (64 * 12 * 64) / (TILE * PAIRS * 4 * STEP);
    let mut sums = [vdupq_n_s32(0); TILE * PAIRS];
    let (rows, tokens) = (vdupq_n_s8(3), vdupq_n_s8(-5));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = smmla(*sum, rows, tokens);
        }
    }
    sums.into_iter().fold(0, |all, sum| all ^ vaddvq_s32(sum))
}

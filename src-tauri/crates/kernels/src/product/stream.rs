//! Products of few tokens: weights go from memory through registers once.

use super::activations::Scale;
use super::floats::floats;
use super::row_block::{Stage, Strip, Tokens};
use crate::blocking::{AHEAD, STREAM, STRIP, TOKENS};
use crate::isa::{Isa, LANES};
use crate::weights::layout::{Format, GROUP, Head, quants, with_format};

/// Multiplies a strip with at most [`TOKENS`] tokens; `stage.sums` holds the results.
///
/// # Safety
/// The machine has `I`; `strip` is packed weights of its type, and `x` has `m × cols` activations.
#[inline(always)]
pub(crate) unsafe fn multiply<I: Isa>(strip: &Strip, stage: &mut Stage) {
    let m = strip.x.len();
    debug_assert!(m <= TOKENS);
    // SAFETY: passed on.
    unsafe {
        match strip.x {
            Tokens::Integers { bytes, scales, .. } => {
                for (p, panel) in strip.panels.chunks_exact(strip.panel_bytes).enumerate() {
                    for first in (0..m).step_by(STREAM) {
                        let cell = first * strip.cols;
                        let x = Rows {
                            bytes: bytes.as_ptr().add(cell),
                            scales: scales.as_ptr().add(cell / GROUP),
                            cols: strip.cols,
                        };
                        let sums = stage.sums.0.as_mut_ptr().add(first * STRIP + p * LANES);
                        let m = (m - first).min(STREAM);
                        with_format!(
                            strip.ty,
                            // The one token of decoding keeps its sum in a register.
                            F => if m == 1 {
                                stream::<I, F>(panel, x, 1, sums);
                            } else {
                                stream::<I, F>(panel, x, m, sums);
                            },
                            else debug_assert!(false, "float weights meet floats")
                        );
                    }
                }
            }
            Tokens::Floats { x, .. } => floats::<I>(strip, m, x, stage),
        }
    }
}

/// One panel times a few tokens: weights go from memory through registers once. `sums` is
/// `[token][STRIP]`.
///
/// # Safety
/// As [`multiply`]; `m` is at most [`STREAM`].
#[inline(always)]
unsafe fn stream<I: Isa, F: Format>(panel: &[u8], x: Rows, m: usize, sums: *mut f32) {
    let layout = F::LAYOUT;
    let halves = layout.halves();
    let run = if I::SHORT && !layout.bytes {
        layout.short_run()
    } else {
        8 / halves
    };
    // SAFETY: a panel is `cols / layout.cols` blocks, each with a header and its groups; the
    // activations have as many groups of 32 bytes and one `Scale` each. Reading ahead touches
    // nothing.
    unsafe {
        let mut sum = [I::splat(0.0); STREAM];
        let mut group = 0;
        for block in panel.chunks_exact(layout.block_bytes()) {
            let block = block.as_ptr();
            for line in (0..layout.header_bytes()).step_by(64) {
                I::prefetch(block.wrapping_add(AHEAD + line));
            }
            let head = Head::<I>::of::<F>(block);
            for g in 0..layout.cols / GROUP {
                let at = layout.header_bytes() + g * layout.group_bytes();
                for line in (0..layout.group_bytes()).step_by(64) {
                    I::prefetch(block.wrapping_add(AHEAD + at + line));
                }
                let w = quants::<I, F>(block, g);
                let mut scales = [(I::splat(0.0), I::splat(0.0)); 2];
                for h in 0..halves {
                    scales[h] = head.scale::<F>(layout.scale_of(g, h));
                }
                for t in 0..m {
                    let bytes = x.bytes.add(t * x.cols + group * GROUP);
                    let x_scale = x.scales.add(t * x.cols / GROUP + group);
                    for h in 0..halves {
                        let mut acc = I::zero_i();
                        for first in (h * 8 / halves..(h + 1) * 8 / halves).step_by(run) {
                            let mut part = I::zero_i();
                            for v in first..first + run {
                                let quad = I::splat_quad(bytes.add(v * 4));
                                part = if layout.bytes {
                                    I::dot_bytes(part, w[v], quad)
                                } else {
                                    I::dot_short(part, w[v], quad)
                                };
                            }
                            acc = if layout.bytes || !I::SHORT {
                                part
                            } else {
                                I::add_short(acc, part)
                            };
                        }
                        let (scale, min) = scales[h];
                        sum[t] = add_group::<I>(sum[t], acc, scale, min, {
                            let total = if halves == 1 {
                                (*x_scale).total
                            } else {
                                (*x_scale).sum[h]
                            };
                            ((*x_scale).unit[h], total)
                        });
                    }
                }
                group += 1;
            }
        }
        for (t, sum) in sum.into_iter().enumerate().take(m) {
            I::store(sums.add(t * STRIP), sum);
        }
    }
}

/// Adds a group's integers to a sum of floats: the one order of operations that every loop keeps,
/// so that a token's result does not depend on how many others are multiplied with it.
///
/// # Safety
/// The machine has `I`.
#[inline(always)]
pub(crate) unsafe fn add_group<I: Isa>(
    sum: I::F,
    acc: I::I,
    scale: I::F,
    min: I::F,
    (unit, total): (f32, f32),
) -> I::F {
    // SAFETY: no pointers.
    unsafe {
        let part = I::mul(I::float(acc), scale);
        I::fnma(min, I::splat(total), I::fma(part, I::splat(unit), sum))
    }
}

/// Rows of activations from some token and column on.
#[derive(Clone, Copy)]
struct Rows {
    bytes: *const i8,
    scales: *const Scale,
    cols: usize,
}

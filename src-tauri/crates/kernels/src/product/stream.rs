//! Products of few tokens: weights go from memory through registers once.

use super::activations::ActivationScale;
use super::floats::floats;
use super::row_block::{ProductScratch, RowBlockTask, TokenActivations};
use crate::blocking::{BATCH_INVARIANT_MAX, MC_STREAM, PREFETCH_BYTES, ROW_BLOCK};
use crate::isa::{Isa, LANES};
use crate::weights::layout::{BlockHeader, GROUP, QuantFormat, quants, with_quant_format};

/// Multiplies a row block with at most [`MC_STREAM`] tokens; the results are in `scratch.sums`.
///
/// # Safety
/// The machine has `I`; `row_block` is packed weights of its type, and its `x` has `m × cols` activations.
#[inline(always)]
pub(crate) unsafe fn multiply<I: Isa>(row_block: &RowBlockTask, scratch: &mut ProductScratch) {
    let m = row_block.x.len();
    debug_assert!(m <= MC_STREAM);
    // SAFETY: panels, activations and scales are as long as the caller's contract says; chunks of tokens stay below `m`,
    // and `sums` has room for `MC_STREAM` tokens.
    unsafe {
        match row_block.x {
            TokenActivations::Integers { bytes, scales, .. } => {
                for (p, panel) in row_block
                    .panels
                    .chunks_exact(row_block.panel_bytes)
                    .enumerate()
                {
                    for first in (0..m).step_by(BATCH_INVARIANT_MAX) {
                        let cell = first * row_block.cols;
                        let x = ActivationRows {
                            bytes: bytes.as_ptr().add(cell),
                            scales: scales.as_ptr().add(cell / GROUP),
                            cols: row_block.cols,
                        };
                        let sums = scratch
                            .sums
                            .0
                            .as_mut_ptr()
                            .add(first * ROW_BLOCK + p * LANES);
                        let m = (m - first).min(BATCH_INVARIANT_MAX);
                        with_quant_format!(
                            row_block.ty,
                            // Decoding: with one token the sum stays in a register.
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
            TokenActivations::Floats { x, .. } => floats::<I>(row_block, m, x, scratch),
        }
    }
}

/// One panel times at most [`BATCH_INVARIANT_MAX`] tokens: each weight is loaded once and unpacked in registers. `sums` is
/// `[token][ROW_BLOCK]`.
///
/// # Safety
/// Same as [`multiply`]; `panel` is of format `F`, and `m` is at most [`BATCH_INVARIANT_MAX`].
#[inline(always)]
unsafe fn stream<I: Isa, F: QuantFormat>(
    panel: &[u8],
    x: ActivationRows,
    m: usize,
    sums: *mut f32,
) {
    let layout = F::LAYOUT;
    let halves = layout.halves();
    let run = if I::SHORT && !layout.full_bytes() {
        layout.short_run()
    } else {
        8 / halves
    };
    // SAFETY: a panel is `cols / layout.cols` blocks, each with a header and its groups; the activations have as many groups
    // of 32 bytes and one `ActivationScale` each. A prefetch accesses no memory.
    unsafe {
        let mut sum = [I::splat(0.0); BATCH_INVARIANT_MAX];
        let mut group = 0;
        for block in panel.chunks_exact(layout.block_bytes()) {
            let block = block.as_ptr();
            for line in (0..layout.header_bytes()).step_by(64) {
                I::prefetch(block.wrapping_add(PREFETCH_BYTES + line));
            }
            let head = BlockHeader::<I>::of::<F>(block);
            for g in 0..layout.cols / GROUP {
                let at = layout.header_bytes() + g * layout.group_bytes();
                for line in (0..layout.group_bytes()).step_by(64) {
                    I::prefetch(block.wrapping_add(PREFETCH_BYTES + at + line));
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
                                part = if layout.full_bytes() {
                                    I::dot_bytes(part, w[v], quad)
                                } else {
                                    I::dot_short(part, w[v], quad)
                                };
                            }
                            acc = if layout.full_bytes() || !I::SHORT {
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
                            ((*x_scale).scale[h], total)
                        });
                    }
                }
                group += 1;
            }
        }
        for (t, sum) in sum.into_iter().enumerate().take(m) {
            I::store(sums.add(t * ROW_BLOCK), sum);
        }
    }
}

/// Adds a group's integers to a sum of floats. Every loop uses this one order of operations, so that a token's result does
/// not depend on its batch.
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

/// The activations from some token and column on.
#[derive(Clone, Copy)]
struct ActivationRows {
    bytes: *const i8,
    scales: *const ActivationScale,
    cols: usize,
}

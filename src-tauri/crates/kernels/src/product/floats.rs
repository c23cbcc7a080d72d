//! Products in floats.

use super::row_block::{ProductScratch, RowBlockTask};
use crate::blocking::{KC_FLOATS, ROW_BLOCK};
use crate::isa::scalar::Scalar;
use crate::isa::{Isa, LANES};
use crate::weights::block::BlockType;
use crate::weights::layout::{GROUP, HeaderLayout, Layout, quants, scales, with_quant_format};

/// Multiplies a row block in floats: for float weights, and for the exact executor.
///
/// # Safety
/// Same as [`multiply`](super::stream::multiply), with its `m` and `x`.
#[inline(always)]
pub(super) unsafe fn floats<I: Isa>(
    row_block: &RowBlockTask,
    m: usize,
    x: &[f32],
    scratch: &mut ProductScratch,
) {
    let panels = row_block.panels.len() / row_block.panel_bytes;
    // SAFETY: `unpacked` holds KC_FLOATS columns of two panels; rows of `x` are `cols` long; tokens stay below `m`.
    unsafe {
        for first in (0..row_block.cols).step_by(KC_FLOATS) {
            let cols = (row_block.cols - first).min(KC_FLOATS);
            for (p, panel) in row_block
                .panels
                .chunks_exact(row_block.panel_bytes)
                .enumerate()
            {
                unpack_float_columns::<I>(row_block.ty, panel, first, cols, p, scratch);
            }
            let mut token = 0;
            while token < m {
                let tokens = (m - token).min(4);
                let x = x.as_ptr().add(token * row_block.cols + first);
                for p in 0..panels {
                    let first_block = first == 0;
                    match tokens {
                        1 => micro_tile::<I, 1>(
                            scratch,
                            p,
                            cols,
                            x,
                            row_block.cols,
                            token,
                            first_block,
                        ),
                        2 => micro_tile::<I, 2>(
                            scratch,
                            p,
                            cols,
                            x,
                            row_block.cols,
                            token,
                            first_block,
                        ),
                        3 => micro_tile::<I, 3>(
                            scratch,
                            p,
                            cols,
                            x,
                            row_block.cols,
                            token,
                            first_block,
                        ),
                        _ => micro_tile::<I, 4>(
                            scratch,
                            p,
                            cols,
                            x,
                            row_block.cols,
                            token,
                            first_block,
                        ),
                    }
                }
                token += tokens;
            }
        }
    }
}

/// Converts `cols` columns of panel `p` to floats.
///
/// # Safety
/// Same as [`floats`]; the panel has `cols` columns from `first` on.
#[inline(always)]
unsafe fn unpack_float_columns<I: Isa>(
    ty: BlockType,
    panel: &[u8],
    first: usize,
    cols: usize,
    p: usize,
    scratch: &mut ProductScratch,
) {
    // SAFETY: a panel of floats has 16 values for each of its columns, and `out` has room for `KC_FLOATS` columns.
    unsafe {
        let out = scratch
            .unpacked
            .weights
            .as_mut_ptr()
            .cast::<f32>()
            .add(p * LANES);
        let panel = panel.as_ptr();
        for c in 0..cols {
            let at = (first + c) * LANES;
            let value = match ty {
                BlockType::F32 => I::load(panel.cast::<f32>().add(at)),
                BlockType::F16 => I::load_f16(panel.cast::<u16>().add(at)),
                BlockType::BF16 => I::load_bf16(panel.cast::<u16>().add(at)),
                _ => break,
            };
            I::store(out.add(c * ROW_BLOCK), value);
        }
        if Layout::of(ty).header != HeaderLayout::None {
            dequantise_columns(ty, panel, first, cols, out);
        }
    }
}

/// Dequantises `cols` columns of one panel, for the exact executor; speed does not matter.
///
/// # Safety
/// Same as [`floats`]; `panel` has these columns, and `out` has room for them.
unsafe fn dequantise_columns(
    ty: BlockType,
    panel: *const u8,
    first: usize,
    cols: usize,
    out: *mut f32,
) {
    let layout = Layout::of(ty);
    let (mut scale, mut min) = ([0.0_f32; 256], [0.0_f32; 256]);
    for g in 0..cols / GROUP {
        let column = first + g * GROUP;
        let inner = column % layout.cols / GROUP;
        // SAFETY: the column is in the panel by the caller's contract; every machine has `Scalar`.
        let quads = unsafe {
            let block = panel.add(column / layout.cols * layout.block_bytes());
            with_quant_format!(ty, F => {
                scales::<Scalar, F>(block, scale.as_mut_ptr(), min.as_mut_ptr());
                quants::<Scalar, F>(block, inner)
            }, else return)
        };
        for (c, lane) in (0..GROUP).flat_map(|c| (0..LANES).map(move |lane| (c, lane))) {
            let q = f32::from(quads[c / 4][lane * 4 + c % 4]);
            let s = layout.scale_of(inner, c * layout.halves() / GROUP) * LANES + lane;
            // SAFETY: column `g * GROUP + c` is below `cols`, for which `out` has room.
            unsafe { *out.add((g * GROUP + c) * ROW_BLOCK + lane) = scale[s] * q - min[s] };
        }
    }
}

/// The micro-kernel: one panel of floats times `T` tokens.
///
/// # Safety
/// The machine has `I`; the scratch holds `cols` unpacked columns; `x` has `T` rows, `stride` apart.
#[inline(always)]
unsafe fn micro_tile<I: Isa, const T: usize>(
    scratch: &mut ProductScratch,
    p: usize,
    cols: usize,
    x: *const f32,
    stride: usize,
    token: usize,
    first_block: bool,
) {
    // SAFETY: tokens `token..token + T` have sums in the scratch, and all columns are below `cols`.
    unsafe {
        let out = scratch
            .sums
            .0
            .as_mut_ptr()
            .add(token * ROW_BLOCK + p * LANES);
        let weights = scratch
            .unpacked
            .weights
            .as_ptr()
            .cast::<f32>()
            .add(p * LANES);
        // Two sums for each token, of odd and even columns, hide the latency of the addition.
        let (mut even, mut odd) = ([I::splat(0.0); T], [I::splat(0.0); T]);
        for c in (0..cols & !1).step_by(2) {
            let (w0, w1) = (
                I::load(weights.add(c * ROW_BLOCK)),
                I::load(weights.add((c + 1) * ROW_BLOCK)),
            );
            for t in 0..T {
                let x = x.add(t * stride + c);
                even[t] = I::fma(w0, I::splat(*x), even[t]);
                odd[t] = I::fma(w1, I::splat(*x.add(1)), odd[t]);
            }
        }
        if cols % 2 == 1 {
            let w = I::load(weights.add((cols - 1) * ROW_BLOCK));
            for t in 0..T {
                even[t] = I::fma(w, I::splat(*x.add(t * stride + cols - 1)), even[t]);
            }
        }
        for t in 0..T {
            let to = out.add(t * ROW_BLOCK);
            let sum = I::add(even[t], odd[t]);
            I::store(
                to,
                if first_block {
                    sum
                } else {
                    I::add(I::load(to), sum)
                },
            );
        }
    }
}

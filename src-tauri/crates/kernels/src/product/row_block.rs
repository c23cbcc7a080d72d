//! One row block of weights, the activations that it is multiplied with, and a worker's memory.

use super::activations::ActivationScale;
use crate::blocking::{MC_STREAM, ROW_BLOCK, UNPACKED_BYTES};
use crate::weights::block::BlockType;

/// One row block of weights and the activations of the tokens to multiply it with.
#[derive(Clone, Copy)]
pub(crate) struct RowBlockTask<'a> {
    pub ty: BlockType,
    /// One panel or two, `panel_bytes` each.
    pub panels: &'a [u8],
    pub panel_bytes: usize,
    pub cols: usize,
    pub x: TokenActivations<'a>,
}

/// Activations of `m` tokens: integers for quantised weights, floats for float weights.
#[derive(Clone, Copy)]
pub(crate) enum TokenActivations<'a> {
    Integers {
        m: usize,
        bytes: &'a [i8],
        scales: &'a [ActivationScale],
    },
    Floats {
        m: usize,
        x: &'a [f32],
    },
}

impl TokenActivations<'_> {
    pub fn len(self) -> usize {
        match self {
            TokenActivations::Integers { m, .. } | TokenActivations::Floats { m, .. } => m,
        }
    }
}

/// A worker's scratch for products without tiles.
pub(crate) struct ProductScratch {
    pub unpacked: Box<UnpackedWeights>,
    /// Results.
    pub sums: Box<ProductSums>,
    /// The gate's results, while the same row block of up is multiplied.
    pub gate: Box<ProductSums>,
}

/// Unpacked weights of a row block, for loops that do not unpack in registers.
#[repr(C, align(64))]
pub(crate) struct UnpackedWeights {
    /// Floats: `[col][panel][16]`.
    pub weights: [u8; UNPACKED_BYTES],
}

/// `[token][panel][16]`.
#[repr(C, align(64))]
pub(crate) struct ProductSums(pub [f32; MC_STREAM * ROW_BLOCK]);

impl ProductScratch {
    pub fn new() -> Self {
        // SAFETY: arrays of integers and floats, for which zero bytes are valid.
        unsafe {
            ProductScratch {
                unpacked: Box::new_zeroed().assume_init(),
                sums: Box::new_zeroed().assume_init(),
                gate: Box::new_zeroed().assume_init(),
            }
        }
    }
}

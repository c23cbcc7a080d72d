//! One row block of weights, the activations that it is multiplied with, and a worker's memory.

use super::activations::Scale;
use crate::blocking::{STRIP, TOKENS, UNPACKED};
use crate::weights::block::BlockType;

/// One strip of weights and the tokens to multiply it with.
#[derive(Clone, Copy)]
pub(crate) struct Strip<'a> {
    pub ty: BlockType,
    /// One panel or two, `panel_bytes` each.
    pub panels: &'a [u8],
    pub panel_bytes: usize,
    pub cols: usize,
    pub x: Tokens<'a>,
}

/// `m` rows of activations; quantised weights meet integers, float weights floats.
#[derive(Clone, Copy)]
pub(crate) enum Tokens<'a> {
    Integers {
        m: usize,
        bytes: &'a [i8],
        scales: &'a [Scale],
    },
    Floats {
        m: usize,
        x: &'a [f32],
    },
}

impl Tokens<'_> {
    pub fn len(self) -> usize {
        match self {
            Tokens::Integers { m, .. } | Tokens::Floats { m, .. } => m,
        }
    }
}

/// A worker's own memory.
pub(crate) struct Stage {
    pub unpacked: Box<Unpacked>,
    /// Results.
    pub sums: Box<Sums>,
    /// The gate's results, while the same strip of its twin is multiplied.
    pub gate: Box<Sums>,
}

/// Weights of a strip on their way from memory to the product, where they are not multiplied as they come.
#[repr(C, align(64))]
pub(crate) struct Unpacked {
    /// Floats: `[col][panel][16]`.
    pub weights: [u8; UNPACKED],
}

/// `[token][panel][16]`.
#[repr(C, align(64))]
pub(crate) struct Sums(pub [f32; TOKENS * STRIP]);

impl Stage {
    pub fn new() -> Self {
        // SAFETY: they are plain numbers, for which zero bytes are values.
        unsafe {
            Stage {
                unpacked: Box::new_zeroed().assume_init(),
                sums: Box::new_zeroed().assume_init(),
                gate: Box::new_zeroed().assume_init(),
            }
        }
    }
}

//! The table of a level's routines, called through pointers, and the requirements of each entry.

use std::mem::MaybeUninit;

use crate::attention::scratch::AttentionScratch;
use crate::attention::task::{Attention, AttentionTask};
use crate::product::activations::{Granularity, PackActivations, QuantiseActivations, TileShape};
use crate::product::row_block::{ProductScratch, RowBlockTask};
use crate::product::tiles::{RowBlockGroup, ScratchSize, TileScratch};
use crate::weights::block::BlockType;
use crate::weights::layout::GROUP;

/// The routines of one level; each is unsafe to call on a machine without the level's instructions.
pub(crate) struct Routines {
    pub pack: unsafe fn(BlockType, &[u8], usize, &mut [MaybeUninit<u8>]),
    pub quantise: QuantiseActivations,
    pub multiply: unsafe fn(&RowBlockTask, &mut ProductScratch),
    /// `multiply` for one token, bit for bit: decoding, where the best width of a vector depends on the CPU.
    pub multiply_one: unsafe fn(&RowBlockTask, &mut ProductScratch),
    pub rms_norm: unsafe fn(&[f32], &[f32], f32, &mut [f32]),
    pub rotate: unsafe fn(&mut [f32], usize, usize, &[f32]),
    pub silu_mul: unsafe fn(&mut [f32], &[f32]),
    pub attend: unsafe fn(&Attention, &AttentionTask, &mut AttentionScratch),
    /// True if `attend` uses AMX, which needs larger scratch.
    pub attends_on_amx: bool,
    pub peak_dots: unsafe fn(usize) -> i32,
    /// Products of many tokens, by preference: the first entry that supports a product runs it, else `multiply` does.
    pub tiles: &'static [TileRoutines],
}

/// The routines of a product whose activations are packed as tiles.
pub(crate) struct TileRoutines {
    /// Returns the granularity of the activations for a block type, or `None` if the type is not supported.
    pub granularity: fn(BlockType) -> Option<Granularity>,
    /// Largest number of tokens for which the entry is used.
    pub max_tokens: usize,
    pub shape: TileShape,
    pub pack: PackActivations,
    pub multiply: unsafe fn(&RowBlockGroup, &mut TileScratch),
    pub scratch: ScratchSize,
    /// Tokens of a pass (MC).
    pub mc: usize,
    /// Row blocks of the largest group (NC); an even number.
    pub nc: usize,
}

impl TileRoutines {
    /// Returns the granularity of the activations of `m` tokens for `cols` columns of weights, or `None` if the product
    /// is not supported.
    pub fn granularity_for(&self, m: usize, ty: BlockType, cols: usize) -> Option<Granularity> {
        let supported = m <= self.max_tokens && cols.is_multiple_of(GROUP);
        (self.granularity)(ty).filter(|_| supported)
    }
}

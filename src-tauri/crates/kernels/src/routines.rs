//! The table of a level's routines: function pointers and what they need.

use std::mem::MaybeUninit;

use crate::attention::scratch::Desk as AttentionDesk;
use crate::attention::task::{Attention, Piece};
use crate::product::activations::{Arrange, Grain, Round, TileShape};
use crate::product::row_block::{Stage, Strip};
use crate::product::tiles::{Bunch, Desk, Room};
use crate::weights::block::BlockType;
use crate::weights::layout::GROUP;

/// What an executor calls; every entry is unsafe to call on a machine without its level.
pub(crate) struct Routines {
    pub pack: unsafe fn(BlockType, &[u8], usize, &mut [MaybeUninit<u8>]),
    pub round: Round,
    pub multiply: unsafe fn(&Strip, &mut Stage),
    pub rms_norm: unsafe fn(&[f32], &[f32], f32, &mut [f32]),
    pub rotate: unsafe fn(&mut [f32], usize, usize, &[f32]),
    pub silu_mul: unsafe fn(&mut [f32], &[f32]),
    pub attend: unsafe fn(&Attention, &Piece, &mut AttentionDesk),
    /// Whether `attend` uses a matrix unit.
    pub attends_in_tiles: bool,
    pub dots: unsafe fn(usize) -> i32,
    /// Products of many tokens, done by the first that serves them; where none does, `multiply` does them.
    pub tiles: &'static [TileRoutines],
}

/// Products of many tokens in tiles.
pub(crate) struct TileRoutines {
    pub grain: fn(BlockType) -> Option<Grain>,
    /// The most tokens that it is the fastest for.
    pub most: usize,
    pub shape: TileShape,
    /// Makes tiles of activations.
    pub arrange: Arrange,
    pub multiply: unsafe fn(&Bunch, &mut Desk),
    pub room: Room,
    /// The most tokens that it multiplies.
    pub tokens: usize,
    /// The most strips; an even number.
    pub strips: usize,
}

impl TileRoutines {
    /// How finely the activations of `m` tokens are to be rounded for a matrix, if it serves them.
    pub fn grain_for(&self, m: usize, ty: BlockType, cols: usize) -> Option<Grain> {
        let serves = m <= self.most && cols.is_multiple_of(GROUP);
        (self.grain)(ty).filter(|_| serves)
    }
}

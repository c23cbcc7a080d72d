//! Products of many tokens whose activations are packed as tiles: operands, epilogues and scratch.

use crate::blocking::ROW_BLOCK;
use crate::isa::{Isa, LANES};
use crate::memory::buffer::AlignedBuffer;
use crate::memory::reserve::OutOfMemory;
use crate::pool::disjoint::DisjointSlice;
use crate::product::activations::Granularity;
use crate::weights::block::BlockType;

/// Row blocks that a worker multiplies with the tokens of one pass (NC × MC).
pub(crate) struct RowBlockGroup<'a> {
    /// Tokens; at most MC of the level.
    pub m: usize,
    pub cols: usize,
    /// The activations, laid out by the level's [`TileShape`](crate::product::activations::TileShape).
    pub x: &'a [u16],
    /// At most NC of the level.
    pub row_blocks: &'a [RowBlock<'a>],
}

/// 32 rows of weights, fewer in the last block of a matrix, and the epilogue of their products.
pub(crate) struct RowBlock<'a> {
    pub ty: BlockType,
    /// One panel or two, `panel_bytes` each.
    pub panels: &'a [u8],
    pub panel_bytes: usize,
    pub epilogue: TileEpilogue<'a>,
}

/// Epilogue of a row block's sums.
#[derive(Clone, Copy)]
pub(crate) enum TileEpilogue<'a> {
    /// Stored to `y`, `[m][width]`: `rows` results for each token, `first` being the first one of token 0.
    Store {
        y: &'a DisjointSlice<'a, f32>,
        first: usize,
        rows: usize,
        width: usize,
        /// Added to the values of `y` instead.
        add: bool,
    },
    /// Kept as the gate of the next row block.
    Gate,
    /// SiLU(gate) · sums, with the previous row block as the gate, quantised as column group `group` of activations of
    /// `cols` columns.
    SwiGlu {
        to: &'a DisjointSlice<'a, u16>,
        granularity: Granularity,
        group: usize,
        cols: usize,
    },
}

/// Stores a token's sums of a row block to `y`, or adds them.
///
/// # Safety
/// The machine has `I`; `sums` is readable for two vectors, and `y` is at most as long.
#[inline(always)]
pub(crate) unsafe fn store_row<I: Isa>(sums: *const f32, y: &mut [f32], add: bool) {
    // SAFETY: a full row block is two vectors in `sums` and in `y`; a shorter one is copied element by element.
    unsafe {
        if y.len() == ROW_BLOCK {
            for at in [0, LANES] {
                let (sum, y) = (I::load(sums.add(at)), y.as_mut_ptr().add(at));
                I::store(y, if add { I::add(I::load(y), sum) } else { sum });
            }
            return;
        }
        for (i, y) in y.iter_mut().enumerate() {
            *y = *sums.add(i) + if add { *y } else { 0.0 };
        }
    }
}

/// A worker's scratch for products in tiles.
#[derive(Default)]
pub(crate) struct TileScratch {
    memory: AlignedBuffer<f32>,
}

/// Lengths in f32 of a level's unpacked weights, a whole number of vectors, and of its sums.
#[derive(Clone, Copy)]
pub(crate) struct ScratchSize {
    pub weights: usize,
    pub sums: usize,
}

impl TileScratch {
    /// Allocates room for weights and sums.
    pub fn reserve(&mut self, size: ScratchSize) -> Result<(), OutOfMemory> {
        debug_assert!(size.weights.is_multiple_of(LANES));
        self.memory.reserve(size.weights + size.sums)
    }

    /// Pointers to the unpacked weights, aligned to a cache line, and to the sums.
    pub fn take(&mut self, size: ScratchSize) -> (*mut f32, *mut f32) {
        self.memory.resize(size.weights + size.sums);
        let start = self.memory.as_mut_ptr();
        (start, start.wrapping_add(size.weights))
    }
}

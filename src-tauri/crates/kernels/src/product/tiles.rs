//! Products of many tokens in tiles: what is multiplied, and what becomes of it.

use crate::blocking::ROW_BLOCK;
use crate::isa::{Isa, LANES};
use crate::memory::buffer::AlignedBuffer;
use crate::memory::reserve::OutOfMemory;
use crate::pool::parts::DisjointSlice;
use crate::product::activations::Granularity;
use crate::weights::block::BlockType;

/// Strips that a worker multiplies with the same tokens.
pub(crate) struct RowBlockGroup<'a> {
    /// At most as many as the level takes in a pass.
    pub m: usize,
    pub cols: usize,
    /// The tokens, as the level's [`TileShape`](crate::product::activations::TileShape) lays them out.
    pub x: &'a [u16],
    /// At most as many as the level takes together.
    pub row_blocks: &'a [RowBlock<'a>],
}

/// 32 rows of weights, or the last ones, and what becomes of their products.
pub(crate) struct RowBlock<'a> {
    pub ty: BlockType,
    /// One panel or two, `panel_bytes` each.
    pub panels: &'a [u8],
    pub panel_bytes: usize,
    pub epilogue: TileEpilogue<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum TileEpilogue<'a> {
    /// They are `rows` columns, from `first` on, of `[m][width]`.
    Store {
        y: &'a DisjointSlice<'a, f32>,
        first: usize,
        rows: usize,
        width: usize,
        /// They are added to what is there.
        add: bool,
    },
    /// They wait for the next row_block.
    Gate,
    /// With the row_block before as the gate, SiLU(gate) times them is column group `group` of
    /// activations that are `cols` wide.
    SwiGlu {
        to: &'a DisjointSlice<'a, u16>,
        granularity: Granularity,
        group: usize,
        cols: usize,
    },
}

/// Writes a token's sums to its results, or adds them.
///
/// # Safety
/// The machine has `I`; `sums` are two vectors, and at least as many as `y`.
#[inline(always)]
pub(crate) unsafe fn store_row<I: Isa>(sums: *const f32, y: &mut [f32], add: bool) {
    // SAFETY: vectors of whole row_blocks, else number by number.
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

/// A worker's own memory.
#[derive(Default)]
pub(crate) struct TileScratch {
    memory: AlignedBuffer<f32>,
}

/// What a level needs of it: numbers of unpacked weights, whole vectors, and of sums.
#[derive(Clone, Copy)]
pub(crate) struct ScratchSize {
    pub weights: usize,
    pub sums: usize,
}

impl TileScratch {
    /// Makes room for weights and sums.
    pub fn reserve(&mut self, room: ScratchSize) -> Result<(), OutOfMemory> {
        debug_assert!(room.weights.is_multiple_of(LANES));
        self.memory.reserve(room.weights + room.sums)
    }

    /// The room for unpacked weights, which begins at a cache line, and that for sums.
    pub fn take(&mut self, room: ScratchSize) -> (*mut f32, *mut f32) {
        self.memory.resize(room.weights + room.sums);
        let start = self.memory.as_mut_ptr();
        (start, start.wrapping_add(room.weights))
    }
}

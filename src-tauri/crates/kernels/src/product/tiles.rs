//! Products of many tokens on a matrix unit: what is multiplied, and what becomes of it.

use crate::activations::Tiled;
use crate::block::BlockType;
use crate::memory::Buffer;
use crate::pool::Parts;
use crate::product::STRIP;

/// Tokens of a pass. With the columns of a slab they are 1 MiB as tiles, which stays in an L2 cache of
/// 2 MiB while the strips of a bunch pass by.
pub(crate) const TOKENS: usize = 256;
/// The most strips of a bunch.
pub(crate) const BUNCH: usize = 16;
/// Weights of a strip's slab, as tiles.
pub(crate) const WEIGHTS: usize = STRIP * Tiled::SLAB;

/// Tokens whose sums are in registers together: two blocks of [`Tiled::TOKENS`].
pub(crate) const PAIR: usize = 2 * Tiled::TOKENS;

/// Strips that a worker multiplies with the same tokens.
pub(crate) struct Bunch<'a> {
    /// At most [`TOKENS`].
    pub m: usize,
    pub cols: usize,
    /// The tokens, as [`Tiled`] lays them out.
    pub x: &'a [u16],
    /// At most [`BUNCH`].
    pub strips: &'a [Strip<'a>],
}

/// 32 rows of weights, or the last ones, and what becomes of their products.
pub(crate) struct Strip<'a> {
    pub ty: BlockType,
    /// One panel or two, `panel_bytes` each.
    pub panels: &'a [u8],
    pub panel_bytes: usize,
    pub end: End<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum End<'a> {
    /// They are `rows` columns, from `first` on, of `[m][width]`.
    Rows {
        y: &'a Parts<'a, f32>,
        first: usize,
        rows: usize,
        width: usize,
        /// They are added to what is there.
        add: bool,
    },
    /// They wait for the next strip.
    Gate,
    /// With the strip before as the gate, SiLU(gate) times them is column group `group` of
    /// activations that are `cols` wide.
    Up {
        to: &'a Parts<'a, u16>,
        group: usize,
        cols: usize,
    },
}

/// A worker's own memory.
#[derive(Default)]
pub(crate) struct Desk {
    /// Tiles of two strips, then sums of each strip of a bunch: `[strip][token][32]`.
    memory: Buffer<f32>,
}

impl Desk {
    /// Room for the tiles of two strips, and for all sums.
    pub fn room(&mut self) -> (*mut u16, *mut f32) {
        self.memory.resize(WEIGHTS + BUNCH * TOKENS * STRIP);
        let start = self.memory.as_mut_ptr();
        // Two halves of so many numbers of 16 bits take as much as one of 32 bits.
        (start.cast(), start.wrapping_add(WEIGHTS))
    }
}

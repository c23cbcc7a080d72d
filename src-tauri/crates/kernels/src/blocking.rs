//! Sizes of blocks.

use crate::isa::LANES;

/// Panels of 16 rows in a strip, the piece of work that a thread draws.
pub(crate) const STRIP_PANELS: usize = 2;
/// Rows of a strip.
pub(crate) const STRIP: usize = STRIP_PANELS * LANES;
/// Tokens whose results are gathered before they are handed on.
pub(crate) const TOKENS: usize = 512;
/// Tokens up to which weights are streamed: each weight is unpacked as it comes from memory, which
/// is what takes the time.
pub(crate) const STREAM: usize = 8;
/// How far ahead of the loop memory is asked for, in bytes.
pub(crate) const AHEAD: usize = 4096;
/// Columns of floats unpacked at a time: a strip of them stays in the L1 cache.
pub(crate) const FLOAT_COLS: usize = 128;
/// Bytes of these.
pub(crate) const UNPACKED: usize = STRIP * FLOAT_COLS * size_of::<f32>();

/// Positions of a slab.
pub(crate) const SLAB: usize = 64;
pub(crate) const SLAB_TILES: usize = SLAB / LANES;
/// Slabs of a stretch when queries are few. Stretches are then the same whatever the number of
/// queries, so that a token's result does not depend on how many others come with it.
pub(crate) const STRETCH: usize = 8;
/// Positions of a slab: as tiles, its keys and values take half an L1 cache each, and every row of queries meets as
/// many positions in a go.
#[cfg(target_arch = "x86_64")]
pub(crate) const TILE_SLAB: usize = 128;

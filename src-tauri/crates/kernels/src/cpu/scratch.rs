//! An executor's memory for products.

use crate::memory::buffer::Buffer;
use crate::product::activations::{Rounded, Tiled};
use crate::product::row_block::Stage;
use crate::product::tiles::Desk;

/// Memory for products, made once and grown to the largest.
pub(super) struct Scratch {
    pub by_group: Rounded,
    pub by_half: Rounded,
    pub stages: Vec<Stage>,
    pub by_tile: Tiled,
    pub tile_desks: Vec<Desk>,
    /// What a feed-forward layer's first half hands to its second, as floats, of which the twin's products are by
    /// themselves at first, or as tiles.
    pub gated: Buffer<f32>,
    pub up: Buffer<f32>,
    pub gated_by_tile: Tiled,
}

impl Scratch {
    pub fn new(workers: usize) -> Self {
        Scratch {
            by_group: Rounded::default(),
            by_half: Rounded::default(),
            stages: (0..workers).map(|_| Stage::new()).collect(),
            by_tile: Tiled::default(),
            tile_desks: (0..workers).map(|_| Desk::default()).collect(),
            gated: Buffer::default(),
            up: Buffer::default(),
            gated_by_tile: Tiled::default(),
        }
    }
}

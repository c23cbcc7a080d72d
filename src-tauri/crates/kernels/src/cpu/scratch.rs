//! An executor's memory for products.

use crate::memory::buffer::AlignedBuffer;
use crate::product::activations::{QuantisedActivations, TiledActivations};
use crate::product::row_block::ProductScratch;
use crate::product::tiles::TileScratch;

/// Memory for products, made once and grown to the largest.
pub(super) struct ProductBuffers {
    pub by_group: QuantisedActivations,
    pub by_half: QuantisedActivations,
    pub scratches: Vec<ProductScratch>,
    pub by_tile: TiledActivations,
    pub tile_scratches: Vec<TileScratch>,
    /// What a feed-forward layer's first half hands to its second, as floats, of which the twin's products are by
    /// themselves at first, or as tiles.
    pub gated: AlignedBuffer<f32>,
    pub up: AlignedBuffer<f32>,
    pub gated_by_tile: TiledActivations,
}

impl ProductBuffers {
    pub fn new(workers: usize) -> Self {
        ProductBuffers {
            by_group: QuantisedActivations::default(),
            by_half: QuantisedActivations::default(),
            scratches: (0..workers).map(|_| ProductScratch::new()).collect(),
            by_tile: TiledActivations::default(),
            tile_scratches: (0..workers).map(|_| TileScratch::default()).collect(),
            gated: AlignedBuffer::default(),
            up: AlignedBuffer::default(),
            gated_by_tile: TiledActivations::default(),
        }
    }
}

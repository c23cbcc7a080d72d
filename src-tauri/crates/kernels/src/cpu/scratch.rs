//! An executor's memory for products.

use crate::memory::buffer::AlignedBuffer;
use crate::product::activations::{QuantisedActivations, TiledActivations};
use crate::product::row_block::ProductScratch;
use crate::product::tiles::TileScratch;

/// The buffers of products; they grow to the largest call and are reused.
pub(super) struct ProductBuffers {
    pub by_group: QuantisedActivations,
    pub by_half: QuantisedActivations,
    pub scratches: Vec<ProductScratch>,
    pub by_tile: TiledActivations,
    pub tile_scratches: Vec<TileScratch>,
    /// The results of gate and up, or their SwiGLU: as floats, or as tiles.
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

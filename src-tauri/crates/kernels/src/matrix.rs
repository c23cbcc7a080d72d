//! A weight matrix, laid out for the product.

use crate::ShapeError;
use crate::block::BlockType;
use crate::isa::LANES;
use crate::layout::Layout;
use crate::memory::{Arena, Weights};
use crate::pool::Pool;
use crate::product::tiles::{self, End};
use crate::product::{STRIP, STRIP_PANELS};
use crate::routines::Routines;
use crate::unpack::unpack_row;

/// A weight matrix of `rows × cols`: a product takes `cols` activations to `rows` results.
#[derive(Debug)]
pub struct Matrix {
    ty: BlockType,
    rows: usize,
    cols: usize,
    panel_bytes: usize,
    weights: Weights,
}

impl Matrix {
    pub(crate) fn pack(
        pool: &Pool,
        routines: &Routines,
        arena: &mut Arena,
        ty: BlockType,
        rows: usize,
        cols: usize,
        bytes: &[u8],
    ) -> Result<Matrix, ShapeError> {
        let row_bytes = ty
            .row_bytes(cols)
            .filter(|_| rows > 0 && cols > 0)
            .ok_or(ShapeError::Dimensions { ty, rows, cols })?;
        if row_bytes.checked_mul(rows) != Some(bytes.len()) {
            let values = rows.saturating_mul(cols);
            return Err(ShapeError::Length {
                ty,
                values,
                bytes: bytes.len(),
            });
        }
        let layout = Layout::of(ty);
        let panel_bytes = row_bytes * LANES;
        debug_assert!(
            ty.block_len() == 1 || panel_bytes == cols / layout.cols * layout.block_bytes()
        );
        let panels = rows.div_ceil(LANES);
        let fresh = arena.take(panels * panel_bytes);
        pool.pieces(fresh.pages(), |_, page| {
            for p in fresh.parts_in(page, panel_bytes) {
                let end = ((p + 1) * panel_bytes).min(bytes.len());
                let source = &bytes[p * panel_bytes..end];
                // SAFETY: each panel is one piece's own; the routines are the machine's.
                unsafe { (routines.pack)(ty, source, row_bytes, fresh.part(p, panel_bytes)) };
            }
        });
        // SAFETY: the pieces are done, together they were all panels, and packing writes all of
        // a panel.
        let weights = unsafe { fresh.finish() };
        Ok(Matrix {
            ty,
            rows,
            cols,
            panel_bytes,
            weights,
        })
    }

    /// How the values are stored.
    pub fn block_type(&self) -> BlockType {
        self.ty
    }

    /// Results of a product.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Activations of a product.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Resident size in bytes.
    pub fn bytes(&self) -> usize {
        self.weights.as_slice().len()
    }

    /// Bytes of 16 rows.
    pub(crate) fn panel_bytes(&self) -> usize {
        self.panel_bytes
    }

    /// Strips of the matrix, the last of which may be narrower.
    pub(crate) fn strips(&self) -> usize {
        self.rows.div_ceil(STRIP)
    }

    /// The panels of a strip.
    pub(crate) fn panels(&self, strip: usize) -> &[u8] {
        let (all, bytes) = (self.weights.as_slice(), STRIP_PANELS * self.panel_bytes);
        &all[strip * bytes..((strip + 1) * bytes).min(all.len())]
    }

    /// A strip and what becomes of its products.
    pub(crate) fn tile_strip<'a>(&'a self, strip: usize, end: End<'a>) -> tiles::Strip<'a> {
        tiles::Strip {
            ty: self.ty,
            panels: self.panels(strip),
            panel_bytes: self.panel_bytes,
            end,
        }
    }

    /// Writes row `r` as floats: an embedding look-up.
    ///
    /// # Panics
    /// When there is no row `r`, or `out` is not `cols` long.
    pub fn row(&self, r: usize, out: &mut [f32]) {
        assert!(r < self.rows && out.len() == self.cols, "no such row");
        let panel = &self.weights.as_slice()[r / LANES * self.panel_bytes..][..self.panel_bytes];
        unpack_row(self.ty, panel, r % LANES, out);
    }
}

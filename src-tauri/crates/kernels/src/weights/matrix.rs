//! A weight matrix, laid out for the product.

use std::sync::{Mutex, PoisonError};

use crate::blocking::{ROW_BLOCK, ROW_BLOCK_PANELS};
use crate::error::{PackError, ShapeError};
use crate::isa::LANES;
use crate::memory::arena::{Arena, PackedBytes};
use crate::memory::stored::Stored;
use crate::pool::Pool;
use crate::product::tiles::{self, TileEpilogue};
use crate::routines::Routines;
use crate::weights::block::BlockType;
use crate::weights::layout::Layout;
use crate::weights::unpack::unpack_row;

/// Bytes of a file that a thread reads at a time, if that is a panel.
const READ_BYTES: usize = 256 << 10;

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A weight matrix of `rows × cols`: a product takes `cols` activations to `rows` results.
#[derive(Debug)]
pub struct Matrix {
    ty: BlockType,
    rows: usize,
    cols: usize,
    panel_bytes: usize,
    weights: PackedBytes,
}

impl Matrix {
    /// Rows are packed in groups of this size; those that a matrix lacks take memory too.
    pub const ROWS: usize = LANES;

    pub(crate) fn pack(
        pool: &Pool,
        routines: &Routines,
        arena: &mut Arena,
        ty: BlockType,
        rows: usize,
        cols: usize,
        stored: Stored<'_>,
    ) -> Result<Matrix, PackError> {
        let row_bytes = ty
            .row_bytes(cols)
            .filter(|_| rows > 0 && cols > 0)
            .ok_or(ShapeError::Dimensions { ty, rows, cols })?;
        let bytes = stored.len();
        if row_bytes.checked_mul(rows) != Some(bytes) {
            let values = rows.saturating_mul(cols);
            return Err(ShapeError::Length { ty, values, bytes }.into());
        }
        let layout = Layout::of(ty);
        let panel_bytes = row_bytes * LANES;
        debug_assert!(
            ty.block_len() == 1 || panel_bytes == cols / layout.cols * layout.block_bytes()
        );
        let panels = rows.div_ceil(LANES);
        let packed = panels
            .checked_mul(panel_bytes)
            .ok_or(crate::memory::reserve::OutOfMemory { bytes: usize::MAX })?;
        let fresh = arena.take(packed)?;
        // What is read from a file at a time is to be in the cache still when it is packed.
        let at_once = (READ_BYTES / panel_bytes).max(1);
        let buffers: Vec<_> = (0..pool.threads())
            .map(|_| Mutex::new(Vec::new()))
            .collect();
        let failed = Mutex::new(None);
        pool.tasks(fresh.pages(), |worker, page| {
            let parts = fresh.parts_in(page, panel_bytes);
            let mut buffer = lock(&buffers[worker]);
            for first in parts.clone().step_by(at_once) {
                let last = (first + at_once).min(parts.end);
                let range = first * panel_bytes..(last * panel_bytes).min(bytes);
                let source = match stored.get(range, &mut buffer) {
                    Ok(source) => source,
                    Err(error) => {
                        *lock(&failed) = Some(error);
                        return;
                    }
                };
                for (p, source) in (first..last).zip(source.chunks(panel_bytes)) {
                    // SAFETY: each panel is one task's own; the routines are the machine's.
                    unsafe { (routines.pack)(ty, source, row_bytes, fresh.part(p, panel_bytes)) };
                }
            }
        });
        if let Some(error) = lock(&failed).take() {
            return Err(error.into());
        }
        // SAFETY: the tasks are done and none has failed, together they were all panels, and packing
        // writes all of a panel.
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
    pub(crate) fn row_block_count(&self) -> usize {
        self.rows.div_ceil(ROW_BLOCK)
    }

    /// The panels of a row block.
    pub(crate) fn panels(&self, row_block: usize) -> &[u8] {
        let (all, bytes) = (self.weights.as_slice(), ROW_BLOCK_PANELS * self.panel_bytes);
        &all[row_block * bytes..((row_block + 1) * bytes).min(all.len())]
    }

    /// A row block and what becomes of its products.
    pub(crate) fn row_block<'a>(
        &'a self,
        row_block: usize,
        epilogue: TileEpilogue<'a>,
    ) -> tiles::RowBlock<'a> {
        tiles::RowBlock {
            ty: self.ty,
            panels: self.panels(row_block),
            panel_bytes: self.panel_bytes,
            epilogue,
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

//! A packed weight matrix.

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

/// Bytes that a thread reads from a file at a time, unless a panel is larger.
const READ_BYTES: usize = 256 << 10;

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A packed weight matrix of `rows × cols`: a product takes `cols` activations to `rows` results.
#[derive(Debug)]
pub struct Matrix {
    ty: BlockType,
    rows: usize,
    cols: usize,
    panel_bytes: usize,
    weights: PackedBytes,
}

impl Matrix {
    /// Rows of a panel; a matrix takes memory for whole panels.
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
        let uninit = arena.take(packed)?;
        // Small enough that the bytes are still in the cache when they are packed.
        let at_once = (READ_BYTES / panel_bytes).max(1);
        let buffers: Vec<_> = (0..pool.threads())
            .map(|_| Mutex::new(Vec::new()))
            .collect();
        let failed = Mutex::new(None);
        pool.parallel_for(uninit.pages(), |worker, page| {
            let parts = uninit.parts_in(page, panel_bytes);
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
                    // SAFETY: each panel belongs to one task, and the routines are those of this machine's level.
                    unsafe { (routines.pack)(ty, source, row_bytes, uninit.part(p, panel_bytes)) };
                }
            }
        });
        if let Some(error) = lock(&failed).take() {
            return Err(error.into());
        }
        // SAFETY: all tasks have returned without an error; together they packed every panel, and packing writes all of a
        // panel.
        let weights = unsafe { uninit.finish() };
        Ok(Matrix {
            ty,
            rows,
            cols,
            panel_bytes,
            weights,
        })
    }

    /// Block type of the values.
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

    /// Row blocks of the matrix; the last may have fewer rows.
    pub(crate) fn row_block_count(&self) -> usize {
        self.rows.div_ceil(ROW_BLOCK)
    }

    /// The panels of a row block.
    pub(crate) fn panels(&self, row_block: usize) -> &[u8] {
        let (all, bytes) = (self.weights.as_slice(), ROW_BLOCK_PANELS * self.panel_bytes);
        &all[row_block * bytes..((row_block + 1) * bytes).min(all.len())]
    }

    /// Row block `row_block` with its epilogue.
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
    /// Panics if there is no row `r`, or `out` is not `cols` long.
    pub fn row(&self, r: usize, out: &mut [f32]) {
        assert!(r < self.rows && out.len() == self.cols, "no such row");
        let panel = &self.weights.as_slice()[r / LANES * self.panel_bytes..][..self.panel_bytes];
        unpack_row(self.ty, panel, r % LANES, out);
    }
}

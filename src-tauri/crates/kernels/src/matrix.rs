//! A weight matrix, laid out for the product.

use crate::ShapeError;
use crate::block::{BlockType, dequantise};

/// A weight matrix of `rows × cols`: a product takes `cols` activations to `rows` results.
#[derive(Debug)]
pub struct Matrix {
    pub(crate) ty: BlockType,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) row_bytes: usize,
    pub(crate) data: Box<[u8]>,
}

impl Matrix {
    pub(crate) fn new(
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
            return Err(ShapeError::Length {
                ty,
                values: rows.saturating_mul(cols),
                bytes: bytes.len(),
            });
        }
        Ok(Matrix {
            ty,
            rows,
            cols,
            row_bytes,
            data: bytes.into(),
        })
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
        self.data.len()
    }

    /// Writes row `r` as floats: an embedding look-up.
    ///
    /// # Panics
    /// When there is no row `r`, or `out` is not `cols` long.
    pub fn row(&self, r: usize, out: &mut [f32]) {
        assert!(r < self.rows && out.len() == self.cols, "no such row");
        let bytes = &self.data[r * self.row_bytes..(r + 1) * self.row_bytes];
        dequantise(self.ty, bytes, out).expect("the shape was checked when the matrix was made");
    }
}

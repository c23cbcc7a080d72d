//! The operands of products: activations, weights, and the target of the results.

use std::ops::Range;

use crate::blocking::ROW_BLOCK;
use crate::pool::disjoint::DisjointSlice;
use crate::product::activations::{Granularity, QuantisedActivations};
use crate::product::row_block::TokenActivations;
use crate::product::tiles::TileEpilogue;
use crate::weights::matrix::Matrix;

/// The activations of a product, in the form that the type of the weights takes.
pub(super) struct ProductInput<'a> {
    pub x: &'a [f32],
    pub cols: usize,
    pub by_group: &'a QuantisedActivations,
    pub by_half: &'a QuantisedActivations,
    pub exact: bool,
}

impl ProductInput<'_> {
    pub fn tokens(&self, w: &Matrix, range: &Range<usize>) -> TokenActivations<'_> {
        let cells = range.start * self.cols..range.end * self.cols;
        let m = range.len();
        let quantised = match Granularity::of(w.block_type()) {
            Some(Granularity::Group) if !self.exact => self.by_group,
            Some(Granularity::Half) if !self.exact => self.by_half,
            _ => {
                return TokenActivations::Floats {
                    m,
                    x: &self.x[cells],
                };
            }
        };
        let (bytes, scales) = quantised.groups(cells);
        TokenActivations::Integers { m, bytes, scales }
    }
}

/// Weights, and the target of their product.
pub(super) type MatrixTarget<'a> = (&'a Matrix, ProductTarget<'a>);

/// Target of a product's results: stored, or added.
pub(super) enum ProductTarget<'a> {
    Set(&'a DisjointSlice<'a, f32>),
    Add(&'a DisjointSlice<'a, f32>),
}

impl<'a> ProductTarget<'a> {
    /// The epilogue of a row block for the tokens from `token` on.
    pub fn epilogue(&self, w: &Matrix, token: usize, row_block: usize) -> TileEpilogue<'a> {
        let (y, add) = match *self {
            ProductTarget::Set(y) => (y, false),
            ProductTarget::Add(y) => (y, true),
        };
        let row = row_block * ROW_BLOCK;
        TileEpilogue::Store {
            y,
            first: token * w.rows() + row,
            rows: (w.rows() - row).min(ROW_BLOCK),
            width: w.rows(),
            add,
        }
    }
}

/// # Panics
/// Panics if `x` or `y` does not have the length for `m` tokens and `w`.
pub(super) fn assert_shapes(x: &[f32], m: usize, w: &Matrix, y: &[f32]) {
    assert!(x.len() == m * w.cols(), "x is [m][cols]");
    assert!(y.len() == m * w.rows(), "y is [m][rows]");
}

/// Stores or adds the results of a row block, token by token.
pub(super) fn store(
    sums: &[f32],
    w: &Matrix,
    row_block: usize,
    tokens: &Range<usize>,
    target: &ProductTarget,
) {
    let first = row_block * ROW_BLOCK;
    let rows = (w.rows() - first).min(ROW_BLOCK);
    for (t, sums) in tokens.clone().zip(sums.chunks_exact(ROW_BLOCK)) {
        let (at, sums) = (t * w.rows() + first, &sums[..rows]);
        match target {
            ProductTarget::Set(y) => {
                // SAFETY: of every row of results, the part of a row block belongs to one task.
                let y = unsafe { y.slice(at, rows) };
                match (y.as_mut_array::<ROW_BLOCK>(), sums.as_array::<ROW_BLOCK>()) {
                    (Some(y), Some(sums)) => *y = *sums,
                    _ => y.copy_from_slice(sums),
                }
            }
            ProductTarget::Add(y) => {
                // SAFETY: of every row of results, the part of a row block belongs to one task.
                for (y, sum) in unsafe { y.slice(at, rows) }.iter_mut().zip(sums) {
                    *y += sum;
                }
            }
        }
    }
}

//! Errors of packing and of tensor bytes.

use crate::memory::reserve::OutOfMemory;
use crate::weights::block::BlockType;

/// A matrix cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The bytes do not match the shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The system has no memory left.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The bytes cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
}

/// Bytes that do not match a tensor's type and shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The length is not that of this number of values of this type.
    #[error("{bytes} bytes cannot hold exactly {values} values of type {name}", name = ty.name())]
    Length {
        /// The type of the values.
        ty: BlockType,
        /// Number of values.
        values: usize,
        /// Number of bytes.
        bytes: usize,
    },
    /// A matrix of these dimensions cannot be stored in this type.
    #[error("a matrix of {rows} rows of {cols} values cannot be stored as {name}", name = ty.name())]
    Dimensions {
        /// The type of the values.
        ty: BlockType,
        /// Rows of the matrix.
        rows: usize,
        /// Values in a row.
        cols: usize,
    },
}

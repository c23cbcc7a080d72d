//! Errors of packing and of tensor bytes.

use crate::memory::reserve::OutOfMemory;
use crate::weights::block::BlockType;

/// Why a matrix cannot be laid out.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// Its bytes are not those of its shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// There is no memory for it.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// Its bytes cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
}

/// Bytes that cannot be the tensor they are said to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The bytes are not as long as so many values of this type take.
    #[error("{bytes} bytes cannot hold exactly {values} values of type {name}", name = ty.name())]
    Length {
        /// The type of the values.
        ty: BlockType,
        /// How many values were asked for.
        values: usize,
        /// How many bytes there were.
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

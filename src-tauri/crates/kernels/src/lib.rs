//! Everything in Goldcrest that must be fast, and everything that is unsafe.

mod activations;
mod attention;
mod bandwidth;
mod block;
mod cpu;
mod elementwise;
mod isa;
mod kv;
mod layout;
mod level;
mod map;
mod matrix;
mod memory;
mod pack;
mod pool;
mod product;
mod routines;

pub use bandwidth::read_bandwidth;
pub use block::{BlockType, dequantise};
pub use cpu::Cpu;
pub use kv::{KvLayer, KvType};
pub use level::{CpuLevel, UnknownCpuLevel};
pub use map::FileMap;
pub use matrix::Matrix;

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

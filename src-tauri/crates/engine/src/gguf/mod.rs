//! GGUF, the file format of the model: a bounded reader and a writer.
//!
//! The reader trusts nothing. Every count and offset is checked against the bytes that are really there before
//! it is used, arrays are decoded when asked for, and tensors may not overlap, so whatever a file says, reading it
//! cannot allocate more than the file holds. The header is in memory; tensors are read when they are packed. Errors
//! name the key or the tensor at fault.

mod error;
mod file;
mod header;
mod value;
pub mod write;

pub use error::{GgufError, quote};
pub use file::{Gguf, TensorView};
pub use header::TensorInfo;
pub use kernels::BlockType;
pub use value::{Array, Value};

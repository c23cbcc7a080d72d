//! GGUF, the file format of the model: a bounded reader and a writer.
//!
//! The reader does not trust the file. Every count and offset is checked against the length of the file before it is
//! used, arrays are decoded on request, and tensors may not overlap, so reading any file allocates no more than its
//! length. Parts that no model needs are not checked: a tensor of a type without kernels is listed separately, and
//! descriptions need not be UTF-8. A model may be in several files ([`model_files`]). The header is in memory; tensors
//! are read when they are packed. Errors name the invalid key or tensor.

mod error;
mod file;
mod file_part;
mod header;
mod parts;
mod value;
pub mod write;

pub use error::{GgufError, quote};
pub use file::{Gguf, TensorView};
pub use header::{TensorInfo, UnsupportedTensor};
pub use kernels::BlockType;
pub use parts::{file_stem, model_files};
pub use value::{Array, Value};

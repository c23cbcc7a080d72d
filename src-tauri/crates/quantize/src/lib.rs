//! Quantisation of a model in floats to a GGUF.
//!
//! [`quantize`] reads a GGUF in F32, F16 or BF16, or a Hugging Face folder with safetensors, and writes a GGUF with
//! llama.cpp's mix of block types for the requested file type. It works on chunks of rows: memory does not grow with
//! the model. The file is written under a temporary name, read back and compared with its source, and renamed when it
//! is complete.
//!
//! Bottom to top: the search for scales (`search`), the packing of blocks (`k_quants`, `blocks`), the floats of a model from
//! either kind of input (`model`, `gguf_input`, `folder`), the choice of types (`choice`), the output file (`output`), and the
//! run from one to the other (`run`).

mod blocks;
mod choice;
mod error;
mod folder;
mod gguf_input;
mod k_quants;
mod model;
mod output;
mod run;
mod search;

pub use blocks::{decode, encode};
pub use choice::{FileType, UnknownFileType};
pub use error::QuantizeError;
pub use run::{QuantizeReport, QuantizeRequest, QuantizeStep, QuantizedTensor, quantize};

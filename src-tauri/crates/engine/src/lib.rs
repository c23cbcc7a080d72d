//! SmolLM3 GGUF in, tokens out.
//!
//! Synchronous and single-owner: an `Engine` belongs to one thread, which loads it, asks it and drops it. The
//! layers, bottom to top: the file ([`gguf`]), what the file says about the model, its weights, one forward pass
//! over a backend, the sequence with its KV cache, and generation.

pub mod gguf;
mod template;
mod tokenizer;

pub use gguf::{Gguf, GgufError};
pub use template::{Capabilities, ChatTemplate, TemplateError};
pub use tokenizer::{Decoder, Tokenizer, TokenizerError};

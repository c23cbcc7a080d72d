//! candle-transformers' quantised SmolLM3 on the CPU: an independent implementation of the same model.
//!
//! [`ReferenceModel`] computes logits from a GGUF file, [`Distance`] compares two sets of logits. This crate knows
//! nothing of the engine that it is compared with.
//!
//! candle does not validate an untrusted file enough: it may panic, or abort when out of memory. Run it in a process
//! that may die, on a file that was checked before. candle prints to stdout while it opens a model.

mod compare;
mod error;
mod model;
mod outline;

pub use compare::{Distance, DistanceSum, TopToken, log_softmax};
pub use error::{ReferenceError, UnsupportedModel};
pub use model::ReferenceModel;
pub use outline::{MOST_CONTEXT, ModelOutline};

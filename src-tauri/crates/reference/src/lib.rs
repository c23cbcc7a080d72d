//! candle-transformers' quantised SmolLM3 on the CPU: other code by other people for the same model.
//!
//! [`ReferenceModel`] computes logits from a GGUF file, [`Distance`] says how far two sets of logits are apart. This
//! crate knows nothing of the engine that it is compared with.
//!
//! candle validates less of a file than a stranger's file needs: it may panic, or abort for want of memory. Run it in a
//! process that may die, on a file that was checked before. While a model is opened candle prints to stdout.

mod compare;
mod error;
mod model;
mod outline;

pub use compare::{Distance, DistanceSum, TopToken, log_softmax};
pub use error::{ReferenceError, UnsupportedModel};
pub use model::ReferenceModel;
pub use outline::{MOST_CONTEXT, ModelOutline};

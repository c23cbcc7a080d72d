//! Parts that the tests of several packages share. No product code depends on it.

#[cfg(feature = "gpu")]
pub mod faulty_gpu;
mod hostile;
mod skipped;
mod tiny_model;

pub use hostile::{Lcg, hostile};
pub use skipped::{or_skip, skip};
pub use tiny_model::tiny_model;

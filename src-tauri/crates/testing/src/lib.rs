//! Parts that the tests of several packages share. No product code depends on it.

#[cfg(feature = "gpu")]
pub mod faulty_gpu;
mod hostile;
#[cfg(unix)]
mod running;
mod skipped;
mod tiny_model;

pub use hostile::{Lcg, hostile};
#[cfg(unix)]
pub use running::running;
pub use skipped::{or_skip, skip};
pub use tiny_model::tiny_model;

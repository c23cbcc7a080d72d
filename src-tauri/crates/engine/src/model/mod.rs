//! The model: its dimensions, its weights, and one forward pass on each kind of device.

pub mod activations;
pub mod config;
pub mod error;
pub mod evaluate;
pub mod external;
pub mod forward;
pub mod gpu;
pub mod rope;
pub mod split;
pub mod weights;

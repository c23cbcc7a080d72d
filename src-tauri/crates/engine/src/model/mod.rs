//! The model: its dimensions, its weights, and the forward pass on CPU and GPU.

pub mod activations;
pub mod architecture;
pub mod config;
pub mod content;
pub mod error;
pub mod evaluate;
pub mod external;
pub mod forward;
pub mod gpu;
pub mod kind;
pub mod kv_cache;
pub mod rope;
pub mod split;
pub mod weights;

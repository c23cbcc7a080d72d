//! The model: its dimensions, its weights, and one forward pass on each kind of device.

pub mod backend;
pub mod candle;
pub mod config;
pub mod cpu;
pub mod forward;
pub mod gpu;
pub mod rope;
pub mod split;
pub mod weights;

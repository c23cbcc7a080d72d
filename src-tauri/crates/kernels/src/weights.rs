//! Quantised weights: ggml's blocks, the packed layout, and the matrix of a product.

pub(crate) mod block;
pub(crate) mod dequantise;
pub(crate) mod layout;
pub(crate) mod matrix;
pub(crate) mod pack;
pub(crate) mod unpack;

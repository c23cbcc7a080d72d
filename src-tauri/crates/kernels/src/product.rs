//! Products of a weight matrix with the activations of one token or many.

pub(crate) mod activations;
#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
mod floats;
#[cfg(target_arch = "aarch64")]
pub(crate) mod i8mm;
pub(crate) mod integers;
pub(crate) mod row_block;
pub(crate) mod stream;
pub(crate) mod tiles;

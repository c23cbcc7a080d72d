//! Running a model: the sequence with its KV cache, sampling, and generation.

pub mod generate;
pub mod lookup;
pub mod random;
pub mod sampler;
#[cfg(test)]
pub mod scripted;
pub mod session;

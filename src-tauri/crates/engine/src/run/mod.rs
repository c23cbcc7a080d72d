//! Running a model: the sequence with its KV cache, sampling, and generation.

pub mod costs;
pub mod generate;
pub mod kv_blocks;
pub mod random;
mod repetition;
pub mod sampler;
#[cfg(test)]
pub mod scripted;
mod sequence;
pub mod session;
pub mod speculative;
mod thinking_end;

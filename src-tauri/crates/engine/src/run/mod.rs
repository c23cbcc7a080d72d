//! Running a model: the sequence with its KV cache, sampling, and generation.

pub mod answer;
mod constraint;
pub mod costs;
pub mod error;
pub mod generate;
pub mod kv_blocks;
mod logprobs;
pub mod random;
mod repetition;
pub mod sampler;
pub mod scheduler;
#[cfg(test)]
pub mod scripted;
pub mod sequence;
pub mod session;
pub mod speculative;
mod thinking_end;

//! Running plans: the executor trait, its implementation on wgpu, and how much one submit may hold.

#[cfg(test)]
pub(crate) mod counting;
pub(crate) mod executor;
pub(crate) mod wgpu_executor;

//! Plans: the forward pass as fused kernels bound to buffers.

pub(crate) mod buffers;
pub(crate) mod builder;
pub(crate) mod pass;
pub(crate) mod specialize;

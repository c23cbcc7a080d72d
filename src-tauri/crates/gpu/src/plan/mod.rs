//! Plans: the forward pass as fused kernels bound to buffers.

pub(crate) mod buffers;
pub(crate) mod builder;
pub(crate) mod kv_cache;
pub(crate) mod options;
pub(crate) mod pass;
pub(crate) mod specialize;
pub(crate) mod support;
pub(crate) mod tiling;

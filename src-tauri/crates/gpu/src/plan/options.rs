//! Options of running a model.

use kernels::KvType;

/// Options of running a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Type of keys and values in the KV cache.
    pub kv: KvType,
    /// Activations in f32 throughout: exact, and for GPUs without integer dot products.
    pub floats: bool,
    /// Cooperative matrices for passes over many tokens, if the device has them and `floats` is off.
    pub matrices: bool,
}

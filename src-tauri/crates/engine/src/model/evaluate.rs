//! The interface of a loaded model on any device.

use std::sync::atomic::AtomicBool;

use inference::Sampling;

pub use gpu::Want;

use crate::model::error::DeviceError;
use crate::model::kv_cache::KvCache;

/// Outcome of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pass {
    /// The tokens are in the cache and the logits are computed.
    Complete,
    /// Cancelled; the cache is unchanged.
    Cancelled,
}

/// Cost of a token on a GPU.
pub struct Profile {
    /// Cost of each kernel.
    pub kernels: Vec<gpu::KernelCost>,
    /// Memory read bandwidth of the device in bytes per second, if it has timestamps.
    pub bandwidth: Option<f64>,
}

/// A loaded model with the KV cache of one sequence.
pub trait Evaluate: Send {
    /// Appends `ids` to the cached sequence, at most [`Evaluate::chunk`] tokens per pass, and writes the logits of the
    /// wanted positions to `logits`, `[wanted, V]`.
    ///
    /// # Errors
    /// Returns the device's error; the cache is then unchanged.
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError>;
    /// Removes all but the first `len` positions from the cache.
    fn truncate(&mut self, len: usize);
    /// Most tokens of one pass.
    fn chunk(&self) -> usize;
    /// Tokens of a block: a pass over several blocks gives the bits of a pass over each.
    fn block(&self) -> usize {
        self.chunk()
    }
    /// Most tokens of a pass whose results are bit-identical to those of single-token passes.
    fn batch_limit(&self) -> usize {
        1
    }
    /// Memory of the cache, in bytes.
    fn kv_bytes(&self) -> usize;
    /// The cache, if host memory holds all of it.
    fn kv_cache(&mut self) -> Option<&mut KvCache> {
        None
    }
    /// Cost of a token on a GPU; the cache does not change.
    ///
    /// # Errors
    /// Returns the device's error.
    fn profile(&mut self) -> Result<Option<Profile>, DeviceError> {
        Ok(None)
    }
    /// The device's own sampler, if it has one.
    fn sampler(&mut self) -> Option<&mut dyn DeviceSampler> {
        None
    }
}

/// A device that samples tokens, so that it never waits for the host: the pass over a token is submitted before
/// the token is read back.
pub trait DeviceSampler {
    /// Sets the sampling parameters and the suppressed tokens; false if the device does not support them.
    ///
    /// # Errors
    /// Returns the device's error.
    fn configure(&mut self, sampling: &Sampling, suppressed: &[u32]) -> Result<bool, DeviceError>;
    /// Submits a pass over `id`, else over the token that the previous pass samples; the uniform draw `u` in 0..1
    /// selects the next token.
    ///
    /// # Errors
    /// Returns the device's error.
    fn submit(&mut self, id: Option<u32>, u: f64) -> Result<(), DeviceError>;
    /// Submitted passes whose token was not read back.
    fn in_flight(&mut self) -> usize;
    /// Waits for the oldest pass in flight and returns its token; `None` if the host has to sample.
    ///
    /// # Errors
    /// Returns the device's error.
    fn wait(&mut self) -> Result<Option<u32>, DeviceError>;
}

/// Checks the tokens of a pass.
///
/// # Errors
/// [`DeviceError::Input`] when there are none, more than `chunk`, or one outside of the vocabulary.
pub fn check_ids(ids: &[u32], chunk: usize, vocab: usize) -> Result<(), DeviceError> {
    if ids.is_empty() || ids.len() > chunk {
        return Err(DeviceError::Input(format!(
            "a pass takes 1 to {chunk} tokens, not {}",
            ids.len()
        )));
    }
    match ids.iter().find(|&&id| id as usize >= vocab) {
        Some(id) => Err(DeviceError::Input(format!(
            "token {id} is not in the vocabulary"
        ))),
        None => Ok(()),
    }
}

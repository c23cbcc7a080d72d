//! What the rest of the engine sees of a loaded model, whatever device it is on.

use std::sync::atomic::AtomicBool;

use inference::Sampling;

pub use gpu::Want;

use crate::model::error::DeviceError;

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pass {
    /// The tokens are in the cache and the logits are there.
    Complete,
    /// It was cancelled; the cache is as it was before.
    Cancelled,
}

/// What a token costs on a GPU.
pub struct Profile {
    /// By kernel.
    pub kernels: Vec<gpu::KernelCost>,
    /// Bytes that the device reads from its memory in a second, where it has timestamps.
    pub bandwidth: Option<f64>,
}

/// A loaded model with the KV cache of one sequence.
pub trait Evaluate: Send {
    /// Runs `ids` behind what the cache holds, at most [`Evaluate::chunk`] tokens at once, and puts the logits of the
    /// wanted positions into `logits`, `[wanted, V]`.
    ///
    /// # Errors
    /// When the device fails; the cache is then as it was before.
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
    /// Tokens up to which a pass gives bit for bit what passes over each of them give.
    fn batch_limit(&self) -> usize {
        1
    }
    /// Memory of the cache, in bytes.
    fn kv_bytes(&self) -> usize;
    /// What a token costs on a GPU; the cache is as before.
    ///
    /// # Errors
    /// When the device fails.
    fn profile(&mut self) -> Result<Option<Profile>, DeviceError> {
        Ok(None)
    }
    /// The device's own sampler, where it has one.
    fn sampler(&mut self) -> Option<&mut dyn DeviceSampler> {
        None
    }
}

/// A device that samples tokens itself, so that it never waits for the host: the pass over a token is submitted before
/// the token is read back.
pub trait DeviceSampler {
    /// Sets how tokens are sampled, and which never are; false where the device cannot sample so.
    ///
    /// # Errors
    /// When the device fails.
    fn configure(&mut self, sampling: &Sampling, suppressed: &[u32]) -> Result<bool, DeviceError>;
    /// Submits a pass over `id`, or else over the token that the pass before samples; the uniform draw `u` in 0..1
    /// picks the one after it.
    ///
    /// # Errors
    /// When the device fails.
    fn submit(&mut self, id: Option<u32>, u: f64) -> Result<(), DeviceError>;
    /// Passes whose token was not waited for.
    fn in_flight(&mut self) -> usize;
    /// Waits for the first of these and returns its token; `None` where the host has to sample.
    ///
    /// # Errors
    /// When the device fails.
    fn wait(&mut self) -> Result<Option<u32>, DeviceError>;
}

/// Whether a pass can take these tokens.
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

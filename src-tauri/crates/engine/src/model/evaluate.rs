//! The interface of a loaded model on any device.

use std::any::Any;
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

/// The KV cache of one sequence, in the memory of the model that made it.
pub trait Cache: Any + Send {
    /// Positions in it.
    fn positions(&self) -> usize;
    /// Removes all but the first `len` positions.
    fn truncate(&mut self, len: usize);
    /// Memory, in bytes.
    fn bytes(&self) -> usize;
    /// The cache, if host memory holds all of it.
    fn in_host_memory(&mut self) -> Option<&mut KvCache> {
        None
    }
}

impl Cache for KvCache {
    fn positions(&self) -> usize {
        self.len()
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn in_host_memory(&mut self) -> Option<&mut KvCache> {
        Some(self)
    }
}

/// Returns a cache as the type of the model that it is given to.
///
/// # Errors
/// [`DeviceError::Input`] if a model of another kind has made it.
pub fn cache_of<T: Cache>(cache: &mut dyn Cache) -> Result<&mut T, DeviceError> {
    let cache: &mut dyn Any = cache;
    let other = || DeviceError::Input("the KV cache is of another model".to_owned());
    cache.downcast_mut().ok_or_else(other)
}

/// A sequence in a pass.
pub struct PassSlot<'a> {
    /// The cache, to which the pass appends.
    pub cache: &'a mut dyn Cache,
    /// The next tokens.
    pub ids: &'a [u32],
    /// The positions whose logits are computed.
    pub want: Want,
}

/// A loaded model: weights, and buffers for a pass. The caches of its sequences are apart.
pub trait Evaluate: Send {
    /// Makes an empty cache.
    ///
    /// # Errors
    /// Returns the device's error.
    fn new_cache(&mut self) -> Result<Box<dyn Cache>, DeviceError>;
    /// Appends the tokens of all slots to their caches, at most [`Evaluate::chunk`] tokens together, and writes the
    /// logits of the wanted positions to `logits`, slot after slot, `[wanted, V]`.
    ///
    /// # Errors
    /// Returns the device's error; the caches are then unchanged.
    fn forward(
        &mut self,
        slots: &mut [PassSlot<'_>],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError>;
    /// Most tokens of one pass.
    fn chunk(&self) -> usize;
    /// Tokens of a block that can be stored, whole segments; `None` if host memory does not hold the caches. A pass over
    /// several blocks gives the bits of a pass over each.
    fn block(&self) -> Option<usize> {
        None
    }
    /// Most tokens of a pass whose results are bit-identical to those of single-token passes, whatever sequences they
    /// belong to.
    fn batch_limit(&self) -> usize {
        1
    }
    /// Cost of a token on a GPU; the cache does not change.
    ///
    /// # Errors
    /// Returns the device's error.
    fn profile(&mut self, _cache: &mut dyn Cache) -> Result<Option<Profile>, DeviceError> {
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
    /// Submits a pass over `id`, or without one over the token that the previous pass samples, to the sequence of `cache`.
    /// The uniform draw `u` in 0..1 selects the next token.
    ///
    /// # Errors
    /// Returns the device's error.
    fn submit(&mut self, cache: &mut dyn Cache, id: Option<u32>, u: f64)
    -> Result<(), DeviceError>;
    /// Submitted passes whose token was not read back.
    ///
    /// # Errors
    /// Returns the device's error.
    fn in_flight(&mut self, cache: &mut dyn Cache) -> Result<usize, DeviceError>;
    /// Waits for the oldest pass in flight and returns its token; `None` if the host has to sample.
    ///
    /// # Errors
    /// Returns the device's error.
    fn wait(&mut self, cache: &mut dyn Cache) -> Result<Option<u32>, DeviceError>;
}

/// Checks the tokens of a pass.
///
/// # Errors
/// [`DeviceError::Input`] when a slot has none, all have more than `chunk`, or one is outside of the vocabulary.
pub fn check_slots(slots: &[PassSlot<'_>], chunk: usize, vocab: usize) -> Result<(), DeviceError> {
    let tokens: usize = slots.iter().map(|slot| slot.ids.len()).sum();
    if tokens > chunk || slots.is_empty() || slots.iter().any(|slot| slot.ids.is_empty()) {
        return Err(DeviceError::Input(format!(
            "a pass takes 1 to {chunk} tokens, not {tokens}"
        )));
    }
    let mut ids = slots.iter().flat_map(|slot| slot.ids);
    match ids.find(|&&id| id as usize >= vocab) {
        Some(id) => Err(DeviceError::Input(format!(
            "token {id} is not in the vocabulary"
        ))),
        None => Ok(()),
    }
}

/// Runs the slots of a pass one after the other, for a model that takes one sequence at a time. If one does not
/// complete, all caches are unchanged.
///
/// # Errors
/// Returns the device's error.
pub fn one_by_one(
    slots: &mut [PassSlot<'_>],
    logits: &mut Vec<f32>,
    mut append: impl FnMut(&mut PassSlot<'_>, &mut Vec<f32>) -> Result<Pass, DeviceError>,
) -> Result<Pass, DeviceError> {
    if let [slot] = slots {
        return append(slot, logits);
    }
    let before: Vec<usize> = slots.iter().map(|slot| slot.cache.positions()).collect();
    logits.clear();
    let mut part = Vec::new();
    for at in 0..slots.len() {
        let pass = append(&mut slots[at], &mut part);
        if !matches!(pass, Ok(Pass::Complete)) {
            for (slot, before) in slots.iter_mut().zip(before) {
                slot.cache.truncate(before);
            }
            return pass;
        }
        if slots[at].want != Want::Nothing {
            logits.append(&mut part);
        }
    }
    Ok(Pass::Complete)
}

//! A model on a device, with the KV caches of its sequences.

use std::collections::VecDeque;
use std::time::Instant;

use crate::error::GpuError;
use crate::exec::executor::Executor;
use crate::model::plans::{ModelPlans, PassPlans};
use crate::model::submit_budget::SubmitBudget;
use crate::plan::buffers::PassBuffers;
use crate::plan::builder::PlanBuilder;
use crate::plan::kv_cache::GpuKvCache;
use crate::plan::options::Options;
use crate::plan::pass::PassParams;
use crate::plan::support::{check_shape, check_weights};
use crate::plan::tiling::{MAT_VEC_MAX_TOKENS, MAX_CHUNKS, max_pass_tokens};
use crate::shape::Shape;
use crate::weights::matrix::GpuWeights;

mod append;
pub(crate) mod input;
mod memory;
mod plans;
pub(crate) mod profile;
pub(crate) mod sample;
mod submit_budget;
#[cfg(test)]
mod tests;

/// RoPE's angles of `count` positions from the first on: cosine and sine of every pair of values,
/// `[count, rotary / 2, 2]`.
pub type Angles = Box<dyn Fn(usize, usize) -> Vec<f32> + Send>;

/// The last layers of a model on a device, with the sequence that its passes extend.
pub struct DeviceModel<E: Executor> {
    exec: E,
    shape: Shape,
    options: Options,
    weights: GpuWeights<E::Buffer>,
    angles: Angles,
    buffers: PassBuffers<E::Buffer>,
    sequence: DeviceSequence<E>,
    budget: SubmitBudget,
    /// Submits of a prompt that have not been waited for.
    submits: VecDeque<InFlight<E::Submission>>,
    /// End of the last of them.
    last_retired: Option<Instant>,
}

/// The KV cache of a sequence on a device.
pub struct DeviceSequence<E: Executor> {
    cache: GpuKvCache<E::Buffer>,
    /// Positions in the KV cache.
    len: usize,
    /// Built at the first pass; reset to `None` when a buffer that they bind is replaced.
    plans: Option<ModelPlans<E::BoundKernel>>,
    /// Passes whose sampled token has not been read yet.
    sampled: VecDeque<E::Submission>,
}

/// A submit in flight.
struct InFlight<S> {
    submission: S,
    /// Multiply–adds.
    work: f64,
    started: Instant,
}

impl<E: Executor> DeviceModel<E> {
    /// Makes a model with an empty KV cache. If `weights` has fewer layers than `shape`, they are its last ones; if the
    /// device has no room for the buffers beside them, the first of these are dropped.
    ///
    /// # Errors
    /// Fails if the kernels do not support the model, or the device has no room for one layer and the buffers.
    pub fn new(
        mut exec: E,
        shape: Shape,
        options: Options,
        mut weights: GpuWeights<E::Buffer>,
        angles: Angles,
    ) -> Result<DeviceModel<E>, GpuError> {
        check_shape(&shape)?;
        check_weights(&weights)?;
        let capacity = max_pass_tokens(&exec.limits());
        let buffers = loop {
            match PassBuffers::new(&mut exec, &shape, capacity, MAT_VEC_MAX_TOKENS) {
                Err(GpuError::OutOfMemory(_)) if weights.layers.len() > 1 => {
                    weights.layers.remove(0);
                    exec.wait_idle()?;
                }
                allocated => break allocated?,
            }
        };
        let cache = GpuKvCache::new(&mut exec, &shape, weights.layers.len(), options.kv)?;
        Ok(DeviceModel {
            exec,
            shape,
            options,
            weights,
            angles,
            buffers,
            sequence: DeviceSequence::new(cache),
            budget: SubmitBudget::default(),
            submits: VecDeque::new(),
            last_retired: None,
        })
    }

    /// Removes all but the first `len` positions.
    pub fn truncate(&mut self, len: usize) {
        self.sequence.truncate(len);
        self.submits.clear();
    }

    /// Makes an empty sequence and exchanges it for the model's own.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn take_sequence(&mut self) -> Result<DeviceSequence<E>, GpuError> {
        let (layers, kv) = (self.weights.layers.len(), self.options.kv);
        let cache = GpuKvCache::new(&mut self.exec, &self.shape, layers, kv)?;
        Ok(std::mem::replace(
            &mut self.sequence,
            DeviceSequence::new(cache),
        ))
    }

    /// Exchanges the sequence that passes extend.
    pub fn swap_sequence(&mut self, sequence: &mut DeviceSequence<E>) {
        std::mem::swap(&mut self.sequence, sequence);
    }

    /// The parameters of a pass over one token.
    fn token_params(&self) -> PassParams {
        PassParams::new(self.sequence.len, 1, MAX_CHUNKS)
    }

    /// Grows the KV cache to at least `positions`.
    fn reserve(&mut self, positions: usize) -> Result<(), GpuError> {
        if positions > self.sequence.cache.capacity() {
            // The plans bind the buffers that are replaced.
            self.sequence.plans = None;
            self.sequence
                .cache
                .reserve(&mut self.exec, &self.shape, positions, &*self.angles)?;
        }
        Ok(())
    }

    fn build_plans(&mut self) -> Result<ModelPlans<E::BoundKernel>, GpuError> {
        Ok(ModelPlans {
            decode: self.build_pass(1)?,
            small_batch: self.build_pass(MAT_VEC_MAX_TOKENS)?,
            prefill: self.build_pass(max_pass_tokens(&self.exec.limits()))?,
        })
    }

    /// The plans of a pass over up to `tokens` tokens.
    fn build_pass(&mut self, tokens: usize) -> Result<PassPlans<E::BoundKernel>, GpuError> {
        let first_layer = self.shape.layers - self.weights.layers.len();
        let mut builder = PlanBuilder {
            exec: &mut self.exec,
            shape: &self.shape,
            first_layer,
            options: self.options,
            buffers: &self.buffers,
            cache: &self.sequence.cache,
            tokens,
            ops: Vec::new(),
        };
        builder.embed(&self.weights.token_embd)?;
        let embed = builder.take();
        let mut layers = Vec::new();
        for (index, layer) in self.weights.layers.iter().enumerate() {
            builder.layer(index, layer)?;
            layers.push(builder.take());
        }
        builder.last_logits(&self.weights)?;
        let last = builder.take();
        builder.output_norm(&self.weights)?;
        let normed = builder.take();
        builder.batch_logits(&self.weights)?;
        let head = builder.take();
        builder.sample(&self.weights)?;
        let sample = builder.take();
        Ok(PassPlans {
            embed,
            layers,
            last,
            normed,
            head,
            sample,
        })
    }
}

impl<E: Executor> DeviceSequence<E> {
    fn new(cache: GpuKvCache<E::Buffer>) -> DeviceSequence<E> {
        DeviceSequence {
            cache,
            len: 0,
            plans: None,
            sampled: VecDeque::new(),
        }
    }

    /// Positions in the KV cache.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the KV cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all but the first `len` positions.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.sampled.clear();
    }

    /// Submitted passes whose sampled token has not been waited for.
    pub fn in_flight(&self) -> usize {
        self.sampled.len()
    }

    /// Memory of the KV cache, in bytes.
    pub fn kv_bytes(&self) -> usize {
        self.cache.bytes()
    }
}

impl<E: Executor> Drop for DeviceModel<E> {
    /// Waits for all submits in flight: drivers crash when a process ends before they are done.
    fn drop(&mut self) {
        if let Err(error) = self.exec.wait_idle() {
            tracing::debug!(%error, "the device failed before its model was dropped");
        }
    }
}

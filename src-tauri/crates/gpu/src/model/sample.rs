//! Sampling on the device: a pass starts before the preceding token has reached the host.

use super::DeviceModel;
use crate::error::GpuError;
use crate::exec::executor::Executor;

/// The parameters of the device's sampler. Temperature 0 is greedy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceSampling {
    /// Divides the logits.
    pub temperature: f32,
    /// Smallest total probability of the tokens that are kept; 1 keeps all.
    pub top_p: f32,
    /// Smallest probability that is kept, relative to the largest.
    pub min_p: f32,
    /// Number of tokens that are kept; 0 keeps all.
    pub top_k: u32,
}

/// The status that `sample.wgsl` writes behind the token.
const SAMPLED: u32 = 0;
const NEEDS_HOST: u32 = 1;

impl<E: Executor> DeviceModel<E> {
    /// Sets the parameters of [`DeviceModel::submit`]. Tokens in `suppressed` are never sampled.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn set_sampling(
        &mut self,
        sampling: DeviceSampling,
        suppressed: &[u32],
    ) -> Result<(), GpuError> {
        let DeviceSampling {
            temperature,
            top_p,
            min_p,
            top_k,
        } = sampling;
        let inverse_temperature = if temperature > 0.0 {
            1.0 / temperature
        } else {
            0.0
        };
        let words = [
            inverse_temperature.to_bits(),
            top_p.to_bits(),
            min_p.to_bits(),
            top_k,
        ];
        let buffer = &self.buffers.sampling;
        self.exec.write(buffer, 0, bytemuck::cast_slice(&words))?;
        let mut mask = vec![0u32; self.shape.vocab.div_ceil(32)];
        for &id in suppressed {
            if let Some(word) = mask.get_mut(id as usize / 32) {
                *word |= 1 << (id % 32);
            }
        }
        let buffer = &self.buffers.suppressed;
        self.exec.write(buffer, 0, bytemuck::cast_slice(&mask))
    }

    /// Submits a pass over `id`, or else over the token that the previous pass samples, and samples the next token with
    /// the uniform draw `u` in 0..1. Does not wait.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn submit(&mut self, id: Option<u32>, u: f32) -> Result<(), GpuError> {
        self.reserve(self.sequence.len + 1)?;
        let plans = self
            .sequence
            .plans
            .take()
            .map_or_else(|| self.build_plans(), Ok)?;
        let decode = &plans.decode;
        let mut params = self.token_params();
        params.u = u;
        let mut dispatches = Vec::with_capacity(5 * decode.layers.len() + 4);
        if let Some(id) = id {
            self.exec
                .write(&self.buffers.tokens, 0, bytemuck::bytes_of(&id))?;
        }
        for plan in decode.token(id.is_some() || !self.sampler_embeds()) {
            params.record(plan, &mut dispatches);
        }
        let readback = Some((&self.buffers.tokens, 8));
        let submission = self.exec.submit(&dispatches, readback)?;
        self.sequence.sampled.push_back(submission);
        self.sequence.len += 1;
        self.sequence.plans = Some(plans);
        Ok(())
    }

    /// Returns true if the kernel that samples a token embeds it, too.
    pub(super) fn sampler_embeds(&self) -> bool {
        self.weights.token_embd.parts.len() == 1
    }

    /// Waits for the first pass in flight and returns the token that it sampled; `None` if the filters keep more tokens
    /// than the device can sort, and the host has to sample.
    ///
    /// # Errors
    /// Fails if the device fails, or the logits have NaN.
    pub fn wait(&mut self) -> Result<Option<u32>, GpuError> {
        let none = || GpuError::Wrong("no pass is in flight".to_owned());
        let submission = self.sequence.sampled.pop_front().ok_or_else(none)?;
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(&self.exec.wait(submission)?);
        match words[..] {
            [id, SAMPLED] if (id as usize) < self.shape.vocab => Ok(Some(id)),
            [_, NEEDS_HOST] => Ok(None),
            _ => Err(GpuError::Wrong(format!("{words:?} instead of a token"))),
        }
    }
}

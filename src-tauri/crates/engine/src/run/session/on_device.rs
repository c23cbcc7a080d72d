//! Sampling on the device, and the cost of its passes.

use std::sync::atomic::AtomicBool;

use super::Session;
use super::passes::model_and_cache;
use crate::model::error::DeviceError;
use crate::model::evaluate::{Pass, Profile, Want};
use crate::run::sampler::Sampler;
use crate::run::sequence::{Sequence, SequenceSlot};

impl Session {
    /// Configures the device's sampler as `sampler`; false if the host has to sample.
    ///
    /// # Errors
    /// Returns the device's error if there is no failover.
    pub fn samples_on_device(
        &mut self,
        sequence: &mut Sequence,
        sampler: &Sampler,
    ) -> Result<bool, DeviceError> {
        let device = self.model.as_mut().and_then(|model| model.sampler());
        let configured = device.map_or(Ok(false), |device| {
            device.configure(sampler.sampling(), sampler.suppressed())
        });
        configured.or_else(|error| self.fail_over(error, [sequence]).map(|()| false))
    }

    /// Evaluates one more token and returns the one that the device samples after it. With `more`, the pass over that
    /// one is submitted before it is waited for. If the device cannot sample, or fails, the host samples. `None` if
    /// cancelled meanwhile.
    ///
    /// # Errors
    /// Returns the device's error if there is no failover.
    pub fn step_on_device(
        &mut self,
        sequence: &mut Sequence,
        id: u32,
        sampler: &mut Sampler,
        more: bool,
        cancel: &AtomicBool,
    ) -> Result<Option<u32>, DeviceError> {
        let before = sequence.tokens.len();
        match self.sampled_by_device(sequence, id, sampler, more) {
            Ok(Some(next)) => {
                sampler.uniform();
                return Ok(Some(next));
            }
            // More candidate tokens than the device's sampler holds.
            Ok(None) => {}
            Err(DeviceError::OutOfMemory(_)) if self.free_parked(&[]) => {}
            Err(error) => self.fail_over(error, [&mut *sequence])?,
        }
        // Drops the passes in flight.
        sequence.truncate(before);
        let slot = SequenceSlot {
            sequence: &mut *sequence,
            ids: &[id],
            want: Want::Last,
        };
        if self.forward(&mut [slot], false, cancel)? == Pass::Cancelled {
            return Ok(None);
        }
        let u = sampler.uniform();
        Ok(Some(sampler.sample_with(
            &mut self.logits,
            &sequence.tokens,
            u,
        )))
    }

    fn sampled_by_device(
        &mut self,
        sequence: &mut Sequence,
        id: u32,
        sampler: &mut Sampler,
        more: bool,
    ) -> Result<Option<u32>, DeviceError> {
        let (model, cache) = model_and_cache(&mut self.model, self.reloads, sequence)?;
        let Some(device) = model.sampler() else {
            return Ok(None);
        };
        for ahead in 0..=usize::from(more) {
            if device.in_flight(cache)? == ahead {
                let u = sampler.uniform_ahead(ahead);
                device.submit(cache, (ahead == 0).then_some(id), u)?;
            }
        }
        let next = device.wait(cache);
        sequence.push(&[id]);
        next
    }

    /// Cost of a token after those of a sequence, on a GPU.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn profile(&mut self, sequence: &mut Sequence) -> Result<Option<Profile>, DeviceError> {
        let (model, cache) = model_and_cache(&mut self.model, self.reloads, sequence)?;
        model.profile(cache)
    }
}

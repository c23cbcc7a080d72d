//! Passes of a session, with a failover to the CPU when a GPU fails.

use std::sync::atomic::AtomicBool;

use super::Session;
use crate::model::error::DeviceError;
use crate::model::evaluate::{Cache, Evaluate, Pass, PassSlot, Want};
use crate::run::sequence::{Sequence, SequenceSlot};

impl Session {
    /// Most tokens of a pass.
    pub(crate) fn chunk(&self) -> usize {
        self.model.as_ref().map_or(1, |model| model.chunk())
    }

    /// Appends `ids` to a sequence.
    pub(super) fn append(
        &mut self,
        sequence: &mut Sequence,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let slot = SequenceSlot {
            sequence,
            ids,
            want,
        };
        self.forward(&mut [slot], false, cancel)
    }

    /// Appends the tokens of all slots to their sequences. The logits of the wanted positions are rows of
    /// [`Session::logits`], slot after slot. A single slot fails over to the CPU when the device fails, unless there are
    /// `others` in memory.
    pub(super) fn forward(
        &mut self,
        slots: &mut [SequenceSlot<'_>],
        others: bool,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let mut pass = self.evaluate(slots, cancel);
        if matches!(pass, Err(DeviceError::OutOfMemory(_))) && self.free_parked(&[]) {
            pass = self.evaluate(slots, cancel);
        }
        let pass = match pass {
            Err(error) if slots.len() > 1 => {
                slots.iter_mut().for_each(SequenceSlot::undo);
                Err(error)
            }
            Err(error) if others => Err(error),
            Err(error) => {
                self.fail_over(error, slots.iter_mut().map(|slot| &mut *slot.sequence))?;
                self.evaluate(slots, cancel)
            }
            pass => pass,
        }?;
        match pass {
            Pass::Complete => {
                self.rows = slots.iter().map(SequenceSlot::rows).sum::<usize>().max(1);
                for slot in slots {
                    slot.sequence.push(slot.ids);
                }
            }
            // Sequences that run one after the other may be ahead of the cancelled one.
            Pass::Cancelled => slots.iter_mut().for_each(SequenceSlot::undo),
        }
        Ok(pass)
    }

    fn evaluate(
        &mut self,
        slots: &mut [SequenceSlot<'_>],
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        for slot in &mut *slots {
            if self.replay(slot.sequence, cancel)? == Pass::Cancelled {
                return Ok(Pass::Cancelled);
            }
        }
        let chunk = self.chunk();
        let mut passes = Vec::with_capacity(slots.len());
        let Some(model) = &mut self.model else {
            return Err(no_model());
        };
        for slot in slots {
            let cache = slot.sequence.cache_for(&mut **model, self.reloads)?;
            let (ids, want) = (slot.ids, slot.want);
            passes.push(PassSlot { cache, ids, want });
        }
        match &mut passes[..] {
            [PassSlot { cache, ids, want }] if ids.len() > chunk => in_chunks(
                &mut **model,
                &mut **cache,
                ids,
                *want,
                cancel,
                &mut self.logits,
            ),
            passes => model.forward(passes, cancel, &mut self.logits),
        }
    }

    /// Frees the parked sequences, except for the one that has a beginning in common with `ids`. Returns false if there
    /// are none.
    pub(crate) fn free_parked(&mut self, ids: &[u32]) -> bool {
        self.parked.clear_but(ids)
    }

    /// Fails over to the CPU, and frees the caches of these sequences. The next pass over a sequence replays its tokens.
    pub(crate) fn fail_over<'a>(
        &mut self,
        error: DeviceError,
        sequences: impl IntoIterator<Item = &'a mut Sequence>,
    ) -> Result<(), DeviceError> {
        let Some(reload) = &mut self.reload else {
            return Err(error);
        };
        if matches!(error, DeviceError::Input(_)) {
            return Err(error);
        }
        tracing::warn!(%error, "the GPU failed; the CPU takes over");
        // Freed first: a part of the model may be in host memory, as may the memory of an integrated GPU.
        self.model = None;
        self.parked.clear_but(&[]);
        for sequence in sequences {
            sequence.cache = None;
        }
        let model =
            reload().map_err(|reason| DeviceError::Failed(format!("{error}; then {reason}")))?;
        self.model = Some(model);
        self.reload = None;
        self.reloads += 1;
        self.failure = Some(error.to_string());
        Ok(())
    }

    /// Replays the tokens that a cache does not hold after a failover.
    fn replay(
        &mut self,
        sequence: &mut Sequence,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let (_, cache) = model_and_cache(&mut self.model, self.reloads, sequence)?;
        let mut first = cache.positions();
        while first < sequence.tokens.len() {
            let end = sequence.tokens.len().min(first + self.chunk());
            let ids = sequence.tokens[first..end].to_vec();
            let (model, cache) = model_and_cache(&mut self.model, self.reloads, sequence)?;
            let slot = PassSlot {
                cache,
                ids: &ids,
                want: Want::Nothing,
            };
            let pass = model.forward(&mut [slot], cancel, &mut Vec::new())?;
            if pass == Pass::Cancelled {
                return Ok(pass);
            }
            first = end;
        }
        Ok(Pass::Complete)
    }
}

fn no_model() -> DeviceError {
    DeviceError::Failed("no model is loaded".to_owned())
}

/// The model, and the cache of a sequence.
pub(super) fn model_and_cache<'a>(
    model: &'a mut Option<Box<dyn Evaluate>>,
    reloads: u32,
    sequence: &'a mut Sequence,
) -> Result<(&'a mut dyn Evaluate, &'a mut dyn Cache), DeviceError> {
    let model = &mut **model.as_mut().ok_or_else(no_model)?;
    let cache = sequence.cache_for(model, reloads)?;
    Ok((model, cache))
}

/// A pass in smaller chunks than the caller's, after a failover.
fn in_chunks(
    model: &mut dyn Evaluate,
    cache: &mut dyn Cache,
    ids: &[u32],
    want: Want,
    cancel: &AtomicBool,
    logits: &mut Vec<f32>,
) -> Result<Pass, DeviceError> {
    logits.clear();
    let before = cache.positions();
    let mut part = Vec::new();
    let chunks = ids.chunks(model.chunk());
    let last = chunks.len() - 1;
    for (index, ids) in chunks.enumerate() {
        let want = match want {
            Want::Last if index < last => Want::Nothing,
            want => want,
        };
        let slot = PassSlot {
            cache: &mut *cache,
            ids,
            want,
        };
        if model.forward(&mut [slot], cancel, &mut part)? == Pass::Cancelled {
            cache.truncate(before);
            return Ok(Pass::Cancelled);
        }
        if want != Want::Nothing {
            logits.append(&mut part);
        }
    }
    Ok(Pass::Complete)
}

//! A model and the parked sequences: passes, and reuse of the prefix that a prompt has in common with a sequence.

mod on_device;
mod passes;
mod reuse;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kernels::reserve;

use crate::model::error::DeviceError;
use crate::model::evaluate::{Evaluate, Pass, Want};
use crate::run::costs::{PassCosts, SharedCosts};
use crate::run::sequence::{ParkedSequences, Sequence, SequenceSlot};
use crate::run::speculative::Speculator;

pub use reuse::restorable;

/// Monotonic time in seconds.
type PassClock = Box<dyn Fn() -> f64 + Send>;

/// Loads the model on the CPU for a failover. The error is a message.
pub type Reload = Box<dyn FnMut() -> Result<Box<dyn Evaluate>, String> + Send>;

/// Memory budget in bytes of the parked sequences, given the bytes of the sequence in use and of the parked ones.
pub type SpareMemory = Box<dyn Fn(u64, u64) -> u64 + Send>;

/// A model with the sequences in memory that no request uses.
pub struct Session {
    /// `None` if the device failed, and the failover, too.
    model: Option<Box<dyn Evaluate>>,
    /// The failover, if there is one.
    reload: Option<Reload>,
    /// Number of failovers.
    reloads: u32,
    /// Error of the device, after a failover.
    failure: Option<String>,
    parked: ParkedSequences,
    spare_memory: SpareMemory,
    /// `[rows, vocab]`
    logits: Vec<f32>,
    rows: usize,
    clock: PassClock,
    costs: PassCosts,
    pub(crate) shared_costs: SharedCosts,
}

impl Session {
    /// A session without sequences.
    pub fn new(model: Box<dyn Evaluate>) -> Session {
        let start = Instant::now();
        Session {
            model: Some(model),
            reload: None,
            reloads: 0,
            failure: None,
            parked: ParkedSequences::default(),
            spare_memory: Box::new(|_, _| 0),
            logits: Vec::new(),
            rows: 1,
            clock: Box::new(move || start.elapsed().as_secs_f64()),
            costs: PassCosts::default(),
            shared_costs: SharedCosts::default(),
        }
    }

    /// A session that fails over to the model of `reload`, also in the middle of an answer.
    pub fn with_failover(model: Box<dyn Evaluate>, reload: Reload) -> Session {
        Session {
            reload: Some(reload),
            ..Session::new(model)
        }
    }

    /// Allows parked sequences within this memory budget.
    pub fn set_spare_memory(&mut self, spare: SpareMemory) {
        self.spare_memory = spare;
    }

    /// Removes the parked sequences of conversations that `keeps` refuses.
    pub fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        self.parked.retain(keeps);
    }

    /// Moves the parked sequences of the conversation `from` to the conversation `to`.
    pub fn relabel(&mut self, from: u64, to: u64) {
        for sequence in self.parked.iter_mut() {
            sequence.relabel(from, to);
        }
    }

    /// The tokens of the parked sequences, the most recently used first.
    pub fn sequences(&self) -> impl Iterator<Item = &[u32]> {
        self.parked.tokens()
    }

    /// Logits `[vocab]` after the last token of [`Session::prefill`] (row 0), or after each token of
    /// [`Session::step`].
    pub fn logits(&mut self, row: usize) -> &mut [f32] {
        let vocab = self.logits.len() / self.rows;
        &mut self.logits[row * vocab..(row + 1) * vocab]
    }

    /// Prefills: makes the sequence hold exactly `prompt` and computes the logits after it, evaluating only new tokens.
    /// `progress` is called with the number of tokens in the cache, first with the length of the common prefix.
    ///
    /// If it is cancelled or fails, the tokens evaluated so far stay in the cache.
    pub fn prefill(
        &mut self,
        sequence: &mut Sequence,
        prompt: &[u32],
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Pass, DeviceError> {
        // The last token is always evaluated, for its logits.
        sequence.truncate(sequence.common(&prompt[..prompt.len().saturating_sub(1)]));
        progress(sequence.tokens.len());
        while sequence.tokens.len() < prompt.len() {
            let rest = &prompt[sequence.tokens.len()..];
            let chunk = &rest[..rest.len().min(self.chunk())];
            let want = if chunk.len() == rest.len() {
                Want::Last
            } else {
                Want::Nothing
            };
            if self.append(sequence, chunk, want, cancel)? == Pass::Cancelled {
                return Ok(Pass::Cancelled);
            }
            progress(sequence.tokens.len());
        }
        Ok(Pass::Complete)
    }

    /// Evaluates one more token and, in the same pass, the draft of those after it.
    pub fn step(
        &mut self,
        sequence: &mut Sequence,
        id: u32,
        draft: &[u32],
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let slot = SequenceSlot {
            sequence,
            ids: &[&[id], draft].concat(),
            want: Want::All,
        };
        self.decode(&mut [slot], false, cancel)
    }

    /// Advances to the last of `tokens`, of which the sequence holds all the others, with a draft of at most `max_draft`
    /// tokens. A token of the last draft costs no pass.
    pub fn step_drafted(
        &mut self,
        sequence: &mut Sequence,
        speculator: &mut Speculator,
        tokens: &[u32],
        max_draft: usize,
    ) -> Result<(), DeviceError> {
        let Some((&id, before)) = tokens.split_last() else {
            return Ok(());
        };
        if !speculator.accepts(id) {
            sequence.truncate(before.len());
            let most = max_draft.min(self.batch_limit() - 1);
            let draft = speculator.draft(tokens, most, &self.costs);
            let _complete = self.step(sequence, id, draft, &AtomicBool::new(false))?;
        }
        Ok(())
    }

    /// Runs a pass for several requests, and measures it. With `others` in memory, it does not fail over.
    pub(crate) fn decode(
        &mut self,
        slots: &mut [SequenceSlot<'_>],
        others: bool,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let tokens = slots.iter().map(|slot| slot.ids.len()).sum();
        let is_step = matches!(slots, [slot] if slot.want == Want::All);
        let started = (self.clock)();
        let pass = self.forward(slots, others, cancel)?;
        if pass == Pass::Complete {
            let seconds = (self.clock)() - started;
            if is_step {
                self.costs.record(tokens, seconds);
            }
            self.shared_costs.record(tokens, seconds);
        }
        Ok(pass)
    }

    /// Replaces the clock that measures passes.
    #[cfg(test)]
    pub(crate) fn set_clock(&mut self, clock: impl Fn() -> f64 + Send + 'static) {
        self.clock = Box::new(clock);
    }

    /// Measured costs of the passes of [`Session::step`].
    pub(crate) fn costs(&self) -> &PassCosts {
        &self.costs
    }

    /// Most tokens of a [`Session::step`] whose results are bit-identical to those of single-token steps.
    pub fn batch_limit(&self) -> usize {
        self.model.as_ref().map_or(1, |model| model.batch_limit())
    }

    /// Error of the device, after a failover to the CPU.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Logits of every position of `tokens`.
    pub fn all_logits(&mut self, tokens: &[u32]) -> Result<Vec<Vec<f32>>, DeviceError> {
        let mut sequence = Sequence::default();
        let mut all = Vec::with_capacity(tokens.len());
        for chunk in tokens.chunks(self.chunk()) {
            let _complete =
                self.append(&mut sequence, chunk, Want::All, &AtomicBool::new(false))?;
            for row in 0..self.rows {
                let logits = self.logits(row);
                let mut copy = Vec::new();
                reserve(&mut copy, logits.len())?;
                copy.extend_from_slice(logits);
                all.push(copy);
            }
        }
        Ok(all)
    }

    /// Logits of every position of `tokens`: the first `prefill` tokens are read in passes of many, the others one by
    /// one.
    pub fn each_logits(
        &mut self,
        tokens: &[u32],
        prefill: usize,
        cancel: &AtomicBool,
        each: &mut dyn FnMut(&[f32]),
    ) -> Result<Pass, DeviceError> {
        /// The logits of a pass are held at once.
        const MOST_ROWS: usize = 64;
        let mut sequence = Sequence::default();
        let (prompt, answer) = tokens.split_at(prefill.min(tokens.len()));
        let together = self.chunk().min(MOST_ROWS);
        for pass in prompt.chunks(together).chain(answer.chunks(1)) {
            if self.append(&mut sequence, pass, Want::All, cancel)? == Pass::Cancelled {
                return Ok(Pass::Cancelled);
            }
            for row in 0..self.rows {
                each(self.logits(row));
            }
        }
        Ok(Pass::Complete)
    }
}

#[cfg(test)]
mod tests;

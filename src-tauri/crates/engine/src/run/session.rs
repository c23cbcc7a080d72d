//! A model and the sequences in memory: passes over them, and reuse of the prefix that a prompt has in common with one.

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

/// Memory budget in bytes of the parked sequences, given the bytes of the current cache and of the parked ones.
pub type SpareMemory = Box<dyn Fn(u64, u64) -> u64 + Send>;

/// A model with the sequences in memory, one of which is the current one.
pub struct Session {
    /// `None` if the device failed, and the failover, too.
    model: Option<Box<dyn Evaluate>>,
    /// The failover, if there is one.
    reload: Option<Reload>,
    /// Number of failovers.
    reloads: u32,
    /// Error of the device, after a failover.
    failure: Option<String>,
    sequence: Sequence,
    /// Sequences in memory beside the current one.
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
    /// A session with an empty cache.
    pub fn new(model: Box<dyn Evaluate>) -> Session {
        let start = Instant::now();
        Session {
            model: Some(model),
            reload: None,
            reloads: 0,
            failure: None,
            sequence: Sequence::default(),
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

    /// Removes the sequences in memory of conversations that `keeps` refuses.
    pub fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        if !keeps(self.sequence.label) {
            self.truncate(0);
            self.sequence.release();
        }
        self.parked.retain(keeps);
    }

    /// Moves the sequences in memory of the conversation `from` to the conversation `to`.
    pub fn relabel(&mut self, from: u64, to: u64) {
        for sequence in std::iter::once(&mut self.sequence).chain(self.parked.iter_mut()) {
            sequence.relabel(from, to);
        }
    }

    /// Tokens in the cache.
    pub fn tokens(&self) -> &[u32] {
        &self.sequence.tokens
    }

    /// The tokens of the sequences in memory, the current one first.
    pub fn sequences(&self) -> impl Iterator<Item = &[u32]> {
        std::iter::once(self.tokens()).chain(self.parked.tokens())
    }

    /// Logits `[vocab]` after the last token of [`Session::read`] (row 0), or after each token of
    /// [`Session::step`].
    pub fn logits(&mut self, row: usize) -> &mut [f32] {
        let vocab = self.logits.len() / self.rows;
        &mut self.logits[row * vocab..(row + 1) * vocab]
    }

    /// Memory of the cache, in bytes.
    pub fn kv_bytes(&self) -> usize {
        self.sequence.bytes()
    }

    /// Prefills: makes the cache hold exactly `prompt` and computes the logits after it, evaluating only new tokens.
    /// `progress` is called with the number of tokens in the cache, first with the length of the common prefix.
    ///
    /// If it is cancelled or fails, the tokens evaluated so far stay in the cache.
    pub fn prefill(
        &mut self,
        prompt: &[u32],
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Pass, DeviceError> {
        self.select(prompt);
        // The last token is always evaluated, for its logits.
        self.truncate_to_common(&prompt[..prompt.len().saturating_sub(1)]);
        progress(self.sequence.tokens.len());
        while self.sequence.tokens.len() < prompt.len() {
            let rest = &prompt[self.sequence.tokens.len()..];
            let chunk = &rest[..rest.len().min(self.chunk())];
            let want = if chunk.len() == rest.len() {
                Want::Last
            } else {
                Want::Nothing
            };
            if self.append(chunk, want, cancel)? == Pass::Cancelled {
                return Ok(Pass::Cancelled);
            }
            progress(self.sequence.tokens.len());
        }
        Ok(Pass::Complete)
    }

    /// Evaluates one more token and, in the same pass, the draft of those after it.
    pub fn step(
        &mut self,
        id: u32,
        draft: &[u32],
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let ids = [&[id], draft].concat();
        self.with_current(|session, sequence| {
            let slot = SequenceSlot {
                sequence,
                ids: &ids,
                want: Want::All,
            };
            session.decode(&mut [slot], false, cancel)
        })
    }

    /// Advances to the last of `tokens`, of which the cache holds all the others, with a draft of at most `max_draft`
    /// tokens. A token of the last draft costs no pass.
    pub fn step_drafted(
        &mut self,
        speculator: &mut Speculator,
        tokens: &[u32],
        max_draft: usize,
    ) -> Result<(), DeviceError> {
        let Some((&id, before)) = tokens.split_last() else {
            return Ok(());
        };
        if !speculator.accepts(id) {
            self.truncate(before.len());
            let most = max_draft.min(self.batch_limit() - 1);
            let draft = speculator.draft(tokens, most, &self.costs);
            let _complete = self.step(id, draft, &AtomicBool::new(false))?;
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

    /// Logits of every position of `tokens`, from an empty cache.
    pub fn all_logits(&mut self, tokens: &[u32]) -> Result<Vec<Vec<f32>>, DeviceError> {
        self.truncate(0);
        let mut all = Vec::with_capacity(tokens.len());
        for chunk in tokens.chunks(self.chunk()) {
            let _complete = self.append(chunk, Want::All, &AtomicBool::new(false))?;
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

    /// Logits of every position of `tokens`, from an empty cache: the first `prefill` tokens are read in passes of
    /// many, the others one by one.
    pub fn each_logits(
        &mut self,
        tokens: &[u32],
        prefill: usize,
        cancel: &AtomicBool,
        each: &mut dyn FnMut(&[f32]),
    ) -> Result<Pass, DeviceError> {
        /// The logits of a pass are held at once.
        const MOST_ROWS: usize = 64;
        self.truncate(0);
        let (prompt, answer) = tokens.split_at(prefill.min(tokens.len()));
        let together = self.chunk().min(MOST_ROWS);
        for pass in prompt.chunks(together).chain(answer.chunks(1)) {
            if self.append(pass, Want::All, cancel)? == Pass::Cancelled {
                return Ok(Pass::Cancelled);
            }
            for row in 0..self.rows {
                each(self.logits(row));
            }
        }
        Ok(Pass::Complete)
    }

    /// Removes all but the first `len` tokens.
    pub fn truncate(&mut self, len: usize) {
        self.sequence.truncate(len);
    }

    /// Removes the tokens behind the common prefix with `tokens`.
    pub(crate) fn truncate_to_common(&mut self, tokens: &[u32]) {
        self.truncate(self.sequence.common(tokens));
    }
}

#[cfg(test)]
mod tests;

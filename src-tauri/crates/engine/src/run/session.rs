//! The tokens in the KV cache, reuse of their common prefix with the next prompt, and failover to the CPU when a GPU
//! fails.

mod reuse;

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kernels::reserve;

use crate::model::error::DeviceError;
use crate::model::evaluate::{Evaluate, Pass, Profile, Want};
use crate::run::costs::PassCosts;
use crate::run::sampler::Sampler;
use crate::run::sequence::{ParkedSequences, Sequence};

pub use reuse::restorable;

/// Monotonic time in seconds.
type PassClock = Box<dyn Fn() -> f64 + Send>;

/// Loads the model on the CPU for a failover. The error is a message.
pub type Reload = Box<dyn FnMut() -> Result<Box<dyn Evaluate>, String> + Send>;

/// Memory budget in bytes of the parked sequences, given the bytes of the current cache and of the parked ones.
pub type SpareMemory = Box<dyn Fn(u64, u64) -> u64 + Send>;

/// A model with the tokens of its cache.
pub struct Session {
    /// `None` if the device failed, and the failover, too.
    model: Option<Box<dyn Evaluate>>,
    /// The failover, if there is one.
    reload: Option<Reload>,
    /// Error of the device, after a failover.
    failure: Option<String>,
    sequence: Sequence,
    /// Number of the sequence's tokens in the model's cache: all of them, except right after a failover.
    cached: usize,
    /// Sequences in memory beside the current one.
    parked: ParkedSequences,
    spare_memory: SpareMemory,
    /// `[rows, vocab]`
    logits: Vec<f32>,
    rows: usize,
    /// Uniform draws for tokens in flight.
    draws: VecDeque<f64>,
    clock: PassClock,
    costs: PassCosts,
}

impl Session {
    /// A session with an empty cache.
    pub fn new(model: Box<dyn Evaluate>) -> Session {
        let start = Instant::now();
        Session {
            model: Some(model),
            reload: None,
            failure: None,
            sequence: Sequence::default(),
            cached: 0,
            parked: ParkedSequences::default(),
            spare_memory: Box::new(|_, _| 0),
            logits: Vec::new(),
            rows: 1,
            draws: VecDeque::new(),
            clock: Box::new(move || start.elapsed().as_secs_f64()),
            costs: PassCosts::default(),
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
            self.release();
        }
        self.parked.retain(keeps);
    }

    /// Moves the sequences in memory of the conversation `from` to the conversation `to`.
    pub fn relabel(&mut self, from: u64, to: u64) {
        let parked = self.parked.iter_mut().map(|parked| &mut parked.sequence);
        let sequences = std::iter::once(&mut self.sequence).chain(parked);
        for sequence in sequences.filter(|sequence| sequence.label == from) {
            // The stored blocks belong to `from`.
            (sequence.label, sequence.stored) = (to, 0);
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
        self.model.as_ref().map_or(0, |model| model.kv_bytes())
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
        let started = (self.clock)();
        let pass = self.append(&ids, Want::All, cancel)?;
        if pass == Pass::Complete {
            self.costs.record(ids.len(), (self.clock)() - started);
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

    /// Configures the device's sampler as `sampler`; false if the host has to sample.
    ///
    /// # Errors
    /// Returns the device's error if there is no failover.
    pub fn samples_on_device(&mut self, sampler: &Sampler) -> Result<bool, DeviceError> {
        self.draws.clear();
        let device = self.model.as_mut().and_then(|model| model.sampler());
        let configured = device.map_or(Ok(false), |device| {
            device.configure(sampler.sampling(), sampler.suppressed())
        });
        configured.or_else(|error| self.fail_over(error).map(|()| false))
    }

    /// Evaluates one more token and returns the one that the device samples after it. With `more`, the pass over that
    /// one is submitted before it is waited for. If the device cannot sample, or fails, the host samples.
    ///
    /// # Errors
    /// Returns the device's error if there is no failover.
    pub fn step_on_device(
        &mut self,
        id: u32,
        sampler: &mut Sampler,
        more: bool,
    ) -> Result<u32, DeviceError> {
        let before = self.sequence.tokens.len();
        match self.sampled_by_device(id, sampler, more) {
            Ok(Some(next)) => {
                self.draws.pop_front();
                return Ok(next);
            }
            // More candidate tokens than the device's sampler holds.
            Ok(None) => {}
            Err(error) => self.fail_over(error)?,
        }
        // Drops the passes in flight.
        self.truncate(before);
        let _complete = self.append(&[id], Want::Last, &AtomicBool::new(false))?;
        let u = self.draws.pop_front().unwrap_or_else(|| sampler.uniform());
        Ok(sampler.sample_with(&mut self.logits, &self.sequence.tokens, u))
    }

    fn sampled_by_device(
        &mut self,
        id: u32,
        sampler: &mut Sampler,
        more: bool,
    ) -> Result<Option<u32>, DeviceError> {
        let Some(device) = self.model.as_mut().and_then(|model| model.sampler()) else {
            return Ok(None);
        };
        for ahead in 0..=usize::from(more) {
            if device.in_flight() == ahead {
                if self.draws.len() == ahead {
                    self.draws.push_back(sampler.uniform());
                }
                device.submit((ahead == 0).then_some(id), self.draws[ahead])?;
            }
        }
        self.sequence.push(&[id]);
        self.cached = self.sequence.tokens.len();
        device.wait()
    }

    /// Cost of a token on a GPU.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn profile(&mut self) -> Result<Option<Profile>, DeviceError> {
        self.model()?.profile()
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
        self.cached = self.cached.min(len);
        if let Some(model) = &mut self.model {
            model.truncate(self.cached);
        }
    }

    /// Removes the tokens behind the common prefix with `tokens`.
    pub(crate) fn truncate_to_common(&mut self, tokens: &[u32]) {
        self.truncate(self.sequence.common(tokens));
    }

    fn model(&mut self) -> Result<&mut dyn Evaluate, DeviceError> {
        match &mut self.model {
            Some(model) => Ok(&mut **model),
            None => Err(DeviceError::Failed("no model is loaded".to_owned())),
        }
    }

    fn chunk(&self) -> usize {
        self.model.as_ref().map_or(1, |model| model.chunk())
    }

    /// Appends `ids` to the sequence, with a failover to the CPU when the device fails.
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let pass = match self.evaluate(ids, want, cancel) {
            Err(DeviceError::OutOfMemory(_)) if !self.parked.is_empty() => {
                self.parked.clear();
                self.evaluate(ids, want, cancel)
            }
            Err(error) => {
                self.fail_over(error)?;
                self.evaluate(ids, want, cancel)
            }
            pass => pass,
        }?;
        if pass == Pass::Complete {
            self.sequence.push(ids);
            self.cached = self.sequence.tokens.len();
            self.rows = if want == Want::All { ids.len() } else { 1 };
        }
        Ok(pass)
    }

    fn evaluate(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        if self.replay(cancel)? == Pass::Cancelled {
            return Ok(Pass::Cancelled);
        }
        let (before, chunk) = (self.sequence.tokens.len(), self.chunk());
        let mut logits = std::mem::take(&mut self.logits);
        let model = self.model()?;
        let pass = if ids.len() <= chunk {
            model.append(ids, want, cancel, &mut logits)
        } else {
            in_chunks(model, before, ids, want, cancel, &mut logits)
        };
        self.logits = logits;
        pass
    }

    /// Fails over to the CPU. The next pass replays the tokens of the cache.
    fn fail_over(&mut self, error: DeviceError) -> Result<(), DeviceError> {
        let Some(reload) = &mut self.reload else {
            return Err(error);
        };
        if matches!(error, DeviceError::Input(_)) {
            return Err(error);
        }
        tracing::warn!(%error, "the GPU failed; the CPU takes over");
        // Freed first: a part of the model may be in host memory, as may the memory of an integrated GPU.
        self.model = None;
        let model =
            reload().map_err(|reason| DeviceError::Failed(format!("{error}; then {reason}")))?;
        self.model = Some(model);
        self.reload = None;
        self.cached = 0;
        self.failure = Some(error.to_string());
        Ok(())
    }

    /// Replays the tokens that the cache does not hold after a failover.
    fn replay(&mut self, cancel: &AtomicBool) -> Result<Pass, DeviceError> {
        while self.cached < self.sequence.tokens.len() {
            let rest = self.cached..self.sequence.tokens.len().min(self.cached + self.chunk());
            let tokens = self.sequence.tokens[rest].to_vec();
            let pass = self
                .model()?
                .append(&tokens, Want::Nothing, cancel, &mut Vec::new())?;
            if pass == Pass::Cancelled {
                return Ok(pass);
            }
            self.cached += tokens.len();
        }
        Ok(Pass::Complete)
    }
}

/// A pass in smaller chunks than the caller's, after a failover. `before` tokens are in the cache.
fn in_chunks(
    model: &mut dyn Evaluate,
    before: usize,
    ids: &[u32],
    want: Want,
    cancel: &AtomicBool,
    logits: &mut Vec<f32>,
) -> Result<Pass, DeviceError> {
    logits.clear();
    let mut part = Vec::new();
    let chunks = ids.chunks(model.chunk());
    let last = chunks.len() - 1;
    for (index, chunk) in chunks.enumerate() {
        let want = match want {
            Want::Last if index < last => Want::Nothing,
            want => want,
        };
        if model.append(chunk, want, cancel, &mut part)? == Pass::Cancelled {
            model.truncate(before);
            return Ok(Pass::Cancelled);
        }
        if want != Want::Nothing {
            logits.append(&mut part);
        }
    }
    Ok(Pass::Complete)
}

#[cfg(test)]
mod tests;

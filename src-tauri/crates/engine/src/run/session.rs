//! One sequence: the tokens that the KV cache holds, how much of the next prompt they already cover, and failover to
//! the CPU when a GPU fails.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kernels::reserve;

use crate::model::error::DeviceError;
use crate::model::evaluate::{Evaluate, Pass, Profile, Want};
use crate::run::costs::PassCosts;
use crate::run::sampler::Sampler;

/// Seconds since some moment.
type PassClock = Box<dyn Fn() -> f64 + Send>;

/// Loads the model once more, on the CPU. The error is a reason in words.
pub type Reload = Box<dyn FnMut() -> Result<Box<dyn Evaluate>, String> + Send>;

/// A model with the tokens of its cache.
pub struct Session {
    /// `None` where a device has failed and the CPU could not take the model either.
    model: Option<Box<dyn Evaluate>>,
    /// What to do when the device fails.
    reload: Option<Reload>,
    /// Why the CPU has taken over.
    failure: Option<String>,
    tokens: Vec<u32>,
    /// How many of `tokens` are in the model's cache: all of them, but for a model that has just taken over.
    cached: usize,
    /// `[rows, vocab]`
    logits: Vec<f32>,
    rows: usize,
    /// Uniform draws for tokens that are in flight.
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
            tokens: Vec::new(),
            cached: 0,
            logits: Vec::new(),
            rows: 1,
            draws: VecDeque::new(),
            clock: Box::new(move || start.elapsed().as_secs_f64()),
            costs: PassCosts::default(),
        }
    }

    /// A session that goes on with the model of `reload`, in the middle of an answer too, when the device fails.
    pub fn with_failover(model: Box<dyn Evaluate>, reload: Reload) -> Session {
        Session {
            reload: Some(reload),
            ..Session::new(model)
        }
    }

    /// Tokens in the cache.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Logits `[vocab]` after the last token that [`Session::read`] has read (row 0), or after each of those that
    /// [`Session::step`] has.
    pub fn logits(&mut self, row: usize) -> &mut [f32] {
        let vocab = self.logits.len() / self.rows;
        &mut self.logits[row * vocab..(row + 1) * vocab]
    }

    /// Memory that the cache holds, in bytes.
    pub fn kv_bytes(&self) -> usize {
        self.model.as_ref().map_or(0, |model| model.kv_bytes())
    }

    /// Makes the cache hold exactly `prompt` and the logits be those after it, reading only what is new.
    /// `progress` hears how many tokens are in the cache, first the number that were there already.
    ///
    /// When cancelled or failed, what has been read stays.
    pub fn read(
        &mut self,
        prompt: &[u32],
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(usize),
    ) -> Result<Pass, DeviceError> {
        let common = self
            .tokens
            .iter()
            .zip(prompt)
            .take_while(|(a, b)| a == b)
            .count();
        // The last token is read again even if it is known: its logits are not.
        self.truncate(common.min(prompt.len().saturating_sub(1)));
        progress(self.tokens.len());
        while self.tokens.len() < prompt.len() {
            let rest = &prompt[self.tokens.len()..];
            let chunk = &rest[..rest.len().min(self.chunk())];
            let want = if chunk.len() == rest.len() {
                Want::Last
            } else {
                Want::Nothing
            };
            if self.append(chunk, want, cancel)? == Pass::Cancelled {
                return Ok(Pass::Cancelled);
            }
            progress(self.tokens.len());
        }
        Ok(Pass::Complete)
    }

    /// Reads one more token and, in the same pass, those that may come after it.
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

    /// Measures passes by another clock from now on.
    #[cfg(test)]
    pub(crate) fn set_clock(&mut self, clock: impl Fn() -> f64 + Send + 'static) {
        self.clock = Box::new(clock);
    }

    /// What the passes of [`Session::step`] have taken.
    pub(crate) fn costs(&self) -> &PassCosts {
        &self.costs
    }

    /// Tokens up to which [`Session::step`] gives bit for bit what it gives for each of them alone.
    pub fn batch_limit(&self) -> usize {
        self.model.as_ref().map_or(1, |model| model.batch_limit())
    }

    /// Whether the device itself can sample tokens as `sampler` does, from now on.
    ///
    /// # Errors
    /// When the device fails and there is no failover.
    pub fn samples_on_device(&mut self, sampler: &Sampler) -> Result<bool, DeviceError> {
        self.draws.clear();
        let device = self.model.as_mut().and_then(|model| model.sampler());
        let configured = device.map_or(Ok(false), |device| {
            device.configure(sampler.sampling(), sampler.suppressed())
        });
        configured.or_else(|error| self.fail_over(error).map(|()| false))
    }

    /// Reads one more token and returns the one that the device samples after it. With `more`, the pass over that one
    /// is submitted before it is waited for. Where the device cannot sample, or has failed, the host does.
    ///
    /// # Errors
    /// When the device fails and there is no failover.
    pub fn step_on_device(
        &mut self,
        id: u32,
        sampler: &mut Sampler,
        more: bool,
    ) -> Result<u32, DeviceError> {
        let before = self.tokens.len();
        match self.sampled_by_device(id, sampler, more) {
            Ok(Some(next)) => {
                self.draws.pop_front();
                return Ok(next);
            }
            // Too many tokens are likely for the device.
            Ok(None) => {}
            Err(error) => self.fail_over(error)?,
        }
        // Drops the passes in flight.
        self.truncate(before);
        let _complete = self.append(&[id], Want::Last, &AtomicBool::new(false))?;
        let u = self.draws.pop_front().unwrap_or_else(|| sampler.uniform());
        Ok(sampler.sample_with(&mut self.logits, &self.tokens, u))
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
        self.tokens.push(id);
        self.cached = self.tokens.len();
        device.wait()
    }

    /// What a token costs on a GPU.
    ///
    /// # Errors
    /// When the device fails.
    pub fn profile(&mut self) -> Result<Option<Profile>, DeviceError> {
        self.model()?.profile()
    }

    /// Why the CPU has taken over from the device on which the model was loaded.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Logits of every position of `tokens`, read from an empty cache.
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

    /// Logits of every position of `tokens`, read from an empty cache: of the first `prefill` in passes of many tokens,
    /// of the others one by one.
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
        self.tokens.truncate(len);
        self.cached = self.cached.min(len);
        if let Some(model) = &mut self.model {
            model.truncate(self.cached);
        }
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

    /// Reads `ids` behind `tokens`, on the CPU from the moment on at which the device fails.
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let pass = match self.evaluate(ids, want, cancel) {
            Err(error) => {
                self.fail_over(error)?;
                self.evaluate(ids, want, cancel)
            }
            pass => pass,
        }?;
        if pass == Pass::Complete {
            self.tokens.extend_from_slice(ids);
            self.cached = self.tokens.len();
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
        let (before, chunk) = (self.tokens.len(), self.chunk());
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

    /// Goes over to the CPU. Its model reads what the cache held in the next pass.
    fn fail_over(&mut self, error: DeviceError) -> Result<(), DeviceError> {
        let Some(reload) = &mut self.reload else {
            return Err(error);
        };
        if matches!(error, DeviceError::Input(_)) {
            return Err(error);
        }
        tracing::warn!(%error, "the GPU failed; the CPU takes over");
        // Host memory may hold a part of the model, and the GPU's may be the host's.
        self.model = None;
        let model =
            reload().map_err(|reason| DeviceError::Failed(format!("{error}; then {reason}")))?;
        self.model = Some(model);
        self.reload = None;
        self.cached = 0;
        self.failure = Some(error.to_string());
        Ok(())
    }

    /// Reads the tokens that the cache of a model that has taken over does not hold yet.
    fn replay(&mut self, cancel: &AtomicBool) -> Result<Pass, DeviceError> {
        while self.cached < self.tokens.len() {
            let rest = self.cached..self.tokens.len().min(self.cached + self.chunk());
            let tokens = self.tokens[rest].to_vec();
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

/// A pass that was meant for a device that takes more tokens at once. `before` tokens are in the cache.
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

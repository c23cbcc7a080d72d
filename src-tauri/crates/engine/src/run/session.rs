//! One sequence: the tokens that the KV cache holds, and how much of the next prompt they already cover.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kernels::reserve;

use crate::model::backend::BackendError;
use crate::model::forward::{Evaluate, Pass, Profile, Want};
use crate::run::lookup::Costs;
use crate::run::sampler::Sampler;

/// Seconds since some moment.
type Clock = Box<dyn Fn() -> f64 + Send>;

/// A model with the tokens of its cache.
pub struct Session {
    model: Box<dyn Evaluate>,
    tokens: Vec<u32>,
    /// `[rows, vocab]`
    logits: Vec<f32>,
    rows: usize,
    /// Noise that was drawn for tokens that are not known yet.
    noises: VecDeque<f64>,
    clock: Clock,
    costs: Costs,
}

impl Session {
    /// A session with an empty cache.
    pub fn new(model: Box<dyn Evaluate>) -> Session {
        let start = Instant::now();
        Session {
            model,
            tokens: Vec::new(),
            logits: Vec::new(),
            rows: 1,
            noises: VecDeque::new(),
            clock: Box::new(move || start.elapsed().as_secs_f64()),
            costs: Costs::default(),
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
        self.model.kv_bytes()
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
    ) -> Result<Pass, BackendError> {
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
            let chunk = &rest[..rest.len().min(self.model.chunk())];
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
    ) -> Result<Pass, BackendError> {
        let ids = [&[id], draft].concat();
        let started = (self.clock)();
        let pass = self.append(&ids, Want::All, cancel)?;
        if pass == Pass::Complete {
            self.costs.note(ids.len(), (self.clock)() - started);
        }
        Ok(pass)
    }

    /// Measures passes by another clock from now on.
    #[cfg(test)]
    pub(crate) fn set_clock(&mut self, clock: impl Fn() -> f64 + Send + 'static) {
        self.clock = Box::new(clock);
    }

    /// What the passes of [`Session::step`] have taken.
    pub(crate) fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Tokens up to which [`Session::step`] gives bit for bit what it gives for each of them alone.
    pub fn few(&self) -> usize {
        self.model.few()
    }

    /// Whether the device itself can choose tokens as `sampler` does, from now on.
    pub fn chooses(&mut self, sampler: &Sampler) -> Result<bool, BackendError> {
        self.noises.clear();
        self.model.chooser().map_or(Ok(false), |chooser| {
            chooser.sample(sampler.sampling(), sampler.suppressed())
        })
    }

    /// Reads one more token and gives the one that the device chooses to follow it. With `more`, the pass over that
    /// one is started before it is waited for.
    pub fn follow(
        &mut self,
        id: u32,
        sampler: &mut Sampler,
        more: bool,
    ) -> Result<u32, BackendError> {
        let Session {
            model,
            tokens,
            noises,
            ..
        } = self;
        if let Some(chooser) = model.chooser() {
            for wanted in 0..=usize::from(more) {
                if chooser.ahead() == wanted {
                    if noises.len() == wanted {
                        noises.push_back(sampler.noise());
                    }
                    chooser.follow((wanted == 0).then_some(id), noises[wanted])?;
                }
            }
            tokens.push(id);
            if let Some(next) = chooser.chosen()? {
                noises.pop_front();
                return Ok(next);
            }
            // What was started after this token was for nothing.
            self.truncate(self.tokens.len() - 1);
        }
        // Too many tokens are likely, or the device has failed: the host looks at them all.
        let _complete = self.append(&[id], Want::Last, &AtomicBool::new(false))?;
        let noise = self.noises.pop_front();
        let noise = noise.unwrap_or_else(|| sampler.noise());
        Ok(sampler.sample_with(&mut self.logits, &self.tokens, noise))
    }

    /// What a token costs on a GPU.
    pub fn profile(&mut self) -> Result<Option<Profile>, BackendError> {
        self.model.profile()
    }

    /// Why the model is no longer on the device that it was loaded on.
    pub fn failed(&self) -> Option<&str> {
        self.model.failed()
    }

    /// Logits of every position of `tokens`, read from an empty cache.
    pub fn all_logits(&mut self, tokens: &[u32]) -> Result<Vec<Vec<f32>>, BackendError> {
        self.truncate(0);
        let mut all = Vec::with_capacity(tokens.len());
        for chunk in tokens.chunks(self.model.chunk()) {
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

    /// Forgets all but the first `len` tokens.
    pub fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.model.truncate(self.tokens.len());
    }

    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
    ) -> Result<Pass, BackendError> {
        let pass = self.model.append(ids, want, cancel, &mut self.logits)?;
        if pass == Pass::Complete {
            self.tokens.extend_from_slice(ids);
            self.rows = if want == Want::All { ids.len() } else { 1 };
        }
        Ok(pass)
    }
}

#[cfg(test)]
mod tests;

//! One sequence: the tokens that the KV cache holds, and how much of the next prompt they already cover.

use std::sync::atomic::AtomicBool;

use crate::backend::BackendError;
use crate::forward::{Evaluate, Pass, Want};

/// A model with the tokens of its cache.
pub struct Session {
    model: Box<dyn Evaluate>,
    tokens: Vec<u32>,
    /// `[rows, vocab]`
    logits: Vec<f32>,
    rows: usize,
}

impl Session {
    /// A session with an empty cache.
    pub fn new(model: Box<dyn Evaluate>) -> Session {
        Session {
            model,
            tokens: Vec::new(),
            logits: Vec::new(),
            rows: 1,
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
        self.append(&ids, Want::All, cancel)
    }

    /// Logits of every position of `tokens`, read from an empty cache.
    pub fn all_logits(&mut self, tokens: &[u32]) -> Result<Vec<Vec<f32>>, BackendError> {
        self.truncate(0);
        let mut all = Vec::with_capacity(tokens.len());
        for chunk in tokens.chunks(self.model.chunk()) {
            let _complete = self.append(chunk, Want::All, &AtomicBool::new(false))?;
            all.extend((0..self.rows).map(|row| self.logits(row).to_vec()));
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

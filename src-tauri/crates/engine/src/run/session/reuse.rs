//! Reuse of KV caches: of other sequences that are parked in memory, and of blocks that outlive the session.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Session;
use super::passes::model_and_cache;
use crate::model::error::DeviceError;
use crate::model::evaluate::{Cache, Pass, Want};
use crate::model::kv_cache::KvCache;
use crate::run::kv_blocks::KvBlocks;
use crate::run::sequence::Sequence;

/// Largest number of tokens that is not worth parking: these are evaluated again.
const NEGLIGIBLE: usize = 64;

/// Number of leading tokens of a prompt of `len` tokens that can be restored from blocks of `block` tokens. The last
/// token is always evaluated for its logits.
pub fn restorable(len: usize, block: usize) -> usize {
    len.saturating_sub(1) / block * block
}

impl Session {
    /// Tokens of a stored block, whole segments; `None` if the cache is not in host memory.
    pub fn block(&mut self) -> Option<usize> {
        let (model, cache) =
            model_and_cache(&mut self.model, self.reloads, &mut self.sequence).ok()?;
        cache.in_host_memory()?;
        Some(model.block().max(KvCache::SEGMENT))
    }

    /// Switches to the sequence with the longest common prefix with `prompt`, and restores more of the prompt from
    /// `blocks`. The previous sequence is parked, if there is room. The current one belongs to the conversation `label`
    /// from now on.
    ///
    /// `progress` is called with the number of restored leading tokens, block by block. When cancelled, the rest is
    /// left out.
    pub fn resume(
        &mut self,
        prompt: &[u32],
        label: u64,
        blocks: &mut dyn KvBlocks,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(usize),
    ) {
        self.select(prompt);
        // Tokens of another conversation behind the common prefix do not belong to this one.
        self.truncate_to_common(prompt);
        self.sequence.belong_to(label);
        if let Some(block) = self.block() {
            let whole = &prompt[..restorable(prompt.len(), block)];
            self.restore(whole, block, blocks, cancel, progress);
        }
    }

    /// Switches to the sequence with the longest common prefix with `prompt`.
    pub(super) fn select(&mut self, prompt: &[u32]) {
        if !self.sequence.is_cached() || self.block().is_none() {
            return;
        }
        let mut common = self.sequence.common(prompt);
        if let Some((at, there)) = self.parked.nearest(prompt)
            && there > common
        {
            common = there;
            let parked = self.parked.take(at);
            let before = std::mem::replace(&mut self.sequence, parked);
            self.park(before);
        }
        if self.sequence.sent > common + NEGLIGIBLE
            && let Some(sequence) = self.sequence.fork()
        {
            self.park(sequence);
        }
    }

    /// [`Session::resume`], which takes the sequence and cuts it before the last token of the prompt.
    pub(crate) fn take(
        &mut self,
        prompt: &[u32],
        label: u64,
        blocks: &mut dyn KvBlocks,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(usize),
    ) -> Sequence {
        self.resume(prompt, label, blocks, cancel, progress);
        // The last token is always evaluated, for its logits.
        self.truncate_to_common(&prompt[..prompt.len().saturating_sub(1)]);
        std::mem::take(&mut self.sequence)
    }

    /// Makes this the current sequence. The previous one is parked, if there is room.
    pub(crate) fn put(&mut self, sequence: Sequence) {
        let mut before = std::mem::replace(&mut self.sequence, sequence);
        if before.kv().is_some() {
            self.park(before);
        }
    }

    fn park(&mut self, mut sequence: Sequence) {
        sequence.truncate(sequence.sent);
        if sequence.tokens.len() > NEGLIGIBLE {
            sequence.release();
            let budget = (self.spare_memory)(self.kv_bytes() as u64, self.parked.bytes());
            self.parked.add(sequence, budget);
        }
    }

    /// Extends the current sequence, a prefix of the prompt, with stored blocks of `whole`, the prompt's whole blocks.
    fn restore(
        &mut self,
        whole: &[u32],
        block: usize,
        blocks: &mut dyn KvBlocks,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(usize),
    ) {
        let common = self.sequence.tokens.len();
        let start = common / block * block;
        let label = self.sequence.label;
        if start + block > whole.len() || !blocks.holds(label, &whole[..start + block]) {
            return;
        }
        self.sequence.release();
        let Some(mut cache) = self.sequence.kv().map(|kv| kv.prefix(start)) else {
            return;
        };
        // After a failover the cache may hold less than the sequence.
        if cache.positions() != start {
            return;
        }
        blocks.load(whole, start, &mut |bytes| {
            if cancel.load(Ordering::Relaxed) {
                return false;
            }
            let added = cache.append_block(bytes, block);
            added
                .inspect(|()| progress(cache.positions()))
                .inspect_err(|error| tracing::warn!(%error, "a block of the KV cache was not used"))
                .is_ok()
        });
        let restored = cache.positions();
        if restored <= common {
            return;
        }
        self.sequence = Sequence {
            tokens: whole[..restored].to_vec(),
            sent: restored,
            stored: self.sequence.stored.min(start),
            label,
            cache: Some(Box::new(cache)),
            reloads: self.reloads,
        };
        tracing::debug!(restored, common, "KV cache restored");
    }

    /// Stores one more block of the sequences in memory. False if none is left, or `blocks` takes nothing now.
    ///
    /// # Errors
    /// Fails if out of memory.
    pub fn store_block(&mut self, blocks: &mut dyn KvBlocks) -> Result<bool, DeviceError> {
        let Some(block) = self.block() else {
            return Ok(false);
        };
        for sequence in std::iter::once(&mut self.sequence).chain(self.parked.iter_mut()) {
            let first = sequence.stored / block * block;
            let end = first + block;
            // After a failover the cache holds less than the sequence.
            if end > sequence.sent.min(sequence.cached()) || !blocks.keeps(sequence.label) {
                continue;
            }
            let tokens = &sequence.tokens[..end];
            if !blocks.holds(sequence.label, tokens) {
                let Some(kv) = sequence.cache.as_mut().and_then(|it| it.in_host_memory()) else {
                    continue;
                };
                if !blocks.store(sequence.label, tokens, &kv.block(first, block)?) {
                    return Ok(false);
                }
            }
            sequence.stored = end;
            return Ok(true);
        }
        Ok(false)
    }

    /// Evaluates at most a block of a prompt before it is sent. Its first `sent` tokens are sent already, the rest is a
    /// draft that may change. False if cancelled, or nothing is left, or the cache is not in host memory.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn read_ahead(
        &mut self,
        prompt: &[u32],
        sent: usize,
        cancel: &AtomicBool,
    ) -> Result<bool, DeviceError> {
        let Some(block) = self.block() else {
            return Ok(false);
        };
        self.select(prompt);
        self.truncate_to_common(prompt);
        let at = self.sequence.tokens.len();
        let end = prompt.len().min(at + block);
        if at == end {
            return Ok(false);
        }
        let before = self.sequence.sent;
        let pass = self.append(&prompt[at..end], Want::Nothing, cancel)?;
        self.sequence.sent = before.max(sent.min(self.sequence.tokens.len()));
        Ok(pass == Pass::Complete)
    }
}

#[cfg(test)]
mod tests;

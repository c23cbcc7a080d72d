//! Reuse of KV caches: of other sequences that are parked in memory, and of blocks that outlive the session.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Session;
use crate::model::error::DeviceError;
use crate::model::evaluate::{Pass, Want};
use crate::model::kv_cache::KvCache;
use crate::run::kv_blocks::KvBlocks;
use crate::run::sequence::{ParkedSequence, Sequence};

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
        let model = self.model.as_mut()?;
        model.kv_cache()?;
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
        blocks: Option<&mut dyn KvBlocks>,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(usize),
    ) {
        self.select(prompt);
        // Tokens of another conversation behind the common prefix do not belong to this one.
        self.truncate_to_common(prompt);
        if self.sequence.label != label {
            (self.sequence.label, self.sequence.stored) = (label, 0);
        }
        if let (Some(blocks), Some(block)) = (blocks, self.block()) {
            let whole = &prompt[..restorable(prompt.len(), block)];
            self.restore(whole, block, blocks, cancel, progress);
        }
    }

    /// Switches to the sequence with the longest common prefix with `prompt`.
    pub(super) fn select(&mut self, prompt: &[u32]) {
        if self.cached != self.sequence.tokens.len() || self.block().is_none() {
            return;
        }
        let mut common = self.sequence.common(prompt);
        if let Some((at, there)) = self.parked.nearest(prompt)
            && there > common
        {
            common = there;
            self.switch_to(at);
        }
        if self.sequence.sent > common + NEGLIGIBLE {
            let sequence = self.sequence.clone();
            if let Some(cache) = self.kv_cache().map(|kv| kv.prefix(usize::MAX)) {
                self.park(sequence, cache);
            }
        }
    }

    /// Switches to a parked sequence.
    fn switch_to(&mut self, at: usize) {
        let ParkedSequence { sequence, cache } = self.parked.take(at);
        let before = std::mem::replace(&mut self.sequence, sequence);
        self.cached = self.sequence.tokens.len();
        let kv = self.kv_cache();
        if let Some(cache) = kv.map(|kv| std::mem::replace(kv, cache)) {
            self.park(before, cache);
        }
    }

    fn park(&mut self, mut sequence: Sequence, cache: KvCache) {
        sequence.truncate(sequence.sent);
        if sequence.tokens.len() > NEGLIGIBLE {
            let cache = cache.prefix(sequence.tokens.len());
            let budget = (self.spare_memory)(self.kv_bytes() as u64, self.parked.bytes());
            self.parked.add(ParkedSequence { sequence, cache }, budget);
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
        self.release();
        let Some(mut cache) = self.kv_cache().map(|kv| kv.prefix(start)) else {
            return;
        };
        // After a failover the cache may hold less than the sequence.
        if cache.len() != start {
            return;
        }
        blocks.load(whole, start, &mut |bytes| {
            if cancel.load(Ordering::Relaxed) {
                return false;
            }
            let added = cache.append_block(bytes, block);
            added
                .inspect(|()| progress(cache.len()))
                .inspect_err(|error| tracing::warn!(%error, "a block of the KV cache was not used"))
                .is_ok()
        });
        let restored = cache.len();
        if restored <= common {
            return;
        }
        let Some(kv) = self.kv_cache() else { return };
        *kv = cache;
        self.sequence = Sequence {
            tokens: whole[..restored].to_vec(),
            sent: restored,
            stored: self.sequence.stored.min(start),
            label,
        };
        self.cached = restored;
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
        let cache = self.model.as_mut().and_then(|model| model.kv_cache());
        let current = cache.map(|cache| (&mut self.sequence, &*cache));
        let parked = self.parked.iter_mut();
        let parked = parked.map(|parked| (&mut parked.sequence, &parked.cache));
        for (sequence, cache) in current.into_iter().chain(parked) {
            let first = sequence.stored / block * block;
            let end = first + block;
            // After a failover the cache holds less than the sequence.
            if end > sequence.sent.min(cache.len()) || !blocks.keeps(sequence.label) {
                continue;
            }
            let tokens = &sequence.tokens[..end];
            if !blocks.holds(sequence.label, tokens)
                && !blocks.store(sequence.label, tokens, &cache.block(first, block)?)
            {
                return Ok(false);
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

    /// Frees the storage behind the tokens.
    pub(super) fn release(&mut self) {
        if let Some(kv) = self.kv_cache() {
            *kv = kv.prefix(usize::MAX);
        }
    }

    fn kv_cache(&mut self) -> Option<&mut KvCache> {
        self.model.as_mut()?.kv_cache()
    }
}

#[cfg(test)]
mod tests;

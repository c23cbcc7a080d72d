//! Other sequences than the current one: parked in memory, and as blocks that outlive the session.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Session, restorable};
use crate::model::error::DeviceError;
use crate::model::evaluate::{Pass, Want};
use crate::model::kv_cache::KvCache;
use crate::run::kv_blocks::KvBlocks;
use crate::run::sequence::{ParkedSequence, ReadBehind, Sequence};

/// Largest number of tokens that is not worth parking: these are evaluated again.
const NEGLIGIBLE: usize = 64;

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
    /// left out. For `settled` see [`Session::prefill`].
    pub fn resume(
        &mut self,
        prompt: &[u32],
        settled: usize,
        label: u64,
        blocks: Option<&mut dyn KvBlocks>,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(usize),
    ) {
        self.select(prompt);
        // Tokens of another conversation behind the common prefix do not belong to this one.
        let common = self.sequence.common(prompt);
        self.truncate(common);
        if self.sequence.label != label {
            (self.sequence.label, self.sequence.kept) = (label, 0);
        }
        if let Some(blocks) = blocks {
            let whole = self.whole_blocks(prompt.len(), settled);
            self.restore(&prompt[..whole], blocks, cancel, progress);
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
        if self.sequence.settled > common + NEGLIGIBLE {
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
        let block = self.block().unwrap_or(1);
        sequence.truncate(sequence.settled, block);
        if sequence.tokens.len() > NEGLIGIBLE {
            let cache = cache.prefix(sequence.tokens.len());
            let budget = (self.spare_memory)(self.kv_bytes() as u64, self.parked.bytes());
            self.parked.add(ParkedSequence { sequence, cache }, budget);
        }
    }

    /// Returns true if switching to the parked sequence at `at` loses nothing.
    fn can_park_for(&self, at: usize) -> bool {
        let next = self.parked.bytes_of(at);
        let others = self.parked.bytes() - next;
        let room = (self.spare_memory)(next, others);
        !self.sequence.has_draft() && others + self.kv_bytes() as u64 <= room
    }

    /// Number of leading tokens of a prompt that a cold run evaluates in whole blocks, without the last token, which is
    /// always evaluated for its logits.
    fn whole_blocks(&mut self, len: usize, settled: usize) -> usize {
        self.block()
            .map_or(0, |block| restorable(len, settled, block))
    }

    /// Extends the current sequence, a prefix of the prompt, with stored blocks of `whole`, the prompt's whole blocks.
    /// Positions in memory that are not canonical are replaced, so that the result is that of a cold run.
    fn restore(
        &mut self,
        whole: &[u32],
        blocks: &mut dyn KvBlocks,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(usize),
    ) {
        let Some(block) = self.block() else { return };
        let common = self.sequence.tokens.len();
        let next = common / block * block + block;
        let label = self.sequence.label;
        if next > whole.len() || !blocks.holds(label, &whole[..next]) {
            return;
        }
        let start = self.sequence.canonical.min(common) / block * block;
        self.release();
        let Some(mut cache) = self.kv_cache().map(|kv| kv.prefix(start)) else {
            return;
        };
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
            canonical: restored,
            settled: restored,
            kept: self.sequence.kept.min(start),
            label,
            split: None,
        };
        self.cached = restored;
        tracing::debug!(restored, common, "KV cache restored");
    }

    /// Does one step of storing all sequences as `blocks`: stores a block, or evaluates one as a cold run does, if it
    /// was decoded and `evaluates` is set. False if nothing is left to do, or `blocks` takes nothing now. A cancelled
    /// step changes nothing.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn keep(
        &mut self,
        blocks: &mut dyn KvBlocks,
        evaluates: bool,
        cancel: &AtomicBool,
    ) -> Result<bool, DeviceError> {
        let Some(block) = self.block() else {
            return Ok(false);
        };
        let has_unkept = |sequence: &Sequence| {
            sequence.has_unkept(block, evaluates) && blocks.keeps(sequence.label)
        };
        if !has_unkept(&self.sequence) {
            match self.parked.find(has_unkept) {
                Some(at) if self.can_park_for(at) => self.switch_to(at),
                _ => return Ok(false),
            }
        }
        let (first, end) = (self.sequence.kept, self.sequence.kept + block);
        if self.sequence.canonical < end {
            let tokens = self.sequence.tokens.clone();
            let _whether_cancelled = self.canonicalise(&tokens, block, cancel)?;
            return Ok(true);
        }
        let (label, tokens) = (self.sequence.label, self.sequence.tokens[..end].to_vec());
        if !blocks.holds(label, &tokens) {
            let Some(kv) = self.kv_cache() else {
                return Ok(false);
            };
            let bytes = kv.block(first, block)?;
            if !blocks.store(label, &tokens, &bytes) {
                return Ok(false);
            }
        }
        self.sequence.kept = end;
        Ok(true)
    }

    /// Evaluates a block of a prompt that is not sent yet, as a cold run does; its first `settled` tokens belong to the
    /// conversation, the rest to a draft. The last block of the conversation may be partial. False if cancelled, or no
    /// whole block is left. Cancelling it, or changing the draft, discards nothing else.
    ///
    /// # Errors
    /// Returns the device's error.
    pub fn read_ahead(
        &mut self,
        prompt: &[u32],
        settled: usize,
        cancel: &AtomicBool,
    ) -> Result<bool, DeviceError> {
        let Some(block) = self.block() else {
            return Ok(false);
        };
        let canonical = self.sequence.canonical.min(self.sequence.common(prompt));
        let more = match self.split(prompt.len(), settled) {
            Some(split) if canonical >= split / block * block => {
                self.read_behind(prompt, split, block, cancel)?
            }
            _ if canonical + block > prompt.len() => false,
            _ => self.canonicalise(prompt, block, cancel)? == Pass::Complete,
        };
        let settled = settled.min(self.sequence.common(prompt));
        self.sequence.settled = self.sequence.settled.max(settled);
        Ok(more)
    }

    /// Evaluates the next part of a prompt whose passes end at `split`: the rest of the conversation behind its whole
    /// blocks, then a block of the draft. False if cancelled, or no whole block is left.
    fn read_behind(
        &mut self,
        prompt: &[u32],
        split: usize,
        block: usize,
        cancel: &AtomicBool,
    ) -> Result<bool, DeviceError> {
        let common = self.sequence.common(prompt);
        let (start, end) = match self.sequence.split {
            Some(read) if read.at == split && read.end <= common => (read.end, read.end + block),
            _ => (split / block * block, split),
        };
        if end > prompt.len() || self.evaluate_again(prompt, start..end, cancel)? != Pass::Complete
        {
            return Ok(false);
        }
        let Sequence {
            canonical,
            kept,
            split: read,
            ..
        } = &mut self.sequence;
        *canonical = split / block * block;
        *kept = (*kept).min(*canonical);
        *read = Some(ReadBehind { at: split, end });
        Ok(true)
    }

    /// Evaluates the block of `prompt` behind the canonical positions in common with it. If it is cancelled or fails,
    /// the sequence is unchanged.
    fn canonicalise(
        &mut self,
        prompt: &[u32],
        block: usize,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let common = self.sequence.common(prompt);
        let start = self.sequence.canonical.min(common) / block * block;
        let end = start + block;
        let pass = self.evaluate_again(prompt, start..end, cancel)?;
        if pass == Pass::Complete {
            self.sequence.canonical = end;
            self.sequence.split = None;
        }
        Ok(pass)
    }

    /// Evaluates the positions `span` of `prompt`, whatever the cache holds there; behind whole segments, the positions
    /// in common with the prompt stay. If it is cancelled or fails, the sequence is unchanged.
    fn evaluate_again(
        &mut self,
        prompt: &[u32],
        span: Range<usize>,
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let common = self.sequence.common(prompt);
        let (start, end) = (span.start, span.end);
        let Some(before) = self.kv_cache().map(|kv| kv.prefix(usize::MAX)) else {
            return Ok(Pass::Complete);
        };
        let pass = self.evaluate_canonical(start, &prompt[span], cancel);
        let Some(kv) = self.kv_cache() else {
            return pass;
        };
        if !matches!(pass, Ok(Pass::Complete)) {
            *kv = before;
            return pass;
        }
        if common >= end && end.is_multiple_of(KvCache::SEGMENT) {
            kv.append_rest_of(&before);
        } else {
            let Sequence {
                tokens,
                settled,
                kept,
                ..
            } = &mut self.sequence;
            tokens.truncate(start);
            tokens.extend_from_slice(&prompt[start..end]);
            *settled = common.min(*settled);
            *kept = start.min(*kept);
            self.cached = end;
        }
        Ok(Pass::Complete)
    }

    /// Runs the passes of a cold run over a block, or the rest of a conversation, that begins at `start`.
    fn evaluate_canonical(
        &mut self,
        start: usize,
        block: &[u32],
        cancel: &AtomicBool,
    ) -> Result<Pass, DeviceError> {
        let model = self.model()?;
        model.truncate(start);
        for chunk in block.chunks(model.chunk()) {
            let pass = model.append(chunk, Want::Nothing, cancel, &mut Vec::new())?;
            if pass == Pass::Cancelled {
                return Ok(Pass::Cancelled);
            }
        }
        Ok(Pass::Complete)
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

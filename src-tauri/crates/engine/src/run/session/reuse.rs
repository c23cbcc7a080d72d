//! Reuse of KV caches: of parked and active sequences, and of blocks that outlive the session.

use std::sync::atomic::AtomicBool;

use super::Session;
use super::passes::model_and_cache;
use crate::model::error::DeviceError;
use crate::model::evaluate::{Pass, Want};
use crate::run::kv_blocks::KvBlocks;
use crate::run::sequence::Sequence;

/// Number of leading tokens of a prompt of `len` tokens that can be restored from blocks of `block` tokens. The last
/// token is always evaluated for its logits.
pub fn restorable(len: usize, block: usize) -> usize {
    len.saturating_sub(1) / block * block
}

impl Session {
    /// Tokens of a stored block, whole segments; `None` if host memory does not hold the caches.
    pub fn block(&self) -> Option<usize> {
        self.model.as_ref()?.block()
    }

    /// Length of the longest common prefix of a parked sequence and `ids`; `None` if none is parked. `only`: the
    /// conversation whose sequences count.
    pub(crate) fn common(&self, ids: &[u32], only: Option<u64>) -> Option<usize> {
        Some(self.parked.nearest(ids, only)?.0)
    }

    /// Takes the common prefix of a prompt and the parked or active sequence that has the longest one. The storage is
    /// shared with a sequence that goes on differently. The result belongs to the conversation `label`. `only`: the
    /// conversation whose sequences count.
    pub(crate) fn take<'a>(
        &mut self,
        prompt: &[u32],
        label: u64,
        only: Option<u64>,
        active: impl Iterator<Item = &'a mut Sequence>,
    ) -> Sequence {
        let parked = self.parked.nearest(prompt, only);
        let active = active.filter(|sequence| only.is_none_or(|label| sequence.label == label));
        let active = active.map(|sequence| (sequence.common(prompt), sequence));
        let shared = active
            .max_by_key(|(common, _)| *common)
            .filter(|(common, _)| parked.is_none_or(|(there, _)| *common > there))
            .and_then(|(common, sequence)| sequence.fork(common));
        let mut sequence = match (shared, parked) {
            (Some(shared), _) => shared,
            (None, Some((common, at))) => self.parked.take(at, common),
            (None, None) => Sequence::default(),
        };
        sequence.belong_to(label);
        self.shrink_parked(&sequence);
        sequence
    }

    /// Parks a sequence.
    pub(crate) fn park(&mut self, sequence: Sequence) {
        self.shrink_parked(&sequence);
        self.parked.add(sequence);
    }

    /// Evicts parked sequences that have no room beside this one.
    fn shrink_parked(&mut self, beside: &Sequence) {
        let budget = (self.spare_memory)(beside.bytes() as u64, self.parked.bytes());
        self.parked.shrink(budget);
    }

    /// Extends a sequence, a prefix of `prompt`, with stored blocks, as long as `goes_on`. `progress` is called with the
    /// number of tokens after each block. Returns true if there may be more blocks.
    pub(crate) fn restore(
        &mut self,
        sequence: &mut Sequence,
        prompt: &[u32],
        blocks: &mut dyn KvBlocks,
        goes_on: &mut dyn FnMut() -> bool,
        progress: &mut dyn FnMut(usize),
    ) -> bool {
        let Some(block) = self.block() else {
            return false;
        };
        let whole = &prompt[..restorable(prompt.len(), block)];
        let common = sequence.tokens.len();
        let start = common / block * block;
        if start + block > whole.len() || !blocks.holds(sequence.label, &whole[..start + block]) {
            return false;
        }
        let cache = model_and_cache(&mut self.model, self.reloads, sequence);
        let Some(mut cache) = cache
            .ok()
            .and_then(|(_, cache)| cache.in_host_memory())
            .map(|kv| kv.prefix(start))
        else {
            return false;
        };
        // After a failover the cache may hold less than the sequence.
        if cache.len() != start {
            return false;
        }
        let mut is_stopped = false;
        blocks.load(whole, start, &mut |bytes| {
            is_stopped = !goes_on();
            if is_stopped {
                return false;
            }
            let added = cache.append_block(bytes, block);
            added
                .inspect(|()| progress(cache.len()))
                .inspect_err(|error| tracing::warn!(%error, "a block of the KV cache was not used"))
                .is_ok()
        });
        let restored = cache.len();
        if restored > common {
            *sequence = Sequence {
                tokens: whole[..restored].to_vec(),
                sent: restored,
                stored: sequence.stored.min(start),
                label: sequence.label,
                cache: Some(Box::new(cache)),
                reloads: self.reloads,
            };
            tracing::debug!(restored, common, "KV cache restored");
        }
        is_stopped
    }

    /// Stores one more block of the parked sequences. False if none is left, or `blocks` takes nothing now.
    ///
    /// # Errors
    /// Fails if out of memory.
    pub fn store_block(&mut self, blocks: &mut dyn KvBlocks) -> Result<bool, DeviceError> {
        let Some(block) = self.block() else {
            return Ok(false);
        };
        for sequence in self.parked.iter_mut() {
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
    pub(crate) fn read_ahead(
        &mut self,
        sequence: &mut Sequence,
        prompt: &[u32],
        sent: usize,
        cancel: &AtomicBool,
    ) -> Result<bool, DeviceError> {
        let Some(block) = self.block() else {
            return Ok(false);
        };
        sequence.truncate(sequence.common(prompt));
        let at = sequence.tokens.len();
        let end = prompt.len().min(at + block);
        if at == end {
            return Ok(false);
        }
        let before = sequence.sent;
        let pass = self.append(sequence, &prompt[at..end], Want::Nothing, cancel)?;
        sequence.sent = before.max(sent.min(sequence.tokens.len()));
        Ok(pass == Pass::Complete)
    }
}

#[cfg(test)]
mod tests;

//! A sequence of tokens with its KV cache, and the parked sequences, which no request uses.
//!
//! Keys and values are parked and stored as they were computed, decoded ones too. Prefill and decoding round sums
//! differently, so the last bits of a position depend on the pass that computed it; a chat that goes on in memory uses its
//! decoded positions all the same, and a restored chat has the very positions that it had in memory. Drafted tokens that
//! were accepted have the bits of single-token passes ([`speculative`](crate::run::speculative)), rejected ones are
//! removed. A sequence holds evaluated tokens alone: the last token of an answer, which no pass has read, is not in it.

use crate::model::error::DeviceError;
use crate::model::evaluate::{Cache, Evaluate, Want};
use crate::model::kv_cache::KvCache;

/// The tokens of a conversation, with their keys and values.
#[derive(Default)]
pub struct Sequence {
    pub(crate) tokens: Vec<u32>,
    /// Leading tokens that are sent or generated; the rest is a draft, which is neither parked nor stored.
    pub(crate) sent: usize,
    /// Leading positions that are stored as blocks under `label`.
    pub(crate) stored: usize,
    /// The caller's label of the conversation.
    pub(crate) label: u64,
    /// Keys and values of the tokens: of all of them, except right after a failover. `None` before the first pass.
    pub(crate) cache: Option<Box<dyn Cache>>,
    /// Number of failovers before the cache was made.
    pub(crate) reloads: u32,
}

impl Sequence {
    /// Tokens in the cache.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Removes all but the first `len` tokens.
    pub fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.sent = self.sent.min(len);
        self.stored = self.stored.min(len);
        if let Some(cache) = &mut self.cache {
            cache.truncate(len);
        }
    }

    /// Memory of the cache, in bytes.
    pub fn bytes(&self) -> usize {
        self.cache.as_ref().map_or(0, |cache| cache.bytes())
    }

    /// Length of the common prefix with `prompt`.
    pub(crate) fn common(&self, prompt: &[u32]) -> usize {
        let pairs = self.tokens.iter().zip(prompt);
        pairs.take_while(|(a, b)| a == b).count()
    }

    /// Appends tokens that are sent or generated, and with them a draft before them.
    pub(crate) fn push(&mut self, ids: &[u32]) {
        self.tokens.extend_from_slice(ids);
        self.sent = self.tokens.len();
    }

    /// Moves it to the conversation `to` if it belongs to `from`.
    pub(crate) fn relabel(&mut self, from: u64, to: u64) {
        if self.label == from {
            self.belong_to(to);
        }
    }

    /// Moves it to a conversation. The stored blocks belong to the one before.
    pub(crate) fn belong_to(&mut self, label: u64) {
        if self.label != label {
            (self.label, self.stored) = (label, 0);
        }
    }

    /// Returns the cache for a model after this number of failovers. It is made before the first pass, and again after a
    /// failover.
    pub(crate) fn cache_for(
        &mut self,
        model: &mut dyn Evaluate,
        reloads: u32,
    ) -> Result<&mut dyn Cache, DeviceError> {
        if self.reloads != reloads {
            (self.cache, self.reloads) = (None, reloads);
        }
        let cache = match &mut self.cache {
            Some(cache) => cache,
            none => none.insert(model.new_cache()?),
        };
        Ok(&mut **cache)
    }

    /// Number of positions in the cache, with those of passes in flight.
    pub(crate) fn cached(&self) -> usize {
        self.cache.as_ref().map_or(0, |cache| cache.positions())
    }

    /// The cache, if host memory holds all of it.
    pub(crate) fn kv(&mut self) -> Option<&mut KvCache> {
        self.cache.as_mut()?.in_host_memory()
    }

    /// Frees the storage behind the tokens.
    pub(crate) fn release(&mut self) {
        if let Some(kv) = self.kv() {
            *kv = kv.prefix(usize::MAX);
        }
    }

    /// Returns a sequence of the first `len` tokens that shares the storage; `None` if the cache is not in host memory.
    pub(crate) fn fork(&mut self, len: usize) -> Option<Sequence> {
        let cache = self.kv()?.prefix(len);
        Some(Sequence {
            tokens: self.tokens[..len].to_vec(),
            sent: self.sent.min(len),
            stored: self.stored.min(len),
            cache: Some(Box::new(cache)),
            ..*self
        })
    }
}

/// A sequence in a pass.
pub(crate) struct SequenceSlot<'a> {
    pub sequence: &'a mut Sequence,
    /// The next tokens.
    pub ids: &'a [u32],
    /// The positions whose logits are computed.
    pub want: Want,
}

impl SequenceSlot<'_> {
    /// Drops what a pass that was not completed has left in the cache.
    pub(crate) fn undo(&mut self) {
        let len = self.sequence.tokens.len();
        if self.sequence.cached() > len {
            self.sequence.truncate(len);
        }
    }

    /// Rows of its logits.
    pub(crate) fn rows(&self) -> usize {
        match self.want {
            Want::Nothing => 0,
            Want::Last => 1,
            Want::All => self.ids.len(),
        }
    }
}

/// Largest number of tokens that is not worth keeping or waiting for: these are evaluated again.
pub(crate) const NEGLIGIBLE: usize = 64;

/// Sequences in memory that no request uses, in LRU order: the most recently used last. The last one may end with a draft,
/// and its cache may be in the memory of a device.
#[derive(Default)]
pub(crate) struct ParkedSequences(Vec<Sequence>);

impl ParkedSequences {
    /// Length of the longest common prefix of a sequence and `prompt`, and the sequence's index. `only`: the conversation
    /// whose sequences count.
    pub(crate) fn nearest(&self, prompt: &[u32], only: Option<u64>) -> Option<(usize, usize)> {
        let parked = self.0.iter().enumerate();
        let usable = parked.filter(|(_, it)| only.is_none_or(|label| it.label == label));
        usable.map(|(at, it)| (it.common(prompt), at)).max()
    }

    /// Takes the first `common` tokens of a sequence. If many tokens are behind these, the sequence stays, and shares its
    /// storage.
    pub(crate) fn take(&mut self, at: usize, common: usize) -> Sequence {
        let mut parked = self.0.remove(at);
        if parked.sent > common + NEGLIGIBLE
            && let Some(fork) = parked.fork(common)
        {
            self.0.push(parked);
            return fork;
        }
        parked.truncate(common);
        parked
    }

    /// Adds a sequence and removes its prefixes.
    pub(crate) fn add(&mut self, sequence: Sequence) {
        let tokens = &sequence.tokens;
        self.0.retain(|other| !tokens.starts_with(&other.tokens));
        self.0.push(sequence);
    }

    /// Removes drafts, what is not worth its memory, what is not in host memory, and what alone takes more than `budget`
    /// bytes, then the least recently used sequences until all take at most `budget` bytes.
    pub(crate) fn shrink(&mut self, budget: u64) {
        self.0.retain_mut(|parked| {
            parked.truncate(parked.sent);
            parked.release();
            parked.tokens.len() > NEGLIGIBLE
                && parked.kv().is_some()
                && parked.bytes() as u64 <= budget
        });
        while self.bytes() > budget {
            self.0.remove(0);
        }
    }

    /// The tokens of each sequence, the most recently used first.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &[u32]> {
        self.0.iter().rev().map(Sequence::tokens)
    }

    /// The sequences, the most recently used first.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sequence> {
        self.0.iter_mut().rev()
    }

    /// Upper bound of the memory in bytes: shared storage is counted for each sequence.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|parked| parked.bytes() as u64).sum()
    }

    /// Removes all but the one that has a beginning in common with `ids`. Returns false if there were no others.
    pub(crate) fn clear_but(&mut self, ids: &[u32]) -> bool {
        let before = self.0.len();
        let kept = self.nearest(ids, None).filter(|(common, _)| *common > 0);
        let kept = kept.map(|(_, at)| self.0.swap_remove(at));
        self.0.clear();
        self.0.extend(kept);
        self.0.len() < before
    }

    /// Removes the sequences of conversations that `keeps` refuses.
    pub(crate) fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        self.0.retain(|parked| keeps(parked.label));
    }
}

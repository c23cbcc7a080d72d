//! A sequence of tokens with the state of its KV cache, and the sequences parked in memory.
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
pub(crate) struct Sequence {
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

    /// Removes all but the first `len` tokens.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.sent = self.sent.min(len);
        self.stored = self.stored.min(len);
        if let Some(cache) = &mut self.cache {
            cache.truncate(len);
        }
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

    /// Returns true if the cache holds all tokens.
    pub(crate) fn is_cached(&self) -> bool {
        self.cached() >= self.tokens.len()
    }

    /// Memory of the cache, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.cache.as_ref().map_or(0, |cache| cache.bytes())
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

    /// Returns a sequence with the same tokens that shares the storage; `None` if the cache is not in host memory.
    pub(crate) fn fork(&mut self) -> Option<Sequence> {
        let cache = self.kv()?.prefix(usize::MAX);
        Some(Sequence {
            tokens: self.tokens.clone(),
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

/// Parked sequences in LRU order: the most recently used last.
#[derive(Default)]
pub(crate) struct ParkedSequences(Vec<Sequence>);

impl ParkedSequences {
    /// Index of the sequence with the longest common prefix with `prompt`, and the prefix's length.
    pub(crate) fn nearest(&self, prompt: &[u32]) -> Option<(usize, usize)> {
        let common = |parked: &Sequence| parked.common(prompt);
        let all = self.0.iter().map(common).enumerate();
        all.max_by_key(|(_, common)| *common)
    }

    /// The tokens of each sequence.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &[u32]> {
        self.0.iter().map(|parked| &*parked.tokens)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sequence> {
        self.0.iter_mut()
    }

    pub(crate) fn take(&mut self, at: usize) -> Sequence {
        self.0.remove(at)
    }

    /// Adds a sequence and removes its prefixes. Evicts the least recently used ones until all take at most `budget`
    /// bytes; a sequence that alone takes more is not added.
    pub(crate) fn add(&mut self, parked: Sequence, budget: u64) {
        if parked.bytes() as u64 > budget {
            return;
        }
        let tokens = &parked.tokens;
        self.0.retain(|other| !tokens.starts_with(&other.tokens));
        self.0.push(parked);
        while self.bytes() > budget {
            self.0.remove(0);
        }
    }

    /// Upper bound of the memory in bytes: shared storage is counted for each sequence.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|parked| parked.bytes() as u64).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the sequences of conversations that `keeps` refuses.
    pub(crate) fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        self.0.retain(|parked| keeps(parked.label));
    }
}

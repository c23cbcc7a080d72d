//! A sequence of tokens with the state of its KV cache, and the sequences parked in memory.
//!
//! Keys and values are parked and stored as they were computed, decoded ones too. Prefill and decoding round sums
//! differently, so the last bits of a position depend on the pass that computed it; a chat that goes on in memory uses its
//! decoded positions all the same, and a restored chat has the very positions that it had in memory. Drafted tokens that
//! were accepted have the bits of single-token passes ([`speculative`](crate::run::speculative)), rejected ones are
//! removed. A sequence holds evaluated tokens alone: the last token of an answer, which no pass has read, is not in it.

use crate::model::kv_cache::KvCache;

/// The tokens of a KV cache.
#[derive(Clone, Default)]
pub(crate) struct Sequence {
    pub(crate) tokens: Vec<u32>,
    /// Leading tokens that are sent or generated; the rest is a draft, which is neither parked nor stored.
    pub(crate) sent: usize,
    /// Leading positions that are stored as blocks under `label`.
    pub(crate) stored: usize,
    /// The caller's label of the conversation.
    pub(crate) label: u64,
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
    }
}

/// A sequence that is not the current one, with its cache.
pub(crate) struct ParkedSequence {
    pub(crate) sequence: Sequence,
    pub(crate) cache: KvCache,
}

/// Parked sequences in LRU order: the most recently used last.
#[derive(Default)]
pub(crate) struct ParkedSequences(Vec<ParkedSequence>);

impl ParkedSequences {
    /// Index of the sequence with the longest common prefix with `prompt`, and the prefix's length.
    pub(crate) fn nearest(&self, prompt: &[u32]) -> Option<(usize, usize)> {
        let common = |parked: &ParkedSequence| parked.sequence.common(prompt);
        let all = self.0.iter().map(common).enumerate();
        all.max_by_key(|(_, common)| *common)
    }

    /// The tokens of each sequence.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &[u32]> {
        self.0.iter().map(|parked| &*parked.sequence.tokens)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ParkedSequence> {
        self.0.iter_mut()
    }

    pub(crate) fn take(&mut self, at: usize) -> ParkedSequence {
        self.0.remove(at)
    }

    /// Adds a sequence and removes its prefixes. Evicts the least recently used ones until all take at most `budget`
    /// bytes; a sequence that alone takes more is not added.
    pub(crate) fn add(&mut self, parked: ParkedSequence, budget: u64) {
        if parked.cache.bytes() as u64 > budget {
            return;
        }
        let tokens = &parked.sequence.tokens;
        self.0
            .retain(|other| !tokens.starts_with(&other.sequence.tokens));
        self.0.push(parked);
        while self.bytes() > budget {
            self.0.remove(0);
        }
    }

    /// Upper bound of the memory in bytes: shared storage is counted for each sequence.
    pub(crate) fn bytes(&self) -> u64 {
        self.0
            .iter()
            .map(|parked| parked.cache.bytes() as u64)
            .sum()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the sequences of conversations that `keeps` refuses.
    pub(crate) fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        self.0.retain(|parked| keeps(parked.sequence.label));
    }
}

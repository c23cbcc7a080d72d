//! A sequence of tokens with the state of its KV cache, and the sequences parked in memory.
//!
//! The last bits of keys and values depend on the passes that computed them: decoding differs from prefill, and attention
//! scales 16-bit integers by what a pass sees. Whatever is stored on the disk or read ahead must equal a cold run bit
//! for bit. So only *canonical* positions are used for that: whole blocks, evaluated in whole chunks from the start on. A
//! chat that goes on in memory uses its decoded positions.

use crate::model::kv_cache::KvCache;

/// The tokens of a KV cache.
#[derive(Clone, Default)]
pub(crate) struct Sequence {
    pub(crate) tokens: Vec<u32>,
    /// Leading positions whose keys and values are those of a cold run, bit for bit: evaluated in whole chunks from the
    /// start on. Decoded tokens, and tokens read behind them, differ in the last bits.
    pub(crate) canonical: usize,
    /// Leading tokens of the conversation; the rest is a draft.
    pub(crate) settled: usize,
    /// Leading positions that are stored as blocks under `label`.
    pub(crate) kept: usize,
    /// The caller's label of the conversation.
    pub(crate) label: u64,
    /// Speculative tail: positions read ahead behind the canonical ones.
    pub(crate) split: Option<ReadBehind>,
}

/// Positions equal to those of a cold run of a prompt with a pass that ends at `at`, within a block.
#[derive(Clone, Copy)]
pub(crate) struct ReadBehind {
    pub(crate) at: usize,
    /// End of these positions: `at`, or whole blocks behind it.
    pub(crate) end: usize,
}

impl Sequence {
    /// Length of the common prefix with `prompt`.
    pub(crate) fn common(&self, prompt: &[u32]) -> usize {
        let pairs = self.tokens.iter().zip(prompt);
        pairs.take_while(|(a, b)| a == b).count()
    }

    /// Appends tokens of the conversation; a draft before them becomes part of it.
    pub(crate) fn push(&mut self, ids: &[u32]) {
        self.tokens.extend_from_slice(ids);
        self.settled = self.tokens.len();
    }

    /// Removes all but the first `len` tokens. Positions are canonical in units of `block`.
    pub(crate) fn truncate(&mut self, len: usize, block: usize) {
        self.tokens.truncate(len);
        let len = self.tokens.len();
        self.settled = self.settled.min(len);
        self.canonical = self.canonical.min(len / block * block);
        self.kept = self.kept.min(self.canonical);
        self.split = self.split.filter(|split| split.at <= len).map(|split| {
            let blocks = (split.end.min(len) - split.at) / block;
            ReadBehind {
                end: split.at + blocks * block,
                ..split
            }
        });
    }

    /// Returns true if a further block of this many tokens can be stored: it is canonical, or `evaluates` is set.
    pub(crate) fn has_unkept(&self, block: usize, evaluates: bool) -> bool {
        let end = self.kept + block;
        end <= self.settled && (evaluates || end <= self.canonical)
    }

    /// Returns true if the sequence ends with a draft.
    pub(crate) fn has_draft(&self) -> bool {
        self.settled < self.tokens.len()
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

    /// Index of the first sequence that is `wanted`.
    pub(crate) fn find(&self, wanted: impl Fn(&Sequence) -> bool) -> Option<usize> {
        self.0.iter().position(|parked| wanted(&parked.sequence))
    }

    /// The tokens of each sequence.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = &[u32]> {
        self.0.iter().map(|parked| &*parked.sequence.tokens)
    }

    pub(crate) fn sequences(&mut self) -> impl Iterator<Item = &mut Sequence> {
        self.0.iter_mut().map(|parked| &mut parked.sequence)
    }

    /// Memory of the cache at this index, in bytes.
    pub(crate) fn bytes_of(&self, at: usize) -> u64 {
        self.0[at].cache.bytes() as u64
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

//! Blocks of KV caches that outlive a session.

/// Stores blocks of KV caches, each under the tokens from the start of the sequence to the block's end.
///
/// A block is returned only if every byte of it can be trusted. Nothing here fails: missing blocks are evaluated.
pub trait KvBlocks {
    /// Passes the blocks of `tokens` from position `first` on to `each`, in order, up to the first that is missing or
    /// that `each` refuses.
    fn load(&mut self, tokens: &[u32], first: usize, each: &mut dyn FnMut(&[u8]) -> bool);

    /// Returns true if the block at the end of `tokens` is stored; the conversation `label` uses it from now on.
    fn holds(&mut self, label: u64, tokens: &[u32]) -> bool;

    /// Returns true if blocks of the conversation `label` are stored at all.
    fn keeps(&self, _label: u64) -> bool {
        true
    }

    /// Stores the block at the end of `tokens` for the conversation `label`; false if that is not possible now.
    fn store(&mut self, label: u64, tokens: &[u32], block: &[u8]) -> bool;
}

/// Stores nothing.
pub struct NoBlocks;

impl KvBlocks for NoBlocks {
    fn load(&mut self, _: &[u32], _: usize, _: &mut dyn FnMut(&[u8]) -> bool) {}

    fn holds(&mut self, _: u64, _: &[u32]) -> bool {
        false
    }

    fn keeps(&self, _: u64) -> bool {
        false
    }

    fn store(&mut self, _: u64, _: &[u32], _: &[u8]) -> bool {
        false
    }
}

#[cfg(test)]
pub mod in_memory {
    use std::collections::HashMap;

    use super::KvBlocks;
    use crate::model::kv_cache::KvCache;

    /// Tokens of a block.
    pub const BLOCK: usize = KvCache::SEGMENT;

    /// Blocks in memory.
    #[derive(Default)]
    pub struct Blocks {
        /// Each block under all tokens to its end.
        pub stored: HashMap<Vec<u32>, Vec<u8>>,
        /// Labels of used blocks, with the number of tokens.
        pub labels: Vec<(u64, usize)>,
        pub full: bool,
        /// A conversation that is not stored.
        pub secret: Option<u64>,
    }

    impl KvBlocks for Blocks {
        fn load(&mut self, tokens: &[u32], first: usize, each: &mut dyn FnMut(&[u8]) -> bool) {
            let ends = (first + BLOCK..=tokens.len()).step_by(BLOCK);
            for block in ends.map_while(|end| self.stored.get(&tokens[..end])) {
                if !each(block) {
                    return;
                }
            }
        }

        fn holds(&mut self, label: u64, tokens: &[u32]) -> bool {
            let holds = self.stored.contains_key(tokens);
            if holds {
                self.labels.push((label, tokens.len()));
            }
            holds
        }

        fn keeps(&self, label: u64) -> bool {
            self.secret != Some(label)
        }

        fn store(&mut self, label: u64, tokens: &[u32], block: &[u8]) -> bool {
            if !self.full {
                self.labels.push((label, tokens.len()));
                self.stored.insert(tokens.to_vec(), block.to_vec());
            }
            !self.full
        }
    }
}

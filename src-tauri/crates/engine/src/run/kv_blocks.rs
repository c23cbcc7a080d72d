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

//! Blocks of KV caches that outlive a session.

/// Keeps blocks of KV caches, each under the tokens from the start of the sequence to the block's end.
///
/// A block that cannot be trusted in every byte is not held. Nothing here fails: what is not held is evaluated.
pub trait KvBlocks {
    /// Passes the blocks of `tokens` from position `first` on to `each`, in order, up to the first that is not held or
    /// that `each` refuses.
    fn load(&mut self, tokens: &[u32], first: usize, each: &mut dyn FnMut(&[u8]) -> bool);

    /// Whether the block at the end of `tokens` is held. The conversation `label` uses it from now on.
    fn holds(&mut self, label: u64, tokens: &[u32]) -> bool;

    /// Whether blocks of the conversation `label` are kept at all.
    fn keeps(&self, _label: u64) -> bool {
        true
    }

    /// Keeps the block at the end of `tokens` for the conversation `label`; false where that is not possible now.
    fn store(&mut self, label: u64, tokens: &[u32], block: &[u8]) -> bool;
}

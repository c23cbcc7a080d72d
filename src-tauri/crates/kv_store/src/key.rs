//! The name of a block.

use std::fmt;
use std::str::FromStr;

/// Version of the files and their content. Another version has other keys.
const FORMAT: &str = "goldcrest KV block 1";

/// Key of a block: a BLAKE3 hash chain over all tokens from the start of the sequence to the block's end, seeded with
/// the identity of the model and of its way of computing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockKey([u8; 32]);

impl BlockKey {
    /// Returns the keys of the whole blocks of `tokens`, `block` tokens each.
    ///
    /// # Panics
    /// Panics if `block` is 0.
    pub fn chain(identity: &str, tokens: &[u32], block: usize) -> Vec<BlockKey> {
        let mut before = *blake3::Hasher::new_derive_key(FORMAT)
            .update(identity.as_bytes())
            .finalize()
            .as_bytes();
        let keys = tokens.chunks_exact(block).map(|tokens| {
            let mut hash = blake3::Hasher::new_keyed(&before);
            for token in tokens {
                hash.update(&token.to_le_bytes());
            }
            before = *hash.finalize().as_bytes();
            BlockKey(before)
        });
        keys.collect()
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for BlockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for BlockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlockKey {
    type Err = blake3::HexError;

    fn from_str(text: &str) -> Result<BlockKey, blake3::HexError> {
        Ok(BlockKey(*blake3::Hash::from_hex(text)?.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_depends_on_the_identity_and_on_every_token_before_its_end() {
        let tokens: Vec<u32> = (0..12).collect();
        let keys = BlockKey::chain("model a", &tokens, 4);
        assert_eq!(keys.len(), 3);
        assert_eq!(BlockKey::chain("model a", &tokens[..11], 4), keys[..2]);
        let other = BlockKey::chain("model b", &tokens, 4);
        assert!(keys.iter().all(|key| !other.contains(key)));
        for at in 0..12 {
            let mut changed = tokens.clone();
            changed[at] += 1;
            let changed = BlockKey::chain("model a", &changed, 4);
            assert_eq!(changed[..at / 4], keys[..at / 4]);
            assert!(changed[at / 4..].iter().all(|key| !keys.contains(key)));
        }
        // The same tokens in blocks of another length.
        assert!(!keys.contains(&BlockKey::chain("model a", &tokens, 8)[0]));
    }

    #[test]
    fn a_key_is_read_back_from_its_name() {
        let key = BlockKey::chain("", &[1], 1)[0];
        let name = key.to_string();
        assert_eq!((name.len(), name.parse().ok()), (64, Some(key)));
        assert!(name[1..].parse::<BlockKey>().is_err());
    }
}

//! Blocks of KV caches on disk, so that a chat that is reopened costs no prefill.
//!
//! A block is a file that is written once, under a key that covers everything its values depend on. It holds its key and
//! a checksum; a damaged block is removed and counts as missing. Each chat has a list of the keys that it uses: chats
//! share blocks, and a block is removed with the last chat that uses it. Above the budget the least recently used
//! blocks are evicted (LRU), and of a sequence its end first, because a block is useless without those before it. Removed
//! blocks are unlinked, not overwritten.

#![warn(missing_docs)]

mod block_file;
mod chat_list;
mod key;
mod store;

pub use key::BlockKey;
pub use store::{KvBlockFolder, KvStore, KvStoreError};

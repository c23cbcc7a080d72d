//! Blocks of KV caches on a disk, so that a chat that is opened again costs no prefill.
//!
//! A block is a file that is written once, under a key that stands for everything its bits depend on. It holds its key and
//! a checksum; what does not agree in every byte is removed and counts as not held. Each chat has a list of the keys that
//! it uses: chats share blocks, and a block goes with the last chat that uses it. Above the budget the blocks that were
//! unused for longest go, and of a sequence its end first, because a block is of no use without those before it.

#![warn(missing_docs)]

mod block_file;
mod chat_list;
mod key;
mod store;

pub use key::BlockKey;
pub use store::{KvBlockFolder, KvStore, KvStoreError};

//! The KV caches of chats on the disk.

use std::path::Path;
use std::time::{Duration, Instant};

use chat::{ChatId, NEW_CHAT};
use engine::KvBlocks;
use kv_store::{BlockKey, KvBlockFolder, KvStore, KvStoreError};

/// Maximum bytes of all chats: some 58,000 tokens of SmolLM3-3B in f16.
const BUDGET: u64 = 4 << 30;
/// Free bytes of the disk, left for data that cannot be computed again, such as the chats.
const RESERVE: u64 = 1 << 30;
/// Pause of all writes after an error, such as a full disk.
const PAUSE: Duration = Duration::from_secs(5 * 60);

/// The folder of blocks.
pub(super) struct KvDisk {
    store: KvStore,
    /// End of the pause of writes.
    paused_until: Option<Instant>,
}

impl KvDisk {
    /// Opens or creates the folder; if that fails, prompts are prefilled as usual.
    pub(super) fn open(folder: &Path) -> Option<KvDisk> {
        let store = KvStore::open(folder, BUDGET, RESERVE)
            .inspect_err(|error| tracing::warn!(%error, "KV caches are not kept on the disk"));
        Some(KvDisk {
            store: store.ok()?,
            paused_until: None,
        })
    }

    /// Returns the folder of the blocks, for other threads.
    pub(super) fn folder(&self) -> KvBlockFolder {
        self.store.blocks()
    }

    /// Returns the blocks of a model.
    pub(super) fn blocks<'a>(&'a mut self, model: &'a KvModel) -> ModelBlocks<'a> {
        ModelBlocks { disk: self, model }
    }

    /// Erases blocks that only other chats use.
    pub(super) fn retain(&mut self, chats: &[u64]) {
        let kept: Vec<u64> = chats.iter().copied().filter(|chat| keeps(*chat)).collect();
        if let Err(error) = self.store.retain_chats(&kept) {
            tracing::warn!(%error, "some KV caches of deleted chats were not erased");
        }
    }

    /// Removes some blocks if the disk is full.
    pub(super) fn make_room(&mut self) {
        if let Err(error) = self.store.make_room() {
            tracing::warn!(%error, "no KV caches were removed from a full disk");
        }
    }

    fn is_paused(&self) -> bool {
        self.paused_until
            .is_some_and(|until| Instant::now() < until)
    }

    /// Handles the result of a write; returns whether it succeeded. After an error writes pause for a while, so that
    /// the log has one line about it.
    fn written(&mut self, written: Result<(), KvStoreError>) -> bool {
        if let Err(error) = &written {
            tracing::warn!(%error, full = error.is_disk_full(), "a KV cache was not kept on the disk");
            self.paused_until = Some(Instant::now() + PAUSE);
        }
        written.is_ok()
    }
}

/// Returns whether blocks of a chat are stored: none of a temporary chat and of the drafts of a new one, not even a note
/// that it begins like another one.
fn keeps(label: u64) -> bool {
    let chat = ChatId(label.cast_signed());
    chat != NEW_CHAT && !chat.is_temporary()
}

/// Identity of a model's blocks.
pub(super) struct KvModel {
    /// See [`engine::Engine::kv_identity`].
    pub(super) identity: String,
    /// Tokens of a block.
    pub(super) block: usize,
}

/// The blocks of one model on the disk.
pub(super) struct ModelBlocks<'a> {
    disk: &'a mut KvDisk,
    model: &'a KvModel,
}

impl ModelBlocks<'_> {
    fn keys(&self, tokens: &[u32]) -> Vec<BlockKey> {
        BlockKey::chain(&self.model.identity, tokens, self.model.block)
    }
}

impl KvBlocks for ModelBlocks<'_> {
    fn load(&mut self, tokens: &[u32], first: usize, each: &mut dyn FnMut(&[u8]) -> bool) {
        let keys = self.keys(tokens);
        self.disk.store.load(&keys, first / self.model.block, each);
    }

    fn holds(&mut self, label: u64, tokens: &[u32]) -> bool {
        let keys = self.keys(tokens);
        if !keys.last().is_some_and(|key| self.disk.store.holds(key)) {
            return false;
        }
        if self.keeps(label) && !self.disk.is_paused() {
            let claimed = self.disk.store.claim(label, &keys);
            self.disk.written(claimed);
        }
        true
    }

    fn keeps(&self, label: u64) -> bool {
        keeps(label)
    }

    fn store(&mut self, label: u64, tokens: &[u32], block: &[u8]) -> bool {
        if self.disk.is_paused() {
            return false;
        }
        let keys = self.keys(tokens);
        let stored = self.disk.store.store(label, &keys, block);
        self.disk.written(stored)
    }
}

//! Counts prompts beside the model thread, and the tokens that need no prefill.

use std::sync::{Arc, Mutex, PoisonError};

use chat::{EncodedMessage, Failure, PromptCounter};
use engine::{Conversation, PromptEncoder, PromptFrame, Turn, restorable};
use kv_store::{BlockKey, KvBlockFolder};

/// Tokens of the sequences in the model's memory, as the model thread last published them.
#[derive(Clone, Default)]
pub(super) struct SequencesInMemory(Arc<Mutex<Vec<Vec<u32>>>>);

impl SequencesInMemory {
    pub(super) fn set<'a>(&self, sequences: impl Iterator<Item = &'a [u32]>) {
        let sequences = sequences.map(<[u32]>::to_vec).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sequences;
    }

    fn longest_common(&self, prompt: &[u32]) -> usize {
        let sequences = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let common = |tokens: &Vec<u32>| {
            let pairs = tokens.iter().zip(prompt);
            pairs.take_while(|(a, b)| a == b).count()
        };
        sequences.iter().map(common).max().unwrap_or(0)
    }
}

/// KV blocks on the disk.
pub(super) struct BlocksOnDisk {
    pub(super) folder: KvBlockFolder,
    /// See [`super::kv_disk::KvModel`].
    pub(super) identity: String,
    /// Tokens of a block.
    pub(super) block: usize,
}

/// Counts by the tokenizer of the open model.
pub(super) struct EngineCounter {
    pub(super) encoder: Arc<PromptEncoder>,
    pub(super) memory: SequencesInMemory,
    pub(super) disk: Option<BlocksOnDisk>,
}

impl PromptCounter for EngineCounter {
    fn frame(&self, conversation: &Conversation) -> Result<Arc<PromptFrame>, Failure> {
        let frame = self.encoder.frame(conversation);
        frame.map_err(|error| Failure::other(error.to_string()))
    }

    fn message(&self, frame: &PromptFrame, turn: &Turn) -> Arc<EncodedMessage> {
        self.encoder.message(frame, turn)
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        self.encoder.encode(text)
    }

    fn bytes(&self, id: u32) -> Vec<u8> {
        self.encoder.bytes(id).to_vec()
    }

    fn count(&self, text: &str) -> usize {
        self.encoder.count(text)
    }

    fn cached(&self, prompt: &[u32]) -> usize {
        let in_memory = self.memory.longest_common(prompt);
        let Some(disk) = &self.disk else {
            return in_memory;
        };
        let restorable = restorable(prompt.len(), disk.block);
        let keys = BlockKey::chain(&disk.identity, &prompt[..restorable], disk.block);
        let held = keys.iter().take_while(|key| disk.folder.holds(key)).count();
        in_memory.max(held * disk.block)
    }
}

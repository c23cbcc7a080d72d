//! Counter like the scripted model: a token per word, and ten for the header.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use chat::{EncodedMessage, Failure, PromptCounter};
use inference::{Conversation, PromptFrame, Turn};

/// Log of the calls, and the number of cached tokens.
#[derive(Clone, Default)]
pub struct CounterLog(Arc<Counts>);

#[derive(Default)]
struct Counts {
    messages: Mutex<HashSet<Turn>>,
    frames: Mutex<HashSet<String>>,
    cached: AtomicUsize,
    panics: AtomicBool,
}

impl CounterLog {
    /// Returns the number of different messages.
    pub fn messages(&self) -> usize {
        self.0.messages.lock().unwrap().len()
    }
    /// Returns the number of different frames.
    pub fn frames(&self) -> usize {
        self.0.frames.lock().unwrap().len()
    }
    /// Makes the encoding of the next message panic.
    pub fn panic_next(&self) {
        self.0.panics.store(true, Ordering::Relaxed);
    }
    pub fn set_cached(&self, tokens: usize) {
        self.0.cached.store(tokens, Ordering::Relaxed);
    }
}

fn ids(text: &str) -> impl Iterator<Item = u32> {
    text.split_whitespace().map(|word| {
        let mut hash = DefaultHasher::new();
        word.hash(&mut hash);
        u32::try_from(hash.finish() >> 32).expect("32 bits")
    })
}

impl PromptCounter for CounterLog {
    fn frame(&self, conversation: &Conversation) -> Result<Arc<PromptFrame>, Failure> {
        let frame = format!("{conversation:?}");
        self.0.frames.lock().unwrap().insert(frame);
        Ok(Arc::new(PromptFrame {
            thinking: conversation.thinking,
            head: vec![0; 10],
            ..PromptFrame::default()
        }))
    }

    fn message(&self, _: &PromptFrame, turn: &Turn) -> Arc<EncodedMessage> {
        self.0.messages.lock().unwrap().insert(turn.clone());
        let panics = self.0.panics.swap(false, Ordering::Relaxed);
        assert!(!panics, "the tokenizer broke");
        let thinking: Vec<u32> = ids(turn.thinking.as_deref().unwrap_or_default()).collect();
        Arc::new(EncodedMessage {
            thinking: thinking.len(),
            ids: thinking.into_iter().chain(ids(&turn.text)).collect(),
        })
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        ids(text).collect()
    }

    fn bytes(&self, id: u32) -> Vec<u8> {
        id.to_string().into_bytes()
    }

    fn count(&self, text: &str) -> usize {
        ids(text).count()
    }

    fn cached(&self, prompt: &[u32]) -> usize {
        self.0.cached.load(Ordering::Relaxed).min(prompt.len())
    }
}

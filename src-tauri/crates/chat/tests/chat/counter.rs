//! Counter like the scripted model: a token per word, and ten for the header.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use chat::{EncodedMessage, Failure, PromptCounter};
use inference::{Conversation, MessageFrame, PromptFrame, Turn};

/// Log of the calls, and the number of cached tokens.
#[derive(Clone, Default)]
pub struct CounterLog(Arc<Counts>);

#[derive(Default)]
struct Counts {
    messages: AtomicUsize,
    frames: AtomicUsize,
    cached: AtomicUsize,
    opening: AtomicUsize,
    panics: AtomicBool,
}

impl CounterLog {
    /// Returns the number of encoded messages.
    pub fn messages(&self) -> usize {
        self.0.messages.load(Ordering::Relaxed)
    }
    pub fn frames(&self) -> usize {
        self.0.frames.load(Ordering::Relaxed)
    }
    /// Makes the encoding of the next message panic.
    pub fn panic_next(&self) {
        self.0.panics.store(true, Ordering::Relaxed);
    }
    /// Sets the tokens between two messages; the scripted model has none.
    pub fn set_opening(&self, tokens: usize) {
        self.0.opening.store(tokens, Ordering::Relaxed);
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
    fn frame(&self, conversation: &Conversation) -> Result<PromptFrame, Failure> {
        self.0.frames.fetch_add(1, Ordering::Relaxed);
        Ok(PromptFrame {
            thinking: conversation.thinking,
            head: vec![0; 10],
            tail: Vec::new(),
            user: MessageFrame {
                opening: vec![0; self.0.opening.load(Ordering::Relaxed)],
                ..MessageFrame::default()
            },
            answer: MessageFrame::default(),
        })
    }

    fn message(&self, _: &PromptFrame, turn: &Turn) -> EncodedMessage {
        self.0.messages.fetch_add(1, Ordering::Relaxed);
        let panics = self.0.panics.swap(false, Ordering::Relaxed);
        assert!(!panics, "the tokenizer broke");
        let thinking: Vec<u32> = ids(turn.thinking.as_deref().unwrap_or_default()).collect();
        EncodedMessage {
            thinking: thinking.len(),
            ids: thinking.into_iter().chain(ids(&turn.text)).collect(),
        }
    }

    fn count(&self, text: &str) -> usize {
        ids(text).count()
    }

    fn cached(&self, prompt: &[u32]) -> usize {
        self.0.cached.load(Ordering::Relaxed).min(prompt.len())
    }
}

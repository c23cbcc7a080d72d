//! Encoding of conversations as prompts: chat template, injection guard, tokenizer.
//!
//! A prompt is a head, the messages, and a tail. The template writes the head, the tail and what surrounds a message,
//! over placeholders for the messages' content ([`frame`]). Each message is encoded by itself ([`message`]) and cached,
//! so that one more does not encode the others again. The tests compare the result with the whole conversation as the
//! template renders it.

mod cache;
mod format;
mod frame;
mod guard;
mod message;
#[cfg(test)]
mod tests;
mod tools;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use inference::{Conversation, EncodedMessage, Prompt, PromptFrame, Role, Turn};

use crate::text::template::ChatTemplate;
use crate::text::tokenizer::Tokenizer;
use cache::{FrameCache, MessageCache};
pub use format::PromptError;
use format::{NEVER, PromptFormat};
use frame::{FrameKey, Unit};

/// Encodes prompts, and their messages one by one. Any thread may use it.
pub struct PromptEncoder {
    format: PromptFormat,
    frames: Mutex<FrameCache>,
    messages: Mutex<MessageCache>,
}

impl PromptEncoder {
    /// Makes an encoder with the template and the tokenizer of a model.
    #[must_use]
    pub fn new(template: Arc<ChatTemplate>, tokenizer: Arc<Tokenizer>) -> Self {
        Self {
            format: PromptFormat {
                template,
                tokenizer,
            },
            frames: Mutex::default(),
            messages: Mutex::default(),
        }
    }

    /// Encodes the prompt of `conversation`, polling `cancel`: an open answer at its end goes on, otherwise an answer
    /// begins.
    ///
    /// # Errors
    /// Fails if there are no messages, the template rejects them, or `cancel` was set.
    pub fn prompt(
        &self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, PromptError> {
        let messages = &conversation.messages;
        let (open, complete) = match messages.as_slice() {
            [] => return Err(PromptError::Empty),
            [before @ .., last] if last.open && last.role == Role::Assistant => {
                (Some(last), before)
            }
            all => (None, all),
        };
        let frame = self.frame(conversation)?;
        let mut ids = frame.head.clone();
        for unit in frame::units(&frame, frame::after_system(complete)) {
            let message = self.cached(unit, cancel).ok_or(PromptError::Cancelled)?;
            ids.extend(&message.ids);
        }
        let Some(open) = open else {
            ids.extend(&frame.tail);
            let starts_in = self.format.part_after(&frame.tail);
            return Ok(Prompt {
                ids,
                starts_in,
                begun: false,
            });
        };
        let (message, (starts_in, begun)) = self
            .format
            .encode_open(&frame, open, cancel)
            .ok_or(PromptError::Cancelled)?;
        ids.extend(message.ids);
        Ok(Prompt {
            ids,
            starts_in,
            begun,
        })
    }

    /// Returns what the template writes around the messages of `conversation`, whatever their content. A system message
    /// at the beginning is part of the head.
    ///
    /// # Errors
    /// Fails if the template does, or cannot write single messages.
    pub fn frame(&self, conversation: &Conversation) -> Result<Arc<PromptFrame>, PromptError> {
        let key = FrameKey::of(conversation);
        let frames = || self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(frame) = frames().get(&key) {
            return Ok(frame);
        }
        let frame = Arc::new(self.format.render_frame(&key)?);
        frames().insert(key, Arc::clone(&frame));
        Ok(frame)
    }

    /// Encodes a message as it stands in a prompt of this frame; empty if the template leaves it out.
    #[must_use]
    pub fn message(&self, frame: &PromptFrame, turn: &Turn) -> Arc<EncodedMessage> {
        let mut units = frame::units(frame, std::slice::from_ref(turn));
        let message = units.next().and_then(|unit| self.cached(unit, &NEVER));
        message.unwrap_or_default()
    }

    /// Returns the number of tokens of a text.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.encode(text).len()
    }

    /// Encodes a text, in which no control tokens are recognised.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.format.tokenizer.encode(text, false)
    }

    /// Returns the bytes of a token; empty for an id outside of the vocabulary.
    #[must_use]
    pub fn bytes(&self, id: u32) -> &[u8] {
        self.format.tokenizer.piece(id)
    }

    /// Returns a unit's tokens, encoded unless they are cached; `None` if cancelled.
    fn cached(&self, unit: Unit<'_>, cancel: &AtomicBool) -> Option<Arc<EncodedMessage>> {
        let cache = || self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let key = cache().key(unit);
        if let Some(message) = cache().get(key) {
            return Some(message);
        }
        let message = Arc::new(self.format.encode(unit, cancel)?);
        cache().insert(key, Arc::clone(&message));
        Some(message)
    }
}

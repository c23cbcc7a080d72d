//! The answers that wait, and the one that is being written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use store::{ChatId, MessageId, MessageState};

use crate::answer_buffer::AnswerBuffer;
use crate::failure::Failure;

#[derive(Default)]
pub(crate) struct AnswerQueue {
    pub(super) waiting: VecDeque<WaitingAnswer>,
    pub(super) active: Option<ActiveAnswer>,
}

pub(super) struct WaitingAnswer {
    pub(super) chat: ChatId,
    pub(super) message: MessageId,
    pub(super) start: AnswerStart,
}

/// What an answer begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerStart {
    /// Nothing.
    New,
    /// What its row has.
    Resumed,
    /// What its row has, which was complete.
    GoesOn,
}

pub(super) struct ActiveAnswer {
    pub(super) chat: ChatId,
    pub(super) message: MessageId,
    pub(super) cancel: Arc<AtomicBool>,
    /// Ends its thinking.
    pub(super) answer_now: Arc<AtomicBool>,
    pub(super) buffer: AnswerBuffer,
    /// How it ends when it was cancelled.
    pub(super) cancelled: MessageState,
    /// Why it cannot be saved.
    pub(super) unsaved: Option<Failure>,
}

impl AnswerQueue {
    /// Whether the model is at work.
    pub fn busy(&self) -> bool {
        self.active.is_some()
    }

    /// Whether no answer is written, and none waits.
    pub fn is_empty(&self) -> bool {
        self.active.is_none() && self.waiting.is_empty()
    }

    /// The answer of a chat that is written or waits.
    pub fn of_chat(&self, chat: ChatId) -> Option<MessageId> {
        let active = self
            .active
            .as_ref()
            .map(|active| (active.chat, active.message));
        let waiting = self
            .waiting
            .iter()
            .map(|waiting| (waiting.chat, waiting.message));
        active
            .into_iter()
            .chain(waiting)
            .find(|(of, _)| *of == chat)
            .map(|(_, message)| message)
    }

    /// Whether this message is written or waits.
    pub fn has(&self, message: MessageId) -> bool {
        let active = self.active.iter().map(|active| active.message);
        let waiting = self.waiting.iter().map(|waiting| waiting.message);
        active.chain(waiting).any(|of| of == message)
    }

    /// What is written of a message at this moment.
    pub fn buffer(&self, message: MessageId) -> Option<&AnswerBuffer> {
        self.active
            .as_ref()
            .filter(|active| active.message == message)
            .map(|active| &active.buffer)
    }

    pub fn due(&self) -> Option<Instant> {
        self.active.as_ref().and_then(|active| active.buffer.due())
    }
}

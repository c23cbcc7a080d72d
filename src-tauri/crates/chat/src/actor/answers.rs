//! Queue of answers, and the answer in progress.

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

/// Starting points of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerStart {
    /// An empty row, which the guide may fill if the user asked something about the app.
    Asked,
    /// An empty row, for the model alone.
    New,
    /// The partial text of its row.
    Resumed,
    /// The text of its row, which was complete.
    GoesOn,
}

pub(super) struct ActiveAnswer {
    pub(super) chat: ChatId,
    pub(super) message: MessageId,
    pub(super) cancel: Arc<AtomicBool>,
    /// Flag that ends the thinking.
    pub(super) answer_now: Arc<AtomicBool>,
    pub(super) buffer: AnswerBuffer,
    /// Final state of a cancelled answer.
    pub(super) cancelled: MessageState,
    /// Reason why it cannot be saved.
    pub(super) unsaved: Option<Failure>,
}

impl AnswerQueue {
    /// Returns whether the model is busy.
    pub fn busy(&self) -> bool {
        self.active.is_some()
    }

    /// Returns whether no answer is in progress or queued.
    pub fn is_empty(&self) -> bool {
        self.active.is_none() && self.waiting.is_empty()
    }

    /// Returns the answer of a chat that is in progress or queued.
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

    /// Returns whether this message is in progress or queued.
    pub fn has(&self, message: MessageId) -> bool {
        let active = self.active.iter().map(|active| active.message);
        let waiting = self.waiting.iter().map(|waiting| waiting.message);
        active.chain(waiting).any(|of| of == message)
    }

    /// Returns the buffer of a message that is in progress.
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

//! Saving of finished answers, with retry of failed writes.

use std::time::Instant;

use store::{ChatId, MessageId, MessageState, StoreError};

use crate::actor::state::ChatActor;
use crate::answers::unsaved::AnswerEnd;
use crate::failure::Failure;
use crate::showing;
use crate::view::{ChatEvent, Message};

impl ChatActor {
    /// Handles answers that the last process was writing and that could not be marked when the store was opened because
    /// the disk is full.
    pub(super) fn end_left_in_writing(&mut self) {
        match self.stores.disk.messages().writing() {
            Ok(left) => {
                for (chat, message) in left {
                    self.settle(AnswerEnd::unwritten(
                        chat,
                        message,
                        MessageState::Interrupted,
                    ));
                }
            }
            Err(error) => tracing::error!(%error, "interrupted answers cannot be read"),
        }
    }

    /// Saves the end of an answer, and tells the window, unless its chat was deleted meanwhile.
    pub(super) fn settle(&mut self, end: AnswerEnd) {
        // Its moment may have moved past others.
        self.context.forget();
        if let Some(failure) = &end.failure {
            // The message may quote the chat: a template raises errors in its own words.
            tracing::warn!(code = failure.code.name(), "an answer failed");
            self.after_failure(failure);
        }
        let (chat, message, seq) = (end.chat, end.message, end.seq);
        if let Some(reason) = self.answers.unsaved.save(&self.stores, end) {
            self.after_failure(&reason);
        }
        self.emit_ended(chat, message, seq);
    }

    fn emit_ended(&self, chat: ChatId, message: MessageId, seq: u32) {
        // The chat's state goes first: the window may send the next message as soon as it receives the end.
        match self.stores.chat(chat) {
            Ok(row) => self.emit(ChatEvent::ChatChanged {
                chat: self.summary(row),
            }),
            Err(StoreError::NotFound(_)) => return,
            Err(error) => tracing::error!(%error, "a chat cannot be shown"),
        }
        let row = match self.stores.message(message) {
            Ok(row) => row,
            Err(StoreError::NotFound(_)) => return,
            Err(error) => {
                tracing::error!(%error, "an answer cannot be read");
                return;
            }
        };
        match showing::one_message(&self.stores, &self.answers, row) {
            Ok(message) => self.emit(ChatEvent::Ended {
                chat,
                message: Box::new(Message { seq, ..message }),
            }),
            Err(failure) => {
                tracing::error!(code = failure.code.name(), "an answer cannot be shown")
            }
        }
    }

    /// Retries if the interval is over.
    pub(super) fn retry_unsaved(&mut self) {
        let due = self.answers.unsaved.due();
        if due.is_some_and(|due| due <= Instant::now()) {
            self.save_unsaved();
        }
    }

    /// Retries all unsaved writes.
    pub(super) fn save_unsaved(&mut self) {
        for end in self.answers.unsaved.retry(&self.stores) {
            self.emit_ended(end.chat, end.message, end.seq);
        }
    }

    /// Returns an error if the chat has unsaved rows: the next write would build on them.
    pub(super) fn refuse_if_unsaved(&mut self, chat: ChatId) -> Result<(), Failure> {
        if self.answers.unsaved.due().is_none() {
            return Ok(());
        }
        self.save_unsaved();
        self.answers.unsaved.refuse(&self.stores, chat)
    }
}

//! Saving of finished answers, with retry of failed writes.

use std::time::Instant;

use store::{ChatId, MessageId, MessageState, StoreError};

use crate::actor::state::ChatActor;
use crate::actor::unsaved::{AnswerEnd, UnsavedEnd, error_row};
use crate::failure::Failure;
use crate::view::{ChatEvent, Message};

/// Maximum doublings of the retry interval (backoff).
const MOST_DOUBLINGS: u32 = 4;

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
        self.counted = None;
        if let Some(failure) = &end.failure {
            // The message may quote the chat: a template raises errors in its own words.
            tracing::warn!(code = failure.code.name(), "an answer failed");
            self.after_failure(failure);
        }
        let (chat, message, seq) = (end.chat, end.message, end.seq);
        if let Err(error) = self.save_end(&end) {
            tracing::error!(%error, "the end of an answer was not saved; will retry");
            let reason = error.into();
            self.after_failure(&reason);
            self.unsaved.ends.push(UnsavedEnd { end, reason });
            self.retry_later();
        }
        self.emit_ended(chat, message, seq);
    }

    fn save_end(&self, end: &AnswerEnd) -> Result<(), StoreError> {
        let error = end.failure.as_ref().map(error_row);
        self.stores.of(end.chat).transaction(|store| {
            if let Some(progress) = &end.progress {
                store.messages().journal(end.message, progress)?;
            }
            store
                .messages()
                .end(end.message, end.state, end.stats.as_ref(), error.as_ref())
        })
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
        match self.one_message(row) {
            Ok(message) => self.emit(ChatEvent::Ended {
                chat,
                message: Box::new(Message { seq, ..message }),
            }),
            Err(failure) => {
                tracing::error!(code = failure.code.name(), "an answer cannot be shown")
            }
        }
    }

    /// Remembers that the shown branch ends with this message, though the chat's row could not be changed.
    pub(super) fn keep_leaf(&mut self, chat: ChatId, leaf: MessageId) {
        self.unsaved.leaves.insert(chat, leaf);
        self.retry_later();
    }

    pub(super) fn forget_leaf(&mut self, chat: ChatId) {
        self.unsaved.leaves.remove(&chat);
    }

    /// Retries if the interval is over.
    pub(super) fn retry_unsaved(&mut self) {
        if self.unsaved.due.is_some_and(|due| due <= Instant::now()) {
            self.save_unsaved();
        }
    }

    /// Retries all unsaved writes.
    pub(super) fn save_unsaved(&mut self) {
        let mut saved = Vec::new();
        let mut ends = std::mem::take(&mut self.unsaved.ends).into_iter();
        while let Some(mut unsaved) = ends.next() {
            let Err(error) = self.save_end(&unsaved.end) else {
                let AnswerEnd {
                    chat, message, seq, ..
                } = unsaved.end;
                saved.push((chat, message, seq));
                continue;
            };
            unsaved.reason = error.into();
            // Each may wait for another process, which blocks the actor: the others, which come first next time, would
            // likely fail as well.
            self.unsaved.ends.extend(ends.by_ref());
            self.unsaved.ends.push(unsaved);
        }
        let mut failed = false;
        let mut leaves = std::mem::take(&mut self.unsaved.leaves);
        leaves.retain(|_, leaf| {
            let shown = (!failed).then(|| self.stores.messages_with(*leaf).show(*leaf));
            let saved = matches!(shown, Some(Ok(()) | Err(StoreError::NotFound(_))));
            failed = !saved;
            failed
        });
        self.unsaved.leaves = leaves;
        for (chat, message, seq) in saved {
            tracing::info!(message = message.0, "the end of an answer is saved now");
            self.emit_ended(chat, message, seq);
        }
        self.unsaved.due = None;
        if self.unsaved.ends.is_empty() && self.unsaved.leaves.is_empty() {
            self.unsaved.tries = 0;
        } else {
            self.unsaved.tries += 1;
            self.retry_later();
        }
    }

    /// Schedules the next retry, with exponential backoff.
    fn retry_later(&mut self) {
        let wait = self.timing.retry_after * (1 << self.unsaved.tries.min(MOST_DOUBLINGS));
        self.unsaved.due.get_or_insert(Instant::now() + wait);
    }

    /// Returns an error if the chat has unsaved rows: the next write would build on them.
    pub(super) fn refuse_if_unsaved(&mut self, chat: ChatId) -> Result<(), Failure> {
        if self.unsaved.due.is_none() {
            return Ok(());
        }
        self.save_unsaved();
        let of_chat = |unsaved: &&UnsavedEnd| unsaved.end.chat == chat;
        if let Some(unsaved) = self.unsaved.ends.iter().find(of_chat) {
            return Err(unsaved.reason.clone());
        }
        match self.unsaved.leaf(chat) {
            Some(leaf) => self.stores.messages_with(leaf).show(leaf)?,
            None => return Ok(()),
        }
        self.forget_leaf(chat);
        Ok(())
    }
}

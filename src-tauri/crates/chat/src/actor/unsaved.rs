//! What could not be written, because the disk is full or the file is busy. It is kept here, shown
//! as it is, and written as soon as that is possible.

use std::collections::HashMap;
use std::time::Instant;

use serde_json::Value;
use store::{ChatId, ErrorRow, MessageId, MessageRow, MessageState, Progress};

use crate::failure::Failure;

#[derive(Default)]
pub(crate) struct Unsaved {
    pub(super) ends: Vec<UnsavedEnd>,
    /// The last message of the branch that is shown, for chats whose row names another.
    pub(super) leaves: HashMap<ChatId, MessageId>,
    /// When to try again.
    pub(super) due: Option<Instant>,
    /// How many tries have failed.
    pub(super) tries: u32,
}

pub(super) struct UnsavedEnd {
    pub(super) end: AnswerEnd,
    /// Why it is not saved.
    pub(super) reason: Failure,
}

/// How an answer ended.
pub(super) struct AnswerEnd {
    pub chat: ChatId,
    pub message: MessageId,
    /// All that was written; `None`: the row has it.
    pub progress: Option<Progress>,
    pub state: MessageState,
    pub stats: Option<Value>,
    pub failure: Option<Failure>,
    /// The number of the last delta.
    pub seq: u32,
}

impl AnswerEnd {
    /// Of an answer that has no more than its row.
    pub fn unwritten(chat: ChatId, message: MessageId, state: MessageState) -> AnswerEnd {
        AnswerEnd {
            chat,
            message,
            progress: None,
            state,
            stats: None,
            failure: None,
            seq: 0,
        }
    }
}

impl Unsaved {
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The last message of the branch that is shown, where the chat's row names another.
    pub fn leaf(&self, chat: ChatId) -> Option<MessageId> {
        self.leaves.get(&chat).copied()
    }

    /// What closing the app loses: of an answer, what came after it was journaled last.
    pub fn log_what_is_lost(&self) {
        let (answers, branches) = (self.ends.len(), self.leaves.len());
        if answers + branches > 0 {
            tracing::error!(answers, branches, "closed without saving all");
        }
    }

    /// Puts an end that is not saved over its row. Returns whether there is one.
    pub fn lay_over(&self, row: &mut MessageRow) -> bool {
        let of_row = |unsaved: &&UnsavedEnd| unsaved.end.message == row.id;
        let Some(UnsavedEnd { end, reason }) = self.ends.iter().find(of_row) else {
            return false;
        };
        if let Some(progress) = &end.progress {
            row.progress = progress.clone();
        }
        row.state = MessageState::Failed;
        row.stats = end.stats.clone().or(row.stats.take());
        row.error = Some(error_row(reason));
        true
    }
}

pub(super) fn error_row(failure: &Failure) -> ErrorRow {
    ErrorRow {
        code: failure.code.name(),
        message: failure.message.clone(),
    }
}

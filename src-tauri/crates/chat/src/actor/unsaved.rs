//! Writes that failed because the disk is full or the file is busy. They are held here, shown as they are, and retried.

use std::collections::HashMap;
use std::time::Instant;

use serde_json::Value;
use store::{ChatId, ErrorRow, MessageId, MessageRow, MessageState, Progress};

use crate::failure::Failure;

#[derive(Default)]
pub(crate) struct Unsaved {
    pub(super) ends: Vec<UnsavedEnd>,
    /// Last message of the shown branch, for chats whose row names another.
    pub(super) leaves: HashMap<ChatId, MessageId>,
    /// Time of the next retry.
    pub(super) due: Option<Instant>,
    /// Number of failed retries.
    pub(super) tries: u32,
}

pub(super) struct UnsavedEnd {
    pub(super) end: AnswerEnd,
    /// Reason for the failure.
    pub(super) reason: Failure,
}

/// End of an answer.
pub(super) struct AnswerEnd {
    pub chat: ChatId,
    pub message: MessageId,
    /// The whole text; `None` if the row has it.
    pub progress: Option<Progress>,
    pub state: MessageState,
    pub stats: Option<Value>,
    pub failure: Option<Failure>,
    /// Number of the last delta.
    pub seq: u32,
}

impl AnswerEnd {
    /// Makes the end of an answer that has only its row.
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

    /// Returns the last message of the shown branch if the chat's row names another.
    pub fn leaf(&self, chat: ChatId) -> Option<MessageId> {
        self.leaves.get(&chat).copied()
    }

    /// Logs the data that is lost when the app closes: of each answer, the part after its last journal entry.
    pub fn log_what_is_lost(&self) {
        let (answers, branches) = (self.ends.len(), self.leaves.len());
        if answers + branches > 0 {
            tracing::error!(answers, branches, "closed without saving all");
        }
    }

    /// Overlays the unsaved end of a row, if there is one. Returns whether there is.
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

//! Writes that failed because the disk is full or the file is busy. They are held here, shown as they are, and retried.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use store::{ChatId, ErrorRow, MessageId, MessageRow, MessageState, Progress, StoreError};

use crate::failure::Failure;
use crate::stores::Stores;

/// Maximum doublings of the retry interval (backoff).
const MOST_DOUBLINGS: u32 = 4;

pub(crate) struct Unsaved {
    ends: Vec<UnsavedEnd>,
    /// Last message of the shown branch, for chats whose row names another.
    leaves: HashMap<ChatId, MessageId>,
    /// Time of the next retry.
    due: Option<Instant>,
    /// Number of failed retries.
    tries: u32,
    retry_after: Duration,
}

struct UnsavedEnd {
    end: AnswerEnd,
    /// Reason for the failure.
    reason: Failure,
}

/// End of an answer.
pub(crate) struct AnswerEnd {
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

    /// Makes the end of an answer that failed between two rounds of calls.
    pub fn failed(chat: ChatId, message: MessageId, failure: Failure) -> AnswerEnd {
        AnswerEnd {
            failure: Some(failure),
            ..AnswerEnd::unwritten(chat, message, MessageState::Failed)
        }
    }

    fn save(&self, stores: &Stores) -> Result<(), StoreError> {
        let error = self.failure.as_ref().map(error_row);
        stores.of(self.chat).transaction(|store| {
            if let Some(progress) = &self.progress {
                store.messages().journal(self.message, progress)?;
            }
            store.messages().end(
                self.message,
                self.state,
                self.stats.as_ref(),
                error.as_ref(),
            )
        })
    }
}

impl Unsaved {
    pub fn new(retry_after: Duration) -> Unsaved {
        Unsaved {
            ends: Vec::new(),
            leaves: HashMap::new(),
            due: None,
            tries: 0,
            retry_after,
        }
    }

    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Saves the end of an answer, or holds it and returns the reason.
    pub fn save(&mut self, stores: &Stores, end: AnswerEnd) -> Option<Failure> {
        let error = end.save(stores).err()?;
        tracing::error!(%error, "the end of an answer was not saved; will retry");
        let reason = Failure::from(error);
        self.ends.push(UnsavedEnd {
            end,
            reason: reason.clone(),
        });
        self.retry_later();
        Some(reason)
    }

    /// Holds the last message of the shown branch, though the chat's row could not be changed.
    pub fn hold_leaf(&mut self, chat: ChatId, leaf: MessageId) {
        self.leaves.insert(chat, leaf);
        self.retry_later();
    }

    pub fn forget_leaf(&mut self, chat: ChatId) {
        self.leaves.remove(&chat);
    }

    /// Returns the last message of the shown branch if the chat's row names another.
    pub fn leaf(&self, chat: ChatId) -> Option<MessageId> {
        self.leaves.get(&chat).copied()
    }

    /// Retries all writes. Returns the ends that are saved now.
    pub fn retry(&mut self, stores: &Stores) -> Vec<AnswerEnd> {
        let mut saved = Vec::new();
        let mut ends = std::mem::take(&mut self.ends).into_iter();
        while let Some(mut unsaved) = ends.next() {
            let Err(error) = unsaved.end.save(stores) else {
                tracing::info!(
                    message = unsaved.end.message.0,
                    "the end of an answer is saved now"
                );
                saved.push(unsaved.end);
                continue;
            };
            unsaved.reason = error.into();
            // Each may wait for another process, which blocks the caller: the others, which come first next time, would
            // likely fail as well.
            self.ends.extend(ends.by_ref());
            self.ends.push(unsaved);
        }
        let mut failed = false;
        self.leaves.retain(|_, leaf| {
            let shown = (!failed).then(|| stores.messages_with(*leaf).show(*leaf));
            let saved = matches!(shown, Some(Ok(()) | Err(StoreError::NotFound(_))));
            failed = !saved;
            failed
        });
        self.due = None;
        if self.ends.is_empty() && self.leaves.is_empty() {
            self.tries = 0;
        } else {
            self.tries += 1;
            self.retry_later();
        }
        saved
    }

    /// Schedules the next retry, with exponential backoff.
    fn retry_later(&mut self) {
        let wait = self.retry_after * (1 << self.tries.min(MOST_DOUBLINGS));
        self.due.get_or_insert(Instant::now() + wait);
    }

    /// Returns an error if the chat has unsaved rows after a retry: the next write would build on them.
    pub fn refuse(&mut self, stores: &Stores, chat: ChatId) -> Result<(), Failure> {
        if let Some(unsaved) = self.ends.iter().find(|unsaved| unsaved.end.chat == chat) {
            return Err(unsaved.reason.clone());
        }
        if let Some(leaf) = self.leaf(chat) {
            stores.messages_with(leaf).show(leaf)?;
            self.forget_leaf(chat);
        }
        Ok(())
    }

    /// Logs the data that is lost when the app closes: of each answer, the part after its last journal entry.
    pub fn log_what_is_lost(&self) {
        let (answers, branches) = (self.ends.len(), self.leaves.len());
        if answers + branches > 0 {
            tracing::error!(answers, branches, "closed without saving all");
        }
    }

    /// Lays the unsaved end of a row over it, if there is one. Returns whether there is.
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

fn error_row(failure: &Failure) -> ErrorRow {
    ErrorRow {
        code: failure.code.name(),
        message: failure.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use inference::Parts;
    use store::{Store, faults};

    use super::*;
    use crate::stores::tests::add_answer;

    const RETRY_AFTER: Duration = Duration::from_secs(5);

    fn wait(unsaved: &Unsaved) -> u64 {
        let due = unsaved.due().expect("the next retry");
        let left = due.saturating_duration_since(Instant::now());
        left.as_secs_f32().round() as u64
    }

    #[test]
    fn an_end_that_cannot_be_saved_is_shown_and_retried() -> Result<(), Box<dyn std::error::Error>>
    {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("goldcrest.db");
        let stores = Stores::new(Store::open(&file)?)?;
        let (chat, message) = add_answer(&stores.disk)?;
        let mut unsaved = Unsaved::new(RETRY_AFTER);
        faults::refuse_writes(&file, &["message"])?;
        let end = AnswerEnd {
            progress: Some(Progress {
                parts: Parts::of_text("Towers"),
                ..Progress::default()
            }),
            ..AnswerEnd::unwritten(chat, message, MessageState::Done)
        };
        let reason = unsaved.save(&stores, end).expect("a reason");

        let mut row = stores.message(message)?;
        assert!(unsaved.lay_over(&mut row));
        assert_eq!(
            (&*row.progress.parts.text(), row.state),
            ("Towers", MessageState::Failed)
        );
        assert_eq!(unsaved.refuse(&stores, chat), Err(reason));
        assert_eq!(unsaved.refuse(&stores, ChatId(chat.0 + 1)), Ok(()));
        assert_eq!(wait(&unsaved), 5);
        for pause in [10, 20, 40, 80, 80] {
            assert!(unsaved.retry(&stores).is_empty());
            assert_eq!(wait(&unsaved), pause);
        }

        faults::allow_writes(&file)?;
        let saved = unsaved.retry(&stores);
        assert_eq!(saved.first().map(|end| end.message), Some(message));
        assert_eq!(unsaved.due(), None);
        let mut row = stores.message(message)?;
        assert!(!unsaved.lay_over(&mut row));
        assert_eq!(
            (&*row.progress.parts.text(), row.state),
            ("Towers", MessageState::Done)
        );
        Ok(())
    }

    #[test]
    fn a_shown_branch_that_is_gone_is_not_retried() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (chat, message) = add_answer(&stores.temporary)?;
        let mut unsaved = Unsaved::new(RETRY_AFTER);
        unsaved.hold_leaf(chat, MessageId(message.0 + 1));
        assert_eq!(unsaved.leaf(chat), Some(MessageId(message.0 + 1)));
        assert!(unsaved.retry(&stores).is_empty());
        assert_eq!((unsaved.leaf(chat), unsaved.due()), (None, None));
        Ok(())
    }
}

//! The actor's state, and the requests that it receives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use store::{ChatId, MessageId, MessageTable, Store};

use crate::actor::answers::AnswerQueue;
use crate::actor::copying_chat::CopiedChat;
use crate::actor::counted::CountedBranch;
use crate::actor::daily::Daily;
use crate::actor::model_slot::ModelSlot;
use crate::actor::undo_stack::UndoStack;
use crate::actor::unsaved::Unsaved;
use crate::clock::Clock;
use crate::counting::CountRequest;
use crate::failure::{Failure, FailureCode};
use crate::importing::Importing;
use crate::job::{Job, Report};
use crate::settings::Settings;
use crate::view::ChatEvent;

/// When the work is done that nobody asks for. Tests do not wait so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long after the start the removal of chats begins that were deleted long ago, and the indexing of messages that
    /// an earlier version has written.
    pub purge_after: Duration,
    /// How long after the start the day's copy of the database is made: when nobody waits for the
    /// first screen any more.
    pub copy_after: Duration,
    /// How long a token waits at most to be journaled.
    pub journal_after: Duration,
    /// How long what could not be saved waits to be tried again.
    pub retry_after: Duration,
    /// How long a minute of [`Settings::unload_minutes`] is.
    pub minute: Duration,
    /// How long the model has nothing to do before it does what waits for idle time.
    pub idle_after: Duration,
    /// How long closing waits for the model to stop, and then for it to be dropped.
    pub close_within: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            purge_after: Duration::from_secs(5),
            copy_after: Duration::from_secs(20),
            journal_after: Duration::from_millis(250),
            retry_after: Duration::from_secs(5),
            minute: Duration::from_secs(60),
            idle_after: Duration::from_secs(2),
            close_within: Duration::from_secs(5),
        }
    }
}

/// Seconds that a deleted chat can be restored.
pub(super) const BIN: i64 = 30 * 24 * 60 * 60;

/// Rows in which the app remembers things for itself.
pub(super) const CURRENT: &str = "app.current";
pub(crate) const MODEL: &str = "app.model";
/// What the file of that model held when it was opened last.
pub(super) const MODEL_CONTENT: &str = "app.model-content";

/// What the actor receives.
pub(crate) enum Request {
    Verb(Box<dyn FnOnce(&mut ChatActor) + Send>),
    Report(Report),
    /// Close. The reply is sent when all is done.
    Quit(Option<Sender<AtEnd>>),
}

pub(crate) struct ChatActor {
    pub store: Store,
    /// The temporary chats.
    pub(super) temporary: Store,
    pub(super) undo: UndoStack<ChatActor>,
    /// The chats that are being imported.
    pub(super) import: Option<Importing>,
    /// Each fork that is being made, and each chat that is being copied into the other store, has a clone of it.
    pub(super) unfinished: Arc<()>,
    /// The chats that are being copied into the other store.
    pub(super) being_copied: Vec<Weak<ChatId>>,
    /// A copy that was made for the change that is being taken back.
    pub(super) copied: Option<CopiedChat>,
    pub(super) clock: Box<dyn Clock>,
    pub(super) on_event: Box<dyn Fn(ChatEvent) + Send + Sync>,
    pub(super) jobs: Sender<Job>,
    /// Ends what the model thread does in idle time.
    pub(super) interrupt: Arc<AtomicBool>,
    /// What was last read ahead.
    pub(super) ahead: Option<DraftAhead>,
    /// What is read ahead when the model has time for it.
    pub(super) ahead_next: Option<DraftAhead>,
    pub(super) settings: Settings,
    pub(super) model: ModelSlot,
    pub(super) answers: AnswerQueue,
    pub(super) unsaved: Unsaved,
    pub(super) counting: Sender<CountRequest>,
    pub(super) counted: Option<CountedBranch>,
    pub(super) timing: Timing,
    pub(super) purging: Daily,
    pub(super) copying: Daily,
    /// When the next messages are indexed that the search lacks; `None`: it has all.
    pub(super) index_due: Option<Instant>,
    /// Nothing that is written from now on is kept: every verb fails.
    pub(crate) has_ended: bool,
    /// For threads that report to this one.
    pub(super) mailbox: Sender<Request>,
}

/// What is written of a message.
pub(crate) struct DraftAhead {
    pub(super) chat: Option<ChatId>,
    pub(super) text: String,
    pub(super) thinking: bool,
}

impl DraftAhead {
    /// Whether it goes on from `before`.
    pub(super) fn continues(&self, before: &DraftAhead) -> bool {
        self.chat == before.chat
            && self.thinking == before.thinking
            && self.text.starts_with(&before.text)
    }
}

impl ChatActor {
    /// The store that has this chat.
    pub(crate) fn store_of(&self, chat: ChatId) -> &Store {
        if chat.is_temporary() {
            &self.temporary
        } else {
            &self.store
        }
    }

    /// The messages of the store that has this message.
    pub(super) fn messages_with(&self, message: MessageId) -> MessageTable<'_> {
        let store = if message.is_temporary() {
            &self.temporary
        } else {
            &self.store
        };
        store.messages()
    }

    pub(super) fn submit_job(&self, job: Job) {
        self.queue_job(job);
        // After it was sent: the model thread clears the flag before it looks for a job.
        self.interrupt.store(true, Ordering::SeqCst);
    }

    /// Submits a job for which idle work is not interrupted.
    pub(super) fn queue_job(&self, job: Job) {
        if self.jobs.send(job).is_err() {
            tracing::error!("the model thread has ended");
        }
    }

    /// Does what helps against a failure of the store.
    pub(crate) fn after_failure(&self, failure: &Failure) {
        check_if_failed(&self.store, failure);
        if failure.code == FailureCode::DiskFull {
            self.queue_job(Job::MakeRoom);
        }
    }

    pub(super) fn emit(&self, event: ChatEvent) {
        (self.on_event)(event);
    }

    pub(super) fn now(&self) -> i64 {
        self.clock.now().timestamp().as_second()
    }
}

/// SQLite may have failed because the file is damaged: the next start reads all of it.
pub(super) fn check_if_failed(store: &Store, failure: &Failure) {
    if failure.code == FailureCode::Store
        && let Err(error) = store.ask_for_check()
    {
        tracing::warn!(%error, "the next start will not check the database");
    }
}

/// What the model was doing when its chat was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtEnd {
    /// Nothing: it has stopped.
    Stopped,
    /// It was being opened, which nobody waits for.
    Opening,
    /// It was cancelled, or closed, and did not stop in time.
    Stuck,
}

//! State of the actor, and its requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};

use store::{ChatId, Store};

use crate::actor::copying_chat::CopiedChat;
use crate::actor::counted::CountedBranch;
use crate::actor::model_slot::ModelSlot;
use crate::actor::undo_stack::UndoStack;
use crate::answers::Answers;
use crate::bin;
use crate::clock::Clock;
use crate::counting::CountRequest;
use crate::failure::{Failure, FailureCode};
use crate::importing::Importing;
use crate::job::{Job, Report};
use crate::settings::Settings;
use crate::stores::Stores;
use crate::timing::Timing;
use crate::upkeep::Upkeep;
use crate::view::ChatEvent;

/// Rows of the app's own state.
pub(super) const CURRENT: &str = "app.current";
pub(crate) const MODEL: &str = "app.model";
/// Row with the fingerprint of that model's file when it was last opened.
pub(super) const MODEL_CONTENT: &str = "app.model-content";

/// Requests to the actor.
pub(crate) enum Request {
    Verb(Box<dyn FnOnce(&mut ChatActor) + Send>),
    Report(Report),
    /// Closes the chat. The reply is sent when all is done.
    Quit(Option<Sender<AtEnd>>),
}

pub(crate) struct ChatActor {
    pub stores: Stores,
    pub(super) undo: UndoStack<ChatActor>,
    /// The import in progress.
    pub(super) import: Option<Importing>,
    /// Token that is cloned by each fork in progress and each chat that is being copied into the other store.
    pub(super) unfinished: Arc<()>,
    /// Chats that are being copied into the other store.
    pub(super) being_copied: Vec<Weak<ChatId>>,
    /// Copy for the change that is being undone or redone.
    pub(super) copied: Option<CopiedChat>,
    pub(super) clock: Box<dyn Clock>,
    pub(super) on_event: Box<dyn Fn(ChatEvent) + Send + Sync>,
    pub(super) jobs: Sender<Job>,
    /// Flag that ends idle work.
    pub(super) interrupt: Arc<AtomicBool>,
    /// The draft prefilled last.
    pub(super) ahead: Option<DraftAhead>,
    /// The draft to prefill when the model is idle.
    pub(super) ahead_next: Option<DraftAhead>,
    pub(super) settings: Settings,
    pub(super) model: ModelSlot,
    pub(super) answers: Answers,
    pub(super) counting: Sender<CountRequest>,
    pub(super) counted: Option<CountedBranch>,
    pub(super) timing: Timing,
    pub(super) upkeep: Upkeep,
    /// True once nothing more is stored: every verb fails.
    pub(crate) has_ended: bool,
    /// Sender for threads that report to the actor.
    pub(super) mailbox: Sender<Request>,
}

/// The draft of a message.
pub(crate) struct DraftAhead {
    pub(super) chat: Option<ChatId>,
    pub(super) text: String,
    pub(super) thinking: bool,
}

impl DraftAhead {
    /// Returns whether it continues `before`.
    pub(super) fn continues(&self, before: &DraftAhead) -> bool {
        self.chat == before.chat
            && self.thinking == before.thinking
            && self.text.starts_with(&before.text)
    }
}

impl ChatActor {
    pub(super) fn submit_job(&self, job: Job) {
        self.queue_job(job);
        // Set after the job was sent: the model thread clears the flag before it looks for a job.
        self.interrupt.store(true, Ordering::SeqCst);
    }

    /// Submits a job for which idle work is not interrupted.
    pub(super) fn queue_job(&self, job: Job) {
        if self.jobs.send(job).is_err() {
            tracing::error!("the model thread has ended");
        }
    }

    /// Handles a failure of the store.
    pub(crate) fn after_failure(&self, failure: &Failure) {
        check_if_failed(&self.stores.disk, failure);
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

    /// Returns the date of a deletion now.
    pub(super) fn deletion_date(&self) -> i64 {
        bin::deletion_date(&self.stores.disk, self.now())
    }
}

/// Requests a check at the next start: SQLite may have failed because the file is damaged.
pub(super) fn check_if_failed(store: &Store, failure: &Failure) {
    if failure.code == FailureCode::Store
        && let Err(error) = store.ask_for_check()
    {
        tracing::warn!(%error, "the next start will not check the database");
    }
}

/// State of the model when its chat was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtEnd {
    /// Nothing: it has stopped.
    Stopped,
    /// It was being opened, which is not waited for.
    Opening,
    /// It was cancelled, or closed, and did not stop in time.
    Stuck,
}

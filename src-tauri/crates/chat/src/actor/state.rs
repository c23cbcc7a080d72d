//! State of the actor, and its requests.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use store::Store;
use tools::Registry;

use crate::answers::AnswerQueue;
use crate::api::ApiJob;
use crate::bin;
use crate::clock::Clock;
use crate::context_counter::ContextCounter;
use crate::copies::Copies;
use crate::failure::{Failure, FailureCode};
use crate::importing::Importing;
use crate::job::{Job, JobQueue, Report};
use crate::model_slot::ModelSlot;
use crate::read_ahead::ReadAhead;
use crate::settings::Settings;
use crate::stores::Stores;
use crate::timing::Timing;
use crate::turn::TurnBuilder;
use crate::undo_stack::UndoStack;
use crate::upkeep::Upkeep;
use crate::view::ChatEvent;

/// Row of the open chat.
pub(super) const CURRENT: &str = "app.current";

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
    pub(super) copies: Copies,
    pub(super) clock: Box<dyn Clock>,
    pub(super) on_event: Box<dyn Fn(ChatEvent) + Send + Sync>,
    pub(crate) jobs: JobQueue,
    pub(super) ahead: ReadAhead,
    pub(super) settings: Settings,
    pub model: ModelSlot,
    pub answers: AnswerQueue,
    pub(super) context: ContextCounter,
    /// Requests of other programs, until a model is open.
    pub(super) api: Vec<ApiJob>,
    /// Shared by the requests of other programs that have not ended.
    pub(super) api_running: Arc<()>,
    pub(crate) tools: Arc<Registry>,
    pub(super) timing: Timing,
    pub(super) upkeep: Upkeep,
    /// True once nothing more is stored: every verb fails.
    pub(crate) has_ended: bool,
    /// Sender for threads that report to the actor.
    pub(super) mailbox: Sender<Request>,
}

impl ChatActor {
    /// Handles a failure of the store.
    pub(crate) fn after_failure(&self, failure: &Failure) {
        check_if_failed(&self.stores.disk, failure);
        if failure.code == FailureCode::DiskFull {
            self.jobs.queue(Job::MakeRoom);
        }
    }

    pub(super) fn emit(&self, event: ChatEvent) {
        (self.on_event)(event);
    }

    pub(super) fn now(&self) -> i64 {
        self.clock.now().timestamp().as_second()
    }

    /// Returns the builder of requests to the model; `None` if no model is open.
    pub(super) fn turns(&self) -> Option<TurnBuilder<'_>> {
        let today = self.clock.now().date();
        TurnBuilder::new(
            &self.stores,
            &self.settings,
            &self.model,
            &self.tools,
            today,
        )
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

//! The actor: the thread that owns the store and schedules the model. It routes verbs and reports to the parts beside this
//! folder, and emits events.

mod answering;
mod api;
mod calling;
mod chats;
mod copying;
mod drafting;
mod importing;
mod models;
mod organising;
mod preferences;
mod replacing;
mod state;
mod tree;
mod undo;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use jiff::civil::Date;
use store::{ChatId, Store};

pub use self::state::AtEnd;
pub(crate) use self::state::{ChatActor, Request};
pub(crate) use self::undo::TakenBack;
use crate::answers::AnswerQueue;
use crate::clock::Clock;
use crate::context_counter::ContextCounter;
use crate::copies::Copies;
use crate::failure::Failure;
use crate::job::{Job, JobQueue, Report};
use crate::model_host::{ModelChoice, ModelHost, NEW_CHAT};
use crate::model_slot::{self, ModelSlot, OpenReason};
use crate::model_thread::ModelThread;
use crate::read_ahead::ReadAhead;
use crate::settings::Settings;
use crate::stores::Stores;
use crate::timing::Timing;
use crate::undo_stack::UndoStack;
use crate::upkeep::Upkeep;
use crate::view::ChatEvent;
use crate::{counting, daily_copy};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs the actor. `model`: opened instead of the last model.
pub(crate) fn start(
    model: Option<ModelChoice>,
    store: Store,
    host: Box<dyn ModelHost>,
    clock: Box<dyn Clock>,
    timing: Timing,
    on_event: Box<dyn Fn(ChatEvent) + Send + Sync>,
) -> Result<Sender<Request>, Failure> {
    let (mailbox, requests) = channel();
    let (jobs, work) = channel();
    let settings = Settings::read(&store)?;
    let preempt = Arc::new(AtomicBool::new(false));
    let (counting, to_count) = channel();
    let actor = ChatActor {
        stores: Stores::new(store)?,
        undo: UndoStack::default(),
        import: None,
        copies: Copies::default(),
        clock,
        on_event,
        jobs: JobQueue::new(jobs, Arc::clone(&preempt)),
        ahead: ReadAhead::default(),
        settings,
        model: ModelSlot::default(),
        answers: AnswerQueue::new(timing.retry_after),
        context: ContextCounter::new(counting),
        api: Vec::new(),
        api_running: Arc::default(),
        tools: Arc::default(),
        timing,
        upkeep: Upkeep::new(timing),
        has_ended: false,
        mailbox: mailbox.clone(),
    };
    let (first_model, reason) = match model {
        Some(choice) => (choice, OpenReason::Given),
        None => (
            model_slot::remembered(&actor.stores.disk)?,
            OpenReason::Start,
        ),
    };

    let reports = mailbox.clone();
    let (running, model_ended) = channel();
    spawn("model", move || {
        // Dropped when the thread ends, for whatever reason.
        let _running: Sender<Infallible> = running;
        let report = |report| {
            // An error means that the actor has ended; then the jobs end too.
            let _ = reports.send(Request::Report(report));
        };
        ModelThread::new(host, timing.idle_after, &report).run(&work, &preempt);
    })?;
    spawn("counting", move || counting::run(&to_count))?;
    spawn("actor", move || actor.run(&requests, &model_ended))?;
    let first = Request::Verb(Box::new(move |actor| {
        actor.end_left_in_writing();
        actor.want(first_model, reason);
    }));
    // An error means that the actor has ended, which the first verb will notice.
    let _ = mailbox.send(first);
    Ok(mailbox)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let spawned = thread::Builder::new().name(name.into()).spawn(run);
    spawned
        .map(drop)
        .map_err(|error| Failure::other(format!("A thread could not be started: {error}")))
}

impl ChatActor {
    fn run(mut self, requests: &Receiver<Request>, model_ended: &Receiver<Infallible>) {
        let waits = loop {
            let request =
                match requests.recv_timeout(self.due().saturating_duration_since(Instant::now())) {
                    Ok(request) => Some(request),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break None,
                };
            if let Some(Request::Quit(waits)) = request {
                break waits;
            }
            let step = catch_unwind(AssertUnwindSafe(|| {
                match request {
                    Some(Request::Verb(verb)) => verb(&mut self),
                    Some(Request::Report(report)) => self.report(report),
                    Some(Request::Quit(_)) | None => {}
                }
                self.tick();
            }));
            if step.is_err() {
                tracing::error!("the actor panicked and goes on");
            }
        };
        let at_end = self.close(requests, model_ended);
        if let Some(waits) = waits {
            // An error means that the receiver is gone.
            let _ = waits.send(at_end);
        }
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Progress(progress) => {
                self.model.progress(progress);
                self.emit_model();
            }
            Report::Opened {
                result,
                open,
                counter,
            } => {
                let open = open.map(|info| *info);
                self.model.opened(result, open, counter, &self.stores.disk);
                self.emit_model();
            }
            Report::Truncated(run, truncation) => self.truncated(run, truncation),
            Report::Reading(run, reading) => self.reading(run, reading),
            Report::Token {
                run,
                id,
                text,
                kind,
                at,
            } => self.token(run, at, id, &text, kind),
            Report::Call {
                run,
                name,
                arguments,
                at,
            } => self.answers.call(run, at, &name, &arguments),
            Report::Called { run, result } => self.called(run, result),
            Report::Ended {
                run,
                result,
                panicked,
                open,
            } => {
                if self.model.moved(open.map(|info| *info)) {
                    self.emit_model();
                }
                self.ended(run, result, panicked);
            }
            Report::Titled { chat, title } => self.titled(chat, &title),
            Report::ApiEnded => self.model.touch(),
            Report::Panicked => self.reopen_model(),
        }
    }

    /// Does whatever is due, and gives the model its next jobs.
    fn tick(&mut self) {
        self.tick_answers();
        self.retry_unsaved();
        self.next_jobs();
        self.unload_if_idle();
        if self.answers.busy() {
            return;
        }
        if let Err(failure) = self.read_next_ahead() {
            // The chat may be gone by now.
            tracing::debug!(code = failure.code.name(), "a draft was not read ahead");
        }
        let today = self.clock.now().date();
        if self.may_purge()
            && let Some(purged) = self.upkeep.purge(&self.stores, self.now(), today)
        {
            self.undo.forget(&purged.gone);
            if let Some(changed) = purged.changed {
                self.retain_chats(&changed);
            }
        }
        self.upkeep.empty_wal(&self.stores.disk);
        self.upkeep.index(&self.stores.disk);
        // A copy would keep hidden rows that may not stay.
        if !self.copies.any() && self.upkeep.begin_copy(today) {
            self.copy_database(today);
        }
    }

    /// Returns whether a purge is safe: it would remove chats that are hidden while they are being written.
    fn may_purge(&self) -> bool {
        self.import.is_none() && !self.copies.any()
    }

    /// Erases the model thread's caches of purged chats, and of chats with `changed` messages.
    fn retain_chats(&self, changed: &BTreeSet<ChatId>) {
        match self.stores.ids_of_all() {
            Ok(mut chats) => {
                chats.retain(|chat| !changed.contains(chat));
                chats.push(NEW_CHAT);
                self.jobs.submit(Job::RetainChats(chats));
            }
            Err(error) => tracing::warn!(%error, "KV caches of purged chats were not erased"),
        }
    }

    /// Copies the database on a separate thread: a large file takes a while, and nobody should wait for it.
    fn copy_database(&self, today: Date) {
        let Some(path) = self.stores.disk.path().map(|path| path.to_owned()) else {
            return;
        };
        let mailbox = self.mailbox.clone();
        let copying = spawn("copy", move || {
            if let Some(error) = daily_copy::make(&path, today) {
                // An error means that the actor has ended.
                let _ = mailbox.send(Request::Verb(Box::new(move |actor| {
                    actor.emit(ChatEvent::CopyFailed { error });
                })));
            }
        });
        if let Err(error) = copying {
            tracing::warn!(%error, "the day's copy was not begun");
        }
    }

    fn due(&self) -> Instant {
        let idle = if self.answers.busy() {
            Instant::now() + DAY
        } else {
            let due = self.upkeep.due(self.may_purge(), !self.copies.any());
            due.fold(Instant::now() + DAY, Instant::min)
        };
        let others = [self.answers.due(), self.unload_due()];
        others.into_iter().flatten().fold(idle, Instant::min)
    }

    /// Starts the next jobs. An opening waits for the answers that have begun, and precedes the others: they are for the
    /// requested model.
    fn next_jobs(&mut self) {
        if self.model.opening() {
            return;
        }
        if self.answers.any_waiting() {
            self.reload_ejected();
        }
        if !self.model.changes() {
            self.begin_answers();
            self.begin_for_programs();
            return;
        }
        self.answers.withdraw();
        if !self.answers.busy() {
            self.open_wanted();
        }
    }

    /// Stops and saves the answers in progress, and ends the model thread.
    fn close(mut self, requests: &Receiver<Request>, model_ended: &Receiver<Infallible>) -> AtEnd {
        let mut at_end = AtEnd::Stopped;
        self.quit_answers();
        let deadline = Instant::now() + self.timing.close_within;
        while self.answers.busy() {
            match requests.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Request::Report(report)) => self.report(report),
                // A caller learns from the dropped reply that it is too late.
                Ok(_) => {}
                Err(_) => {
                    tracing::warn!("the model did not stop; what it has written is saved");
                    self.abandon_answers();
                    at_end = AtEnd::Stuck;
                }
            }
        }
        if self.answers.unsaved.due().is_some() {
            self.save_unsaved();
            self.answers.unsaved.log_what_is_lost();
        }
        // A model that is still loading has nothing to save, and need not be waited for.
        if self.model.opening() {
            at_end = AtEnd::Opening;
        }
        let limit = self.timing.close_within;
        let ChatActor { jobs, stores, .. } = self;
        drop(stores);
        jobs.close();
        // A driver may hang while the model is dropped.
        if at_end == AtEnd::Stopped
            && model_ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout)
        {
            tracing::warn!("the model did not close");
            at_end = AtEnd::Stuck;
        }
        at_end
    }
}

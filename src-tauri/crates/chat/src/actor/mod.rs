//! The actor: the thread that owns the store and schedules the model.

mod answering;
mod answers;
mod bin_clock;
mod context;
mod copying_chat;
mod counted;
mod daily;
mod folders;
mod forking;
mod importing;
mod model_slot;
mod opening;
mod order;
mod preferences;
mod presets;
mod reading_ahead;
mod replacing;
mod saving;
mod showing;
mod state;
mod summary;
mod temporary;
mod titling;
mod tree;
mod turn;
mod undo;
mod undo_stack;
mod unloading;
mod unsaved;
mod verbs;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use jiff::civil::Date;
use store::{ChatId, Copy, DatabaseCopy, Purged, Store, StoreError};

use self::answers::AnswerQueue;
pub(crate) use self::copying_chat::CopyingChat;
use self::daily::Daily;
use self::model_slot::ModelSlot;
pub use self::state::{AtEnd, Timing};
pub(crate) use self::state::{ChatActor, MODEL, Request};
pub(crate) use self::undo::TakenBack;
pub(crate) use self::undo_stack::Direction;
use self::undo_stack::UndoStack;
use self::unsaved::Unsaved;
use crate::clock::Clock;
use crate::counting;
use crate::failure::{Failure, FailureCode};
use crate::job::{Job, Report};
use crate::model_host::NEW_CHAT;
use crate::model_host::{ModelChoice, ModelHost};
use crate::model_thread;
use crate::settings::Settings;
use crate::view::ChatEvent;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Time limit of a step of the purge, which blocks the actor, and the pause before the next.
const PURGING: Duration = Duration::from_millis(50);
const PURGE_PAUSE: Duration = Duration::from_millis(200);
/// Time limit and pause for the indexing of messages.
const INDEXING: Duration = Duration::from_millis(50);
const INDEX_PAUSE: Duration = Duration::from_millis(50);
/// Multiple of the usual pause after which a failed purge is retried: as a rule the disk was full.
const PURGE_RETRY: u32 = 12;

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
    let interrupt = Arc::new(AtomicBool::new(false));
    let (counting, to_count) = channel();
    let actor = ChatActor {
        store,
        temporary: Store::temporary()?,
        undo: UndoStack::default(),
        import: None,
        unfinished: Arc::default(),
        being_copied: Vec::new(),
        copied: None,
        clock,
        on_event,
        jobs,
        interrupt: Arc::clone(&interrupt),
        ahead: None,
        ahead_next: None,
        settings,
        model: ModelSlot::default(),
        answers: AnswerQueue::default(),
        unsaved: Unsaved::default(),
        counting,
        counted: None,
        timing,
        purging: Daily::after(timing.purge_after),
        copying: Daily::after(timing.copy_after),
        index_due: Some(Instant::now() + timing.purge_after),
        has_ended: false,
        mailbox: mailbox.clone(),
    };
    let remembered = actor.remembered()?;

    let failed = |error| {
        Failure::new(
            FailureCode::Other,
            format!("A thread could not be started: {error}"),
        )
    };
    let reports = mailbox.clone();
    let model_thread = thread::Builder::new().name("model".into());
    let (running, model_ended) = channel();
    model_thread
        .spawn(move || {
            // Dropped when the thread ends, for whatever reason.
            let _running: Sender<Infallible> = running;
            model_thread::run(host, &work, &interrupt, timing.idle_after, &|report| {
                // An error means that the actor has ended; then the jobs end too.
                let _ = reports.send(Request::Report(report));
            });
        })
        .map_err(failed)?;
    let counting_thread = thread::Builder::new().name("counting".into());
    counting_thread
        .spawn(move || counting::run(&to_count))
        .map_err(failed)?;
    let actor_thread = thread::Builder::new().name("actor".into());
    actor_thread
        .spawn(move || actor.run(&requests, &model_ended))
        .map_err(failed)?;
    let first = Request::Verb(Box::new(move |actor| {
        actor.end_left_in_writing();
        actor.open_at_start(model, remembered);
    }));
    // An error means that the actor has ended, which the first verb will notice.
    let _ = mailbox.send(first);
    Ok(mailbox)
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
            Report::Progress(progress) => self.opening(progress),
            Report::Opened {
                result,
                open,
                counter,
            } => {
                self.model.counter = counter;
                self.opened(result, open.map(|info| *info));
            }
            Report::Truncated(truncation) => self.truncated(truncation),
            Report::Reading(reading) => self.reading(reading),
            Report::Token { id, text, part, at } => self.token(at, id, &text, part),
            Report::Ended {
                result,
                panicked,
                open,
            } => {
                self.moved(open.map(|info| *info));
                self.ended(result, panicked);
            }
            Report::Titled { chat, title } => self.titled(chat, &title),
            Report::IdleWorkPanicked => self.reopen_model(),
        }
    }

    /// Does whatever is due, and gives the model its next job.
    fn tick(&mut self) {
        self.tick_answer(false);
        self.retry_unsaved();
        self.next_job();
        self.unload_if_idle();
        if self.answers.busy() {
            return;
        }
        if let Err(failure) = self.read_next_ahead() {
            // The chat may be gone by now.
            tracing::debug!(code = failure.code.name(), "a draft was not read ahead");
        }
        let today = self.clock.now().date();
        if self.may_purge() && self.purging.is_due(today) {
            self.purge(today);
        }
        if self.index_due.is_some_and(|due| due <= Instant::now()) {
            self.index_older();
        }
        // A copy would keep hidden rows that may not stay.
        if !self.is_copying_chat() && self.copying.is_due(today) {
            self.copying.done_for(today);
            self.copy_database(today);
        }
    }

    /// Returns whether a purge is safe: it would remove chats that are hidden while they are being written.
    fn may_purge(&self) -> bool {
        self.import.is_none() && !self.is_copying_chat()
    }

    /// Returns whether a fork is in progress, or a temporary chat is being copied to the disk.
    pub(super) fn is_copying_chat(&self) -> bool {
        Arc::strong_count(&self.unfinished) > 1
    }

    /// Indexes some of the messages that the search lacks after an upgrade.
    fn index_older(&mut self) {
        let pause = match self.store.search().index_older(INDEXING) {
            Ok(true) => Some(INDEX_PAUSE),
            Ok(false) => None,
            // The disk may be full.
            Err(error) => {
                tracing::warn!(%error, "older messages were not indexed");
                Some(PURGE_RETRY * self.timing.retry_after)
            }
        };
        self.index_due = pause.map(|pause| Instant::now() + pause);
    }

    /// Purges some of the expired chats.
    fn purge(&mut self, today: Date) {
        match self.purge_some() {
            Ok(true) => self.purging = Daily::after(PURGE_PAUSE),
            Ok(false) => {
                self.retain_chats(&BTreeSet::new());
                if let Err(error) = self.store.compact() {
                    tracing::warn!(%error, "the file did not become smaller");
                }
                self.purging.done_for(today);
            }
            // With a full disk the chats can still be read.
            Err(error) => {
                tracing::warn!(%error, "what expired was not purged");
                self.retain_chats(&BTreeSet::new());
                self.purging = Daily::after(PURGE_RETRY * self.timing.retry_after);
            }
        }
    }

    /// Returns whether there is more.
    fn purge_some(&mut self) -> Result<bool, StoreError> {
        let (expired, in_memory) = (self.expired(), self.expired_in_memory());
        let gone = self.temporary.chats().deleted_before(in_memory)?;
        self.undo.forget(&gone);
        for (store, before) in [(&self.store, expired), (&self.temporary, in_memory)] {
            if store.chats().purge(before, PURGING)? {
                return Ok(true);
            }
            let Purged { chats, more } = store.messages().purge(before, PURGING)?;
            if !chats.is_empty() {
                self.retain_chats(&chats);
            }
            if more {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Erases the model thread's caches of purged chats, and of chats with `changed` messages.
    fn retain_chats(&self, changed: &BTreeSet<ChatId>) {
        match self.ids_of_all() {
            Ok(mut chats) => {
                chats.retain(|chat| !changed.contains(chat));
                chats.push(NEW_CHAT);
                self.submit_job(Job::RetainChats(chats));
            }
            Err(error) => tracing::warn!(%error, "KV caches of purged chats were not erased"),
        }
    }

    /// Copies the database on a separate thread: a large file takes a while, and nobody should wait for it.
    fn copy_database(&self, today: Date) {
        let Some(path) = self.store.path().map(Path::to_owned) else {
            return;
        };
        let day = today.to_string();
        let mailbox = self.mailbox.clone();
        let copy = move || {
            let problem = match store::daily_copy(&path, &day) {
                Ok(Copy::Refused(cause)) => damaged(&path, &cause),
                Ok(copy) => {
                    tracing::debug!(?copy, "the day's copy");
                    return;
                }
                Err(error) => not_copied(&error),
            };
            tracing::error!(%problem, "the day's copy was not made");
            // An error means that the actor has ended.
            let _ = mailbox.send(Request::Verb(Box::new(move |actor| {
                actor.emit(ChatEvent::CopyFailed { error: problem });
            })));
        };
        if let Err(error) = thread::Builder::new().name("copy".into()).spawn(copy) {
            tracing::warn!(%error, "the day's copy was not begun");
        }
    }

    fn due(&self) -> Instant {
        let idle = if self.answers.busy() {
            Instant::now() + DAY
        } else {
            let purge = self.may_purge().then(|| self.purging.due());
            let copy = (!self.is_copying_chat()).then(|| self.copying.due());
            let due = [purge, self.index_due, copy];
            due.into_iter()
                .flatten()
                .fold(Instant::now() + DAY, Instant::min)
        };
        let others = [self.answers.due(), self.unsaved.due(), self.unload_due()];
        others.into_iter().flatten().fold(idle, Instant::min)
    }

    /// Starts the next job. An opening precedes the queued answers: they are for the requested model.
    fn next_job(&mut self) {
        if self.model.opening() || self.answers.busy() {
            return;
        }
        if !self.answers.waiting.is_empty() && self.model.wanted.is_none() {
            self.reload_ejected();
        }
        if !self.open_wanted() {
            self.begin_next_answer();
        }
    }

    /// Stops and saves the answer in progress, and ends the model thread.
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
                    tracing::warn!("the model did not stop; its partial answer is saved");
                    self.abandon_answer();
                    at_end = AtEnd::Stuck;
                }
            }
        }
        if self.unsaved.due().is_some() {
            self.save_unsaved();
            self.unsaved.log_what_is_lost();
        }
        // A model that is still loading has nothing to save, and need not be waited for.
        if self.model.opening() {
            at_end = AtEnd::Opening;
        }
        let limit = self.timing.close_within;
        let interrupt = Arc::clone(&self.interrupt);
        drop(self);
        // After the jobs have ended: the model thread clears the flag before it looks for one.
        interrupt.store(true, Ordering::SeqCst);
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

fn damaged(database: &Path, cause: &str) -> Failure {
    tracing::error!(cause, "the database is damaged");
    let offer = match store::good_copies(database).into_iter().next() {
        Some(copy) => format!("it offers to restore {}", name_of(&copy)),
        None => "there is no earlier copy, and it offers to begin with an empty file".to_owned(),
    };
    Failure::new(
        FailureCode::Store,
        format!(
            "The file with your chats is damaged, so no copy of it was made today. Save what you need from \
             the chats that still open, then start Goldcrest again: {offer}. The damaged file is {}.",
            database.display()
        ),
    )
}

/// Returns the name under which the window offers it.
fn name_of(copy: &DatabaseCopy) -> String {
    let day = copy.day.as_deref().and_then(|day| day.parse::<Date>().ok());
    match day {
        Some(day) => format!("the copy of {}", day.strftime("%-d %B %Y")),
        None => "the copy made before the last update".to_owned(),
    }
}

fn not_copied(error: &StoreError) -> Failure {
    let cause = match error {
        StoreError::DiskFull => {
            "the disk is full. Make some room; it will be tried again tomorrow".to_owned()
        }
        error => error.to_string(),
    };
    Failure::new(
        FailureCode::Store,
        format!(
            "Today’s copy of your chats could not be made: {}.",
            cause.trim_end_matches('.')
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_was_not_made_says_why_and_what_comes() {
        let full = not_copied(&StoreError::DiskFull).message;
        assert_eq!(
            full,
            "Today’s copy of your chats could not be made: the disk is full. Make some room; it will be tried again \
             tomorrow."
        );
        let missing = not_copied(&StoreError::NotFound("chat")).message;
        assert!(missing.ends_with("does not exist any more."), "{missing}");
    }
}

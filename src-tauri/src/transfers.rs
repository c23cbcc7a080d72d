//! Long-running transfers of the user's data: an export, an import, a move of the data folder. One at a time, each on a
//! separate thread, with progress and cancellation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use app::data_folder::Move;
use app::exporting::{ChatsAtOnce, Export, check_place, too_large};
use app::folders::{self, Folders};
use app::importing::{self, count};
use app::models::Models;
use app::wire::{ChatTransfer, ShellEvent, TransferKind, TransferState};
use chat::{Chat, Failure};

use crate::desktop::Desktop;
use crate::events::Events;

/// Minimum interval between progress events.
const PAUSE: Duration = Duration::from_millis(100);

/// The running transfer, if any, and the files that were exported.
#[derive(Clone, Default)]
pub struct Transfers {
    /// Cancel flag of the running transfer.
    running: Arc<Mutex<Option<Arc<AtomicBool>>>>,
    /// Files that were exported since the start of the app.
    exported: Arc<Mutex<Vec<PathBuf>>>,
}

impl Transfers {
    /// Starts a transfer, which ends in the state that `work` returns; `None` if it was cancelled.
    pub fn start(
        &self,
        kind: TransferKind,
        events: &Events,
        work: impl FnOnce(&mut TransferProgress) -> Result<Option<TransferState>, Failure>
        + Send
        + 'static,
    ) -> Result<(), Failure> {
        let cancel = Arc::new(AtomicBool::new(false));
        let mut running = self.running();
        if running.is_some() {
            return Err(still_running());
        }
        let mut progress = TransferProgress {
            kind,
            events: events.clone(),
            cancel: Arc::clone(&cancel),
            next: Instant::now(),
        };
        progress.send(TransferState::Running { done: 0.0 });
        let transfers = self.clone();
        let run = move || {
            // After a panic, too, another one can be started.
            let worked = catch_unwind(AssertUnwindSafe(|| work(&mut progress)));
            let state = match worked.unwrap_or_else(|_| Err(panicked(kind))) {
                Ok(Some(state)) => state,
                Ok(None) => TransferState::Cancelled,
                Err(failure) => {
                    match kind {
                        TransferKind::Move => tracing::warn!(%failure, "a move failed"),
                        // The message may quote a chat: a title, or a part of a file.
                        _ => tracing::warn!(?kind, code = ?failure.code, "failed"),
                    }
                    let message = failure.message;
                    TransferState::Failed { message }
                }
            };
            *transfers.running() = None;
            progress.send(state);
        };
        let thread = thread::Builder::new().name("transfer".into()).spawn(run);
        thread
            .map_err(|error| Failure::other(format!("A thread could not be started: {error}")))?;
        *running = Some(cancel);
        Ok(())
    }

    /// Starts an import.
    pub fn import(&self, chat: &Chat, events: &Events, files: Vec<PathBuf>) -> Result<(), Failure> {
        let chat = chat.clone();
        self.start(TransferKind::Import, events, move |progress| {
            let done = &mut |done, total| progress.at(done, total);
            let imported = importing::into_app(&chat, &files, done)?;
            Ok(imported.map(TransferState::Imported))
        })
    }

    /// Starts an import of dropped files. Nobody waits for the reply: a failure to start is reported by an event.
    pub fn import_dropped(&self, chat: Option<&Chat>, events: &Events, files: Vec<PathBuf>) {
        let begun = match chat {
            Some(chat) => self.import(chat, events, files),
            None => Err(Failure::other(
                "Your chats are still being opened. Drop the files again in a moment.",
            )),
        };
        if let Err(failure) = begun {
            tracing::warn!(code = ?failure.code, "the chats that were dropped are not imported");
            let message = failure.message;
            let state = TransferState::Refused { message };
            send(events, TransferKind::Import, state);
        }
    }

    /// Starts an export.
    pub fn export(
        &self,
        chat: &Chat,
        events: &Events,
        folders: &Folders,
        export: Export,
        file: PathBuf,
    ) -> Result<(), Failure> {
        check_place(&file, folders)?;
        let (chat, database) = (chat.clone(), folders.database());
        let exported = Arc::clone(&self.exported);
        self.start(TransferKind::Export, events, move |progress| {
            let chats = ChatsAtOnce::of(&chat, &database, export.chats.as_deref())?;
            let done = &mut |done, total| progress.at(done, total);
            let Some(written) = export.to_file(&chats, &file, done)? else {
                return Ok(None);
            };
            let name = file.to_string_lossy().into_owned();
            lock(&exported).push(file);
            Ok(Some(TransferState::Exported {
                file: name,
                chats: count(written.chats),
                note: too_large(&written),
            }))
        })
    }

    /// Returns the path of a file that was exported, by the name that the page has: no other file is shown to the
    /// person at the page's request.
    pub fn exported(&self, name: &str) -> Result<PathBuf, Failure> {
        let exported = lock(&self.exported);
        let file = exported.iter().find(|file| file.to_string_lossy() == name);
        file.cloned()
            .ok_or_else(|| Failure::other("This file was not exported by Goldcrest."))
    }

    /// Runs `act` while no transfer does; an error if one is running.
    pub fn between<T>(&self, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        struct Slot<'t>(&'t Transfers);
        impl Drop for Slot<'_> {
            fn drop(&mut self) {
                *self.0.running() = None;
            }
        }
        let mut running = self.running();
        if running.is_some() {
            return Err(still_running());
        }
        *running = Some(Arc::default());
        drop(running);
        let _slot = Slot(self);
        act()
    }

    /// Starts a move of the data folder, at whose end the app restarts. Downloads into it are paused; it waits for an
    /// answer in progress after everything else is copied.
    pub fn move_data(
        &self,
        chat: &Chat,
        models: &Models,
        events: &Events,
        desktop: Arc<dyn Desktop>,
        database: &Path,
        plan: Move,
    ) -> Result<(), Failure> {
        let pointer = folders::pointer().ok_or_else(|| {
            Failure::other("No home folder was found, so the move could not be kept.")
        })?;
        let name = database.file_name().unwrap_or_default().to_owned();
        // Checked before everything is copied.
        chat.may_leave_store()?;
        let (chat, models) = (chat.clone(), models.clone());
        self.start(TransferKind::Move, events, move |progress| {
            let held = models.hold_downloads(plan.from(), &mut || progress.at(0, 1))?;
            let Some(_held) = held else {
                return Ok(None);
            };
            let done = &mut |done, total| progress.at(done, total);
            if !plan.copy_others(&name, done)? {
                return Ok(None);
            }
            // Dropped on this thread: the removal may take long.
            let plan = Arc::new(plan);
            let copying = Arc::clone(&plan);
            let copy = move |_: &Path| copying.copy_database(&name, &pointer);
            if !chat.leave_store(copy, &mut || progress.at(1, 1))? {
                return Ok(None);
            }
            desktop.restart();
            Ok(Some(TransferState::Moved))
        })
    }

    /// Cancels the running transfer, if any.
    pub fn cancel(&self) {
        if let Some(cancel) = self.running().as_ref() {
            cancel.store(true, Ordering::Relaxed);
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Arc<AtomicBool>>> {
        lock(&self.running)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn still_running() -> Failure {
    Failure::other(
        "Another export, import or move is still running. Wait until it is done, or cancel it.",
    )
}

/// Makes the failure after a panic, whose message is in the log.
fn panicked(kind: TransferKind) -> Failure {
    let what = match kind {
        TransferKind::Export => "export",
        TransferKind::Import => "import",
        TransferKind::Move => "move",
    };
    Failure::other(format!(
        "The {what} failed unexpectedly. The log file says more."
    ))
}

/// Reports progress to the page.
pub struct TransferProgress {
    kind: TransferKind,
    events: Events,
    cancel: Arc<AtomicBool>,
    next: Instant,
}

impl TransferProgress {
    /// Reports `done` of `total`. Returns whether to go on.
    pub fn at(&mut self, done: u64, total: u64) -> bool {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + PAUSE;
            let done = if total == 0 {
                0.0
            } else {
                done as f64 / total as f64
            };
            self.send(TransferState::Running { done });
        }
        !self.cancel.load(Ordering::Relaxed)
    }

    fn send(&self, state: TransferState) {
        send(&self.events, self.kind, state);
    }
}

fn send(events: &Events, kind: TransferKind, state: TransferState) {
    let transfer = ChatTransfer { kind, state };
    events.send(ShellEvent::Transfer { transfer });
}

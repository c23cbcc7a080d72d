//! Files that the desktop passes to the app: models as arguments, by a second start, by a drop or, on macOS, as an
//! event; chats by a drop.
//!
//! At the start a given model replaces the last one, which is opened if the given one does not open.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chat::{Chat, ModelChoice};
use models::{is_gguf, model_among};
use tauri::{AppHandle, Manager, Runtime};

use crate::events::Events;
use crate::transfers::Transfers;

/// File to open once the chats are open.
#[derive(Default)]
pub struct GivenFile(Mutex<Option<PathBuf>>);

impl GivenFile {
    /// Takes the file to open among the app's arguments.
    pub fn of(files: Vec<PathBuf>) -> Self {
        Self(Mutex::new(model_among(files)))
    }

    /// Takes the pending file.
    pub fn take(&self) -> Option<PathBuf> {
        self.lock().take()
    }

    /// Sets the pending file, replacing an earlier one.
    pub fn put(&self, file: PathBuf) {
        *self.lock() = Some(file);
    }

    fn lock(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a model file in the running app, or once the chats are open.
pub fn open<R: Runtime>(app: &AppHandle<R>, files: Vec<PathBuf>) {
    let Some(file) = model_among(files) else {
        return;
    };
    app.state::<GivenFile>().put(file);
    if let Some(chat) = app.try_state::<Chat>() {
        open_waiting(app, &chat);
    }
}

/// Handles a drop on the window: imports chats, and opens a model among the other files.
pub fn take_drop<R: Runtime>(app: &AppHandle<R>, files: Vec<PathBuf>) {
    let (chats, models): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| may_have_chats(file));
    // Beside chats, another file is a model only by its extension.
    if chats.is_empty() || models.iter().any(|file| is_gguf(file)) {
        open(app, models);
    }
    if !chats.is_empty() {
        let (chat, events) = (app.try_state::<Chat>(), app.state::<Events>());
        let transfers = app.state::<Transfers>();
        transfers.import_dropped(chat.as_deref(), &events, chats);
    }
}

/// Returns whether a file has the extension of an export, or is a folder.
fn may_have_chats(file: &Path) -> bool {
    let is_named = |known: &str| {
        let extension = file.extension();
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case(known))
    };
    ["json", "jsonl", "zip"].into_iter().any(is_named) || file.is_dir()
}

/// Opens the file that came while the chats were being opened.
pub fn open_waiting<R: Runtime>(app: &AppHandle<R>, chat: &Chat) {
    let Some(file) = app.state::<GivenFile>().take() else {
        return;
    };
    if let Err(error) = chat.open_model(ModelChoice::File(file)) {
        tracing::warn!("could not open the given file: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_known_by_their_names() {
        for name in ["a.json", "A.JSONL", "b.zip", "."] {
            assert!(may_have_chats(Path::new(name)), "{name}");
        }
        for name in ["a.gguf", "b.txt", "c"] {
            assert!(!may_have_chats(Path::new(name)), "{name}");
        }
    }
}

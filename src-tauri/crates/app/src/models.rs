//! The models page: one thread owns the list of models and their downloads; slow work runs on others.
//!
//! A command is a closure that the owner runs. Results of slow work come back to it in the same way, so that its state
//! is never locked.
//!
//! Facts about files are in `models.json` and unfinished downloads in `downloads.json`, not in the store: the owner
//! writes both, and `goldcrest models` reads the facts without opening the chats.

mod downloading;
mod downloads;
mod hashing;
mod library;
mod mailbox;
mod places;
mod removal;
mod verifying;

#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use ::models::ModelList;
use chat::{Chat, ChatEvent, Failure, ModelChoice, Settings};

use crate::wire::ShellEvent;
use library::Library;
use mailbox::{Inbox, Mailbox, NoOwner};
use removal::files_behind;

pub use downloads::{DOWNLOADS_FILE, relocate as relocate_downloads};
pub use places::{ModelPlaces, machine_name, settings_name};

/// Polling interval for the end of held downloads.
const PAUSE: Duration = Duration::from_millis(50);

/// Handle to the owner. Clones share it.
#[derive(Clone)]
pub struct Models(Mailbox<Library>);

/// Guard that holds the downloads into a folder until it is dropped.
pub struct HeldDownloads(Mailbox<Library>);

impl Drop for HeldDownloads {
    fn drop(&mut self) {
        self.0.tell(|library| library.hold(None));
    }
}

/// Inbox of an owner that is not started yet: requests that are sent before are not lost.
pub struct ModelsInbox(Inbox<Library>);

impl Models {
    /// Makes a handle, and the inbox with which its owner is started.
    pub fn new() -> (Self, ModelsInbox) {
        let (mailbox, inbox) = Mailbox::new();
        (Self(mailbox), ModelsInbox(inbox))
    }

    /// Handles chat's events about the open model, and the speed of its answers.
    pub fn observe(&self, event: &ChatEvent) {
        match event {
            ChatEvent::Model { model } => {
                let status = model.status.clone();
                self.0.tell(move |library| library.model_changed(status));
            }
            ChatEvent::Ended { message, .. } => {
                if let Some(stats) = message.stats.clone() {
                    self.0.tell(move |library| library.answered(&stats));
                }
            }
            _ => {}
        }
    }

    /// Passes on saved settings.
    pub fn settings_changed(&self, settings: Settings) {
        self.0
            .tell(move |library| library.settings_changed(settings));
    }

    /// Returns the present list; folders are searched again, which ends in an event.
    pub fn list(&self) -> Result<ModelList, Failure> {
        self.ask(Library::list)
    }

    /// Starts or resumes the download of an entry.
    pub fn get(&self, id: String) -> Result<(), Failure> {
        self.ask(move |library| library.get(&id))?
    }

    /// Starts the download of a typed address.
    pub fn get_address(&self, url: String) -> Result<(), Failure> {
        self.ask(move |library| library.get_address(&url))?
    }

    /// Pauses a download.
    pub fn pause(&self, id: String) -> Result<(), Failure> {
        self.ask(move |library| library.pause(&id))
    }

    /// Stops a download and deletes the partial file.
    pub fn drop_download(&self, id: String) -> Result<(), Failure> {
        self.ask(move |library| library.drop_download(&id))
    }

    /// Pauses the downloads into a folder and its subfolders, and starts none there. Returns once they have ended, as
    /// long as `waits` returns true.
    pub fn hold_downloads(
        &self,
        folder: &Path,
        waits: &mut dyn FnMut() -> bool,
    ) -> Result<Option<HeldDownloads>, Failure> {
        let held = HeldDownloads(self.0.clone());
        let folder = folder.to_owned();
        self.ask(move |library| library.hold(Some(folder)))?;
        while self.ask(|library| library.writes_into_held())? {
            if !waits() {
                return Ok(None);
            }
            thread::sleep(PAUSE);
        }
        Ok(Some(held))
    }

    /// Returns the choice for opening an entry.
    pub fn choice(&self, id: String) -> Result<ModelChoice, Failure> {
        self.ask(move |library| library.choice(&id))?
    }

    /// Returns the file of an entry.
    pub fn file(&self, id: String) -> Result<PathBuf, Failure> {
        self.ask(move |library| library.file(&id))?
    }

    /// Returns the file of an entry that may be removed, with all paths to it.
    pub fn removable(&self, id: String) -> Result<Vec<PathBuf>, Failure> {
        let file = self.ask(move |library| library.removable(&id))??;
        let files = files_behind(&file).map_err(|error| {
            Failure::other(format!("{} cannot be found: {error}.", file.display()))
        })?;
        let real = |path: &PathBuf| path.canonicalize().ok();
        let used = self.ask(|library| library.file_in_use())?;
        let used = used.as_ref().and_then(real);
        if used.is_some() && files.iter().any(|file| real(file) == used) {
            let refused = "This model is in use. Open another one first; then remove it.";
            return Err(Failure::other(refused));
        }
        Ok(files)
    }

    /// Searches folders again after files were removed, which ends in an event.
    pub fn files_removed(&self) {
        self.0.tell(Library::scan);
    }

    /// Returns the initial folder of the dialog for a download folder.
    pub fn download_folder(&self) -> Result<PathBuf, Failure> {
        self.ask(|library| library.download_folder())
    }

    fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut Library) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let gone =
            |NoOwner| Failure::other("The list of models has failed. Please restart Goldcrest.");
        self.0.ask(request).map_err(gone)
    }
}

impl ModelsInbox {
    /// Starts the owner, which lives as long as the app.
    ///
    /// # Errors
    /// Fails if the system has no thread for it.
    pub fn start(
        self,
        models: &Models,
        chat: &Chat,
        settings: Settings,
        places: ModelPlaces,
        on_event: impl Fn(ShellEvent) + Send + 'static,
    ) -> io::Result<()> {
        let (mailbox, chat) = (models.0.clone(), chat.clone());
        let owner = thread::Builder::new().name("models-owner".to_owned());
        owner.spawn(move || {
            let mut library = Library::new(mailbox, chat, settings, places, Box::new(on_event));
            library.restore_downloads();
            self.0.serve(library);
        })?;
        Ok(())
    }
}

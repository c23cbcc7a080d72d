//! Replacement of the store's file without a restart.

use std::path::{Path, PathBuf};

use store::{Store, StoreError};

use crate::actor::state::ChatActor;
use crate::answers::unsaved::Unsaved;
use crate::failure::Failure;
use crate::read_ahead::ReadAhead;
use crate::settings::Settings;
use crate::undo_stack::UndoStack;

impl ChatActor {
    /// Replaces the store's file with the prepared copy, and continues with it. Returns the path to which the former
    /// file was moved. If the copy cannot be used, that file is restored.
    pub(crate) fn take_copy(&mut self) -> Result<PathBuf, Failure> {
        let day = self.clock.now().date().to_string();
        let mut aside = None;
        let taken = self.with_store_closed(|path| {
            aside = Some(store::name_aside(path, &day));
            let kept = store::take_prepared(path, &day)?;
            let opened = Store::open(path).map_err(Failure::from);
            match opened.and_then(|store| Ok((Settings::read(&store)?, store))) {
                Ok((settings, store)) => Ok((kept, settings, store)),
                Err(failure) => {
                    store::put_back(path, &kept)?;
                    Err(failure)
                }
            }
        });
        let (kept, settings) = match (taken, aside) {
            (Ok((kept, settings, store)), _) => {
                self.stores.disk = store;
                (kept, settings)
            }
            // The former file could not be restored, and the copy has been opened instead.
            (Err(_), Some(kept)) if !self.has_ended && kept.exists() => {
                let settings = Settings::read(&self.stores.disk).inspect_err(|_| self.end())?;
                (kept, settings)
            }
            (Err(failure), _) => return Err(failure),
        };
        self.begin_again(settings);
        Ok(kept)
    }

    /// Copies the store's file to another place by `copy`, while nobody writes to it. If that succeeds, the actor ends:
    /// later writes belong there.
    pub(crate) fn leave_store(
        &mut self,
        copy: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.with_store_closed(copy)?;
        self.end();
        Ok(())
    }

    /// Returns an error while an answer is written, an import runs, or a chat is copied.
    pub(crate) fn may_leave_store(&self) -> Result<(), Failure> {
        if !self.answers.is_empty() {
            return Err(Failure::busy());
        }
        if self.import.is_some() {
            return Err(Failure::other("An import is still running."));
        }
        if self.copies.any() {
            return Err(Failure::other(
                "A chat is still being copied. Try again in a moment.",
            ));
        }
        Ok(())
    }

    /// Closes the store, which merges its WAL into its file, while `act` runs. After an error it is reopened; otherwise
    /// that is left to the caller.
    fn with_store_closed<T, E: Into<Failure>>(
        &mut self,
        act: impl FnOnce(&Path) -> Result<T, E>,
    ) -> Result<T, Failure> {
        self.may_leave_store()?;
        let path = self
            .stores
            .disk
            .path()
            .ok_or(StoreError::NotFound("file"))?
            .to_owned();
        if self.answers.unsaved.due().is_some() {
            self.save_unsaved();
        }
        drop(std::mem::replace(
            &mut self.stores.disk,
            Store::in_memory()?,
        ));
        let acted = act(&path).map_err(Into::into);
        if acted.is_err() {
            match Store::open(&path) {
                Ok(store) => self.stores.disk = store,
                Err(error) => {
                    tracing::error!(%error, "the store does not open again");
                    self.end();
                }
            }
        }
        acted
    }

    /// Ends the actor: later writes would be lost.
    fn end(&mut self) {
        self.has_ended = true;
        // An error means that it has ended already.
        let _ = self.mailbox.send(crate::actor::Request::Quit(None));
    }

    /// Resets the state that belongs to the former file.
    fn begin_again(&mut self, settings: Settings) {
        self.undo = UndoStack::default();
        self.answers.unsaved = Unsaved::new(self.timing.retry_after);
        self.ahead = ReadAhead::default();
        // Its messages reuse the ids of others.
        self.context.forget();
        let before = std::mem::replace(&mut self.settings, settings);
        if before.load_options() != self.settings.load_options() {
            self.reopen_model();
        }
        self.upkeep.begin_again();
    }
}

//! An import in parts that are handed to the actor, so that others are served.

use std::time::Duration;

use store::{FolderRecord, PresetRecord, WholeChat};

use crate::failure::{Failure, nothing_imported};
use crate::handle::Chat;
use crate::importing::ImportCounts;

/// Time limit of a write, which blocks the actor.
const WRITING: Duration = Duration::from_millis(30);

/// An import in progress. Its chats appear together: if it is dropped before [`RunningImport::finish`], it leaves
/// nothing.
pub struct RunningImport {
    chat: Chat,
    is_over: bool,
}

impl RunningImport {
    /// Begins an import. Only one can run at a time.
    pub fn begin(chat: &Chat) -> Result<RunningImport, Failure> {
        chat.ask(|actor| actor.begin_import())?;
        Ok(RunningImport {
            chat: chat.clone(),
            is_over: false,
        })
    }

    /// Adds a chat. Occupies the actor for short times only, so that it serves others in between.
    pub fn add(&mut self, whole: WholeChat) -> Result<(), Failure> {
        let is_enough = self.chat.ask(move |actor| {
            let (import, store) = actor.import()?;
            import.add(store, whole).map_err(nothing_imported)
        });
        if is_enough? {
            self.write()?;
        }
        Ok(())
    }

    /// Adds a folder, unless there is one of its name.
    pub fn add_folder(&mut self, folder: FolderRecord) -> Result<(), Failure> {
        self.chat.ask(move |actor| {
            actor.import()?.0.add_folder(folder);
            Ok(())
        })
    }

    /// Adds a preset, unless there is an equal one.
    pub fn add_preset(&mut self, preset: PresetRecord) -> Result<(), Failure> {
        self.chat.ask(move |actor| {
            actor.import()?.0.add_preset(preset);
            Ok(())
        })
    }

    /// Publishes all chats. One undo moves all of them to the bin.
    pub fn finish(mut self) -> Result<ImportCounts, Failure> {
        self.write()?;
        let counts = self.chat.ask(|actor| actor.end_import());
        self.is_over = counts.is_ok();
        counts
    }

    fn write(&self) -> Result<(), Failure> {
        while !self.chat.ask(|actor| {
            let (import, store) = actor.import()?;
            import.write(store, WRITING).map_err(nothing_imported)
        })? {}
        Ok(())
    }
}

impl Drop for RunningImport {
    fn drop(&mut self) {
        if !self.is_over {
            // An error means that the actor has ended; its next start removes hidden chats.
            let _ = self.chat.ask(|actor| {
                actor.drop_import();
                Ok(())
            });
        }
    }
}

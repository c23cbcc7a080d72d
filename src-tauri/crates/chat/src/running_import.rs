//! An import beside the work of others: a part at a time is handed to the actor.

use store::{FolderRecord, PresetRecord, WholeChat};

use crate::failure::Failure;
use crate::handle::Chat;
use crate::importing::ImportCounts;

/// Chats that are being imported. They are there when all are: dropped before [`RunningImport::finish`], it leaves nothing.
pub struct RunningImport {
    chat: Chat,
    is_over: bool,
}

impl RunningImport {
    /// Begins an import, of which there is one at a time.
    pub fn begin(chat: &Chat) -> Result<RunningImport, Failure> {
        chat.ask(|actor| actor.begin_import())?;
        Ok(RunningImport {
            chat: chat.clone(),
            is_over: false,
        })
    }

    /// Adds a chat. The actor is asked for a short time again and again, so that it serves others meanwhile.
    pub fn add(&mut self, whole: WholeChat) -> Result<(), Failure> {
        if self.chat.ask(move |actor| actor.import_chat(whole))? {
            self.write()?;
        }
        Ok(())
    }

    /// Adds a folder, unless there is one of its name.
    pub fn add_folder(&mut self, folder: FolderRecord) -> Result<(), Failure> {
        self.chat.ask(move |actor| actor.import_folder(folder))
    }

    /// Adds a preset, unless there is one that is the same.
    pub fn add_preset(&mut self, preset: PresetRecord) -> Result<(), Failure> {
        self.chat.ask(move |actor| actor.import_preset(preset))
    }

    /// Shows all chats. One undo takes all of them to the bin.
    pub fn finish(mut self) -> Result<ImportCounts, Failure> {
        self.write()?;
        let counts = self.chat.ask(|actor| actor.end_import());
        self.is_over = counts.is_ok();
        counts
    }

    fn write(&self) -> Result<(), Failure> {
        while !self.chat.ask(|actor| actor.write_import())? {}
        Ok(())
    }
}

impl Drop for RunningImport {
    fn drop(&mut self) {
        if !self.is_over {
            // An error means that the actor has ended, and its next start removes what is hidden.
            let _ = self.chat.ask(|actor| {
                actor.drop_import();
                Ok(())
            });
        }
    }
}

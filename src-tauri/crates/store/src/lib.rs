//! Goldcrest's chats in one SQLite file. This is the only crate that names rusqlite.
//!
//! A table is a module of [`table`], with its schema steps, its row, its reads and its writes. [`Store`] opens the file
//! and gives access to the tables. Times are Unix seconds and come from the caller: nothing here reads a clock.

#![warn(missing_docs)]

mod chat_copy;
mod connect;
mod copies;
mod deadline;
mod error;
#[cfg(feature = "faults")]
pub mod faults;
mod files;
mod integrity;
mod migrate;
mod open;
mod preflight;
mod read_only;
mod record;
mod records;
mod recovery;
#[cfg(feature = "faults")]
mod rename_faults;
mod room;
mod schema;
mod snapshot;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use deadline::Deadline;
use table::id::FIRST_TEMPORARY;

pub use chat_copy::ChatCopy;
pub use copies::{
    Copy, CopyReason, DatabaseCopy, back_up, daily_copy, good as good_copies,
    listed as listed_copies, remove_copy,
};
pub use error::StoreError;
pub use inference::{Part, Parts, Role, ToolOutcome};
pub use integrity::{check, forget_check};
pub use open::has_room;
pub use read_only::read_presets;
pub use record::{
    ChatRecord, ChosenPreset, FolderRecord, MessagePlace, MessageRecord, PresetRecord, WholeChat,
    later_uid,
};
pub use records::{ChatHere, ChatRecords, ImportedNames, IncomingChat, WrittenChat};
pub use recovery::{
    drop_prepared, name_aside, prepare_copy, put_back, restore_copy, start_empty, take_prepared,
};
pub use snapshot::StoreSnapshot;
pub use table::chat::{ChatField, ChatRow, ChatTable, ChatValues};
pub use table::deleted::{DeletedMessage, Purged};
pub use table::draft::{Draft, DraftPlace, DraftTable, QueuedMessage};
pub use table::folder::{FolderRow, FolderTable};
pub use table::id::{ChatId, FolderId, MessageId, PresetId};
pub use table::message::{
    ErrorRow, LengthWish, MessageRow, MessageState, MessageTable, NewMessage, OmittedRow, Progress,
};
pub use table::preset::{ChatPreset, PresetRow, PresetTable};
pub use table::search::{ChatHits, PartKind, Search, SearchAnswer, SearchHit};
pub use table::setting::SettingTable;
pub use table::window::{WindowRow, WindowTable};

/// Time in which an opening may index the messages that the search lacks: all of a small file, after an upgrade.
const INDEXED_AT_ONCE: Duration = Duration::from_millis(250);

/// The open database: one connection, the only writer.
pub struct Store {
    db: Connection,
    deadline: Deadline,
    path: Option<PathBuf>,
}

impl Store {
    /// Opens or creates the file; migrates an older one after making a copy of it.
    ///
    /// Answers that were being written when the last process ended become [`MessageState::Interrupted`]; if that cannot
    /// be written they stay as they are, and the chats can be read. A file that is damaged, foreign or of a newer
    /// version is an error, and is not changed; so is one that is missing although copies of it exist. The file and its
    /// folder become private to the user.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        let (db, deadline) = open::file(path)?;
        let store = Store {
            db,
            deadline,
            path: Some(path.to_owned()),
        };
        let interrupted = store.messages().interrupt_writing();
        let indexed = store.search().index_older(INDEXED_AT_ONCE);
        match interrupted
            .and(indexed)
            .map_err(|error| open::explain(path, error))
        {
            Err(damaged @ StoreError::Damaged { .. }) => Err(damaged),
            // The disk may be full.
            _ => Ok(store),
        }
    }

    /// Opens a store in memory for temporary chats: their ids, and those of their messages, are in a separate range.
    pub fn temporary() -> Result<Store, StoreError> {
        let store = Store::in_memory()?;
        for table in ["chat", "message"] {
            store.db.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
                (table, FIRST_TEMPORARY - 1),
            )?;
        }
        Ok(store)
    }

    /// Opens a store in memory.
    pub fn in_memory() -> Result<Store, StoreError> {
        let (db, deadline) = open::memory()?;
        let store = Store {
            db,
            deadline,
            path: None,
        };
        store.search().index_older(INDEXED_AT_ONCE)?;
        Ok(store)
    }

    /// Returns the file; `None` in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Makes the next [`Store::open`] check the whole file, and fail if it is damaged. A file beside the database
    /// stores the request.
    pub fn ask_for_check(&self) -> Result<(), StoreError> {
        match &self.path {
            Some(path) => integrity::ask_for_check(path),
            None => Ok(()),
        }
    }

    /// Returns the table of chats.
    pub fn chats(&self) -> ChatTable<'_> {
        ChatTable { db: &self.db }
    }

    /// Returns the table of folders.
    pub fn folders(&self) -> FolderTable<'_> {
        FolderTable { db: &self.db }
    }

    /// Returns the table of messages.
    pub fn messages(&self) -> MessageTable<'_> {
        MessageTable { db: &self.db }
    }

    /// Returns the chats in the form in which they are exported and imported.
    pub fn records(&self) -> ChatRecords<'_> {
        ChatRecords { db: &self.db }
    }

    /// Returns the table of settings.
    pub fn settings(&self) -> SettingTable<'_> {
        SettingTable { db: &self.db }
    }

    /// Returns the table of drafts.
    pub fn drafts(&self) -> DraftTable<'_> {
        DraftTable { db: &self.db }
    }

    /// Returns the table of presets.
    pub fn presets(&self) -> PresetTable<'_> {
        PresetTable { db: &self.db }
    }

    /// Returns the table of the windows' positions.
    pub fn windows(&self) -> WindowTable<'_> {
        WindowTable { db: &self.db }
    }

    /// Returns the full-text search.
    pub fn search(&self) -> Search<'_> {
        Search {
            db: &self.db,
            deadline: &self.deadline,
        }
    }

    /// Runs all writes of `act` in one transaction, with rollback if it fails.
    ///
    /// After `Ok` they are durable. Transactions cannot be nested.
    pub fn transaction<T, E: From<StoreError>>(
        &self,
        act: impl FnOnce(&Store) -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = self.db.unchecked_transaction().map_err(StoreError::from)?;
        let made = act(self)?;
        transaction.commit().map_err(StoreError::from)?;
        Ok(made)
    }
}

//! A consistent snapshot of the chats, read beside a writer.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::connect::{connect, connect_immutable};
use crate::deadline::Deadline;
use crate::error::StoreError;
use crate::files::{WAL, with_suffix};
use crate::records::ChatRecords;
use crate::schema::APPLICATION_ID;
use crate::table::search::Search;
use crate::{migrate, open, table};

/// Time to wait for a writer that holds the file exclusively, as at the end of a process.
const BUSY: Duration = Duration::from_secs(5);

/// A read transaction on a separate connection, unaffected by concurrent writes.
pub struct StoreSnapshot {
    db: Connection,
    deadline: Deadline,
}

impl StoreSnapshot {
    /// Takes a snapshot. The file must have the schema of this version, as it does once a [`Store`](crate::Store) was
    /// opened; nothing is written. It may lie in a read-only folder.
    pub fn take(database: &Path) -> Result<StoreSnapshot, StoreError> {
        StoreSnapshot::read(database).map_err(|error| open::explain(database, error))
    }

    fn read(path: &Path) -> Result<StoreSnapshot, StoreError> {
        let (mut db, application) = match application_of(path) {
            Err(StoreError::Sqlite(_)) if !open::has_room(path) => in_read_only_folder(path)?,
            opened => opened?,
        };
        let path = path.to_owned();
        if application != APPLICATION_ID {
            return Err(StoreError::Foreign { path });
        }
        let (found, known) = (migrate::version(&db)?, migrate::latest(&table::steps()));
        if found > known {
            return Err(StoreError::Newer { path, found, known });
        }
        if found < known {
            let detail = "an earlier version of Goldcrest wrote it, and it cannot be brought up to date in its place";
            return Err(to_be_copied(&path, detail));
        }
        // The first read begins the transaction.
        db.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        let deadline = Deadline::install(&mut db)?;
        Ok(StoreSnapshot { db, deadline })
    }

    /// Returns the chats in the form in which they are exported.
    pub fn records(&self) -> ChatRecords<'_> {
        ChatRecords { db: &self.db }
    }

    /// Returns the full-text search.
    pub fn search(&self) -> Search<'_> {
        Search {
            db: &self.db,
            deadline: &self.deadline,
        }
    }
}

/// Reads the application id. The first read shows whether SQLite can create the files that it needs beside a database.
fn application_of(path: &Path) -> Result<(Connection, i32), StoreError> {
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.busy_timeout(BUSY)?;
    let application = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok((db, application))
}

/// Opens a file in a read-only folder. Without a WAL it is complete, and nobody can change it there.
fn in_read_only_folder(path: &Path) -> Result<(Connection, i32), StoreError> {
    let journal = fs::metadata(with_suffix(path, WAL));
    if journal.is_ok_and(|journal| journal.len() > 0) {
        let detail = "its folder cannot be written, and what was written last is in the file beside it that ends in -wal";
        return Err(to_be_copied(path, detail));
    }
    let db = connect_immutable(path)?;
    let application = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok((db, application))
}

fn to_be_copied(path: &Path, detail: &str) -> StoreError {
    StoreError::Unreadable {
        path: path.to_owned(),
        detail: format!(
            "{detail}. Copy the folder to a place where you can write, and set GOLDCREST_DATA_DIR to it"
        ),
    }
}

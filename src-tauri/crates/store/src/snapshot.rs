//! The chats at one moment, read beside whoever writes them.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;
use crate::records::ChatRecords;
use crate::schema::APPLICATION_ID;
use crate::{migrate, open, table};

/// How long to wait for a writer that has the file to itself, as at the end of a process.
const BUSY: Duration = Duration::from_secs(5);

/// A read transaction on a connection of its own: what is written meanwhile does not change it.
pub struct StoreSnapshot {
    db: Connection,
}

impl StoreSnapshot {
    /// Takes a snapshot. The file must have the schema of this version, as it has once a [`Store`](crate::Store) was
    /// opened; nothing is written.
    pub fn take(database: &Path) -> Result<StoreSnapshot, StoreError> {
        StoreSnapshot::read(database).map_err(|error| open::explain(database, error))
    }

    fn read(path: &Path) -> Result<StoreSnapshot, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(BUSY)?;
        let path = path.to_owned();
        let application: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
        if application != APPLICATION_ID {
            return Err(StoreError::Foreign { path });
        }
        let (found, known) = (migrate::version(&db)?, migrate::latest(&table::steps()));
        if found != known {
            return Err(StoreError::Newer { path, found, known });
        }
        // The first read begins the transaction.
        db.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        Ok(StoreSnapshot { db })
    }

    /// The chats as they leave the database.
    pub fn records(&self) -> ChatRecords<'_> {
        ChatRecords { db: &self.db }
    }
}

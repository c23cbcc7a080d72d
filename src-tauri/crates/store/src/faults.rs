//! Faults for tests: a database that cannot be written, read or moved. Its content is changed through a separate
//! connection, so that the fault happens to a [`Store`] in use.

#![expect(
    clippy::disallowed_methods,
    reason = "faults are made without the protections"
)]

use std::path::Path;

use rusqlite::Connection;

pub use crate::rename_faults::refuse_renames;
use crate::{ChatId, Store, StoreError};

/// Makes every write to these tables fail, until [`allow_writes`].
pub fn refuse_writes(database: &Path, tables: &[&str]) -> Result<(), StoreError> {
    let db = Connection::open(database)?;
    for table in tables {
        for act in ["INSERT", "UPDATE", "DELETE"] {
            db.execute_batch(&format!(
                "CREATE TRIGGER IF NOT EXISTS fault_{table}_{act} BEFORE {act} ON {table}
                 BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
            ))?;
        }
    }
    Ok(())
}

/// Reverts [`refuse_writes`].
pub fn allow_writes(database: &Path) -> Result<(), StoreError> {
    let db = Connection::open(database)?;
    let mut faults = db.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'fault#_%' ESCAPE '#'",
    )?;
    let names: Vec<String> = faults
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for name in names {
        db.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    Ok(())
}

/// Makes the queue of a chat unreadable, until [`mend_queue`].
pub fn damage_queue(database: &Path, chat: ChatId) -> Result<(), StoreError> {
    let db = Connection::open(database)?;
    let sql = "INSERT OR REPLACE INTO queue (chat, messages) VALUES (?1, 'no list')";
    db.execute(sql, [chat.0])?;
    Ok(())
}

/// Reverts [`damage_queue`].
pub fn mend_queue(database: &Path, chat: ChatId) -> Result<(), StoreError> {
    let db = Connection::open(database)?;
    db.execute("DELETE FROM queue WHERE chat = ?1", [chat.0])?;
    Ok(())
}

/// Reads the file until the connection is dropped.
pub fn read_on(database: &Path) -> Result<Connection, StoreError> {
    let db = Connection::open(database)?;
    db.execute_batch("BEGIN; SELECT count(*) FROM chat")?;
    Ok(db)
}

/// Simulates a full disk: the file may grow by `pages` at most.
pub fn fill_disk(store: &Store, pages: u32) -> Result<(), StoreError> {
    let count: u32 = store
        .db
        .pragma_query_value(None, "page_count", |row| row.get(0))?;
    // It answers with the limit, so it is a query.
    store.db.query_row(
        &format!("PRAGMA max_page_count = {}", count + pages),
        [],
        |_| Ok(()),
    )?;
    Ok(())
}

/// Opens a file, and upgrades it, on a disk that has room for `pages` pages.
pub fn open_in_room(database: &Path, pages: u32) -> Result<(), StoreError> {
    crate::open::file_in_room(database, Some(pages)).map(drop)
}

/// Adds a table of `bytes` bytes, which [`make_room`] drops.
pub fn lay_ballast(database: &Path, bytes: u32) -> Result<(), StoreError> {
    let db = Connection::open(database)?;
    db.execute_batch(&format!(
        "CREATE TABLE fault_ballast (content BLOB); INSERT INTO fault_ballast VALUES (zeroblob({bytes}))"
    ))?;
    Ok(())
}

/// Drops that table: a full file has space again.
pub fn make_room(database: &Path) -> Result<(), StoreError> {
    let db = Connection::open(database)?;
    db.busy_timeout(std::time::Duration::from_secs(5))?;
    db.execute_batch("DROP TABLE fault_ballast")?;
    Ok(())
}

/// Empties the search index, as an upgrade does.
pub fn empty_index(store: &Store) -> Result<(), StoreError> {
    store
        .db
        .execute_batch("UPDATE search_state SET folding = 0")?;
    Ok(crate::table::search::refresh(&store.db)?)
}

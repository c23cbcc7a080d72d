//! A database that cannot be written, read or moved, for tests: what concerns its content through a connection of its own,
//! so that it happens to a [`Store`] that is in use.

use std::path::Path;

use rusqlite::Connection;

pub use crate::rename_faults::refuse_renames;
use crate::{ChatId, Store, StoreError};

/// From now on every write to these tables fails, until [`allow_writes`].
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

/// Ends what [`refuse_writes`] began.
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

/// From now on what waits in the queue of a chat cannot be read, until [`mend_queue`].
pub fn damage_queue(database: &Path, chat: ChatId) -> Result<(), StoreError> {
    let db = Connection::open(database)?;
    let sql = "INSERT OR REPLACE INTO queue (chat, messages) VALUES (?1, 'no list')";
    db.execute(sql, [chat.0])?;
    Ok(())
}

/// Ends what [`damage_queue`] began.
pub fn mend_queue(database: &Path, chat: ChatId) -> Result<(), StoreError> {
    let db = Connection::open(database)?;
    db.execute("DELETE FROM queue WHERE chat = ?1", [chat.0])?;
    Ok(())
}

/// Fills a disk: the file may not grow beyond `pages` more than it has now.
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

/// Adds a table of `bytes` bytes, which [`make_room`] drops.
pub fn lay_ballast(database: &Path, bytes: u32) -> Result<(), StoreError> {
    let db = Connection::open(database)?;
    db.execute_batch(&format!(
        "CREATE TABLE fault_ballast (content BLOB); INSERT INTO fault_ballast VALUES (zeroblob({bytes}))"
    ))?;
    Ok(())
}

/// Drops that table: a full file has room again.
pub fn make_room(database: &Path) -> Result<(), StoreError> {
    let db = Connection::open(database)?;
    db.busy_timeout(std::time::Duration::from_secs(5))?;
    db.execute_batch("DROP TABLE fault_ballast")?;
    Ok(())
}

/// Empties the search index, as an upgrade leaves it.
pub fn empty_index(store: &Store) -> Result<(), StoreError> {
    store
        .db
        .execute_batch("UPDATE search_state SET folding = 0")?;
    Ok(crate::table::search::refresh(&store.db)?)
}

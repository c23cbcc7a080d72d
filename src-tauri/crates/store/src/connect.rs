//! The only place that opens a connection. A file may be made or changed by another program.

use std::fs;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;

/// Opens a connection to a file. Nothing in its schema calls a function that acts outside of the database, and no
/// statement changes the schema or the search indices other than by SQLite's own means.
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    connect_by(path, path, flags)
}

/// Opens a connection to a file that nobody writes: without locks, and without a file beside it.
pub(crate) fn connect_immutable(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    connect_by(path, Path::new(&immutable(path)), flags)
}

/// Opens a new database in memory.
#[expect(clippy::disallowed_methods, reason = "the one door")]
pub(crate) fn in_memory() -> rusqlite::Result<Connection> {
    let db = Connection::open_in_memory()?;
    leave_no_traces(&db)?;
    Ok(db)
}

#[expect(clippy::disallowed_methods, reason = "the one door")]
fn connect_by(path: &Path, name: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    // Opening a pipe would wait for its writer.
    if let Ok(found) = fs::metadata(path)
        && !found.is_file()
    {
        let detail = match found.is_dir() {
            true => "it is a folder",
            false => "it is not a file, but a pipe or a device",
        };
        return Err(StoreError::Unreadable {
            path: path.to_owned(),
            detail: detail.to_owned(),
        });
    }
    let db = Connection::open_with_flags(name, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    leave_no_traces(&db)?;
    Ok(db)
}

/// Has deleted content overwritten, also that of tables which an upgrade drops, and temporary results kept in memory.
fn leave_no_traces(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "secure_delete", true)?;
    db.pragma_update(None, "temp_store", "MEMORY")
}

/// Returns the URI by which SQLite opens a file without locks and WAL.
fn immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

//! Opening the database.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use system::private;

use crate::connect::{connect, in_memory};
use crate::deadline::{BUSY, Deadline};
use crate::error::{self, StoreError};
use crate::files::{PROBE, copies_folder};
use crate::schema::APPLICATION_ID;
use crate::{copies, integrity, migrate, preflight, table};

pub(crate) fn file(path: &Path) -> Result<(Connection, Deadline), StoreError> {
    file_in_room(path, None)
}

/// Opens a file, which may have at most `pages` pages.
pub(crate) fn file_in_room(
    path: &Path,
    pages: Option<u32>,
) -> Result<(Connection, Deadline), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    private::folder(folder).map_err(|source| not_writable(folder, source))?;
    preflight::finish_restoring(path)?;
    if preflight::is_missing(path) {
        return Err(StoreError::Missing {
            path: path.to_owned(),
            copies: copies_folder(path),
        });
    }
    if preflight::was_emptied(path) {
        return Err(integrity::damaged(path, "the file is empty", false));
    }
    private::file(path).map_err(|source| not_writable(folder, source))?;
    let open = || {
        let mut db = read(path, pages)?;
        let deadline = prepare(&mut db)?;
        Ok((db, deadline))
    };
    open().map_err(|error| explain(path, error))
}

pub(crate) fn memory() -> Result<(Connection, Deadline), StoreError> {
    let mut db = in_memory()?;
    let deadline = prepare(&mut db)?;
    table::search::define_functions(&db)?;
    migrate::run(&mut db, &table::steps())?;
    table::search::refresh(&db)?;
    Ok((db, deadline))
}

/// Opens a file. Nothing is written before it is known to be a Goldcrest database, undamaged, of a known version.
fn read(path: &Path, pages: Option<u32>) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut db = connect(path, flags)?;
    // Checked before it is read: the files that SQLite then makes beside it would stay read-only.
    if db.is_readonly("main")? {
        return Err(StoreError::ReadOnly {
            path: path.to_owned(),
        });
    }
    db.busy_timeout(BUSY)?;
    if let Some(pages) = pages {
        db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    let steps = table::steps();
    let known = migrate::latest(&steps);
    let found = migrate::version(&db)?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    // Only the first page is left: the WAL with the rest is gone.
    if tables == 0 && fs::metadata(path).is_ok_and(|file| file.len() > 0) && copies::any(path) {
        return Err(integrity::damaged(path, "the file is empty", false));
    }
    if tables > 0 && application != APPLICATION_ID {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
        });
    }
    if found > known {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    integrity::check_where_asked(&db, path)?;
    if tables > 0 && found < known {
        copies::before_migration(&db, path, found)?;
    }
    db.pragma_update(None, "journal_mode", "WAL")?;
    // Setting it writes even if nothing changes, and the disk may be full.
    if application != APPLICATION_ID {
        db.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    table::search::define_functions(&db)?;
    migrate::run(&mut db, &steps)?;
    table::search::refresh(&db)?;
    table::search::delete_securely(&db)?;
    Ok(db)
}

fn prepare(db: &mut Connection) -> rusqlite::Result<Deadline> {
    db.pragma_update(None, "foreign_keys", true)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.set_prepared_statement_cache_capacity(64);
    Deadline::install(db)
}

/// Replaces an error of SQLite, often no more than "unable to open", with the system's, which tells the cause.
pub(crate) fn explain(path: &Path, error: StoreError) -> StoreError {
    let cause = match error {
        StoreError::Sqlite(cause) => cause,
        StoreError::ReadOnly { .. } => return no_room(path).unwrap_or(error),
        other => return other,
    };
    let sqlite = cause.downcast_ref::<rusqlite::Error>();
    if sqlite.is_some_and(error::is_damage) {
        return integrity::damaged(path, &cause.to_string(), false);
    }
    let path = path.to_owned();
    match sqlite.and_then(rusqlite::Error::sqlite_error_code) {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Held { path },
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly,
        ) => no_room(&path).unwrap_or_else(|| {
            let opened = File::open(&path).err();
            let detail = opened.map_or(cause.to_string(), |error| error.to_string());
            StoreError::Unreadable { path, detail }
        }),
        _ => StoreError::Sqlite(cause),
    }
}

/// Returns whether a file can be written beside the database: whether a full disk has space again.
pub fn has_room(database: &Path) -> bool {
    no_room(database).is_none()
}

/// Checks whether the folder or the disk is the cause of a failed write: SQLite keeps two files beside its own.
fn no_room(path: &Path) -> Option<StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let probe = path.with_extension(PROBE);
    let written = private::file(&probe)
        .and_then(|()| File::create(&probe))
        .and_then(|mut file| file.write_all(&[0; 1 << 16]));
    let _ = fs::remove_file(&probe);
    written.err().map(|source| not_writable(folder, source))
}

fn not_writable(folder: &Path, source: io::Error) -> StoreError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
        _ => StoreError::FolderNotWritable {
            path: folder.to_owned(),
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_room_is_a_full_disk() {
        let error = |kind: io::ErrorKind| not_writable(Path::new("x"), kind.into());
        for full in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert!(matches!(error(full), StoreError::DiskFull));
        }
        let closed = error(io::ErrorKind::PermissionDenied);
        assert!(matches!(closed, StoreError::FolderNotWritable { .. }));
    }

    #[test]
    fn the_file_is_opened_for_safety() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let (db, _) = file(&folder.path().join("goldcrest.db"))?;
        let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let journal: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        assert_eq!(journal, "wal");
        assert_eq!(
            number("synchronous")?,
            2,
            "FULL: what is committed survives a power cut"
        );
        assert_eq!(
            (number("foreign_keys")?, number("busy_timeout")?),
            (1, 5000)
        );
        let (temporary, _) = memory()?;
        for db in [&db, &temporary] {
            let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            assert_eq!((number("secure_delete")?, number("temp_store")?), (1, 2));
        }
        Ok(())
    }
}

//! The one opener.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::copies;
use crate::error::StoreError;
use crate::migrate;
use crate::table;

/// "GLDC": tells our files from those of other programs.
const APPLICATION_ID: i32 = 0x474c_4443;
/// How long to wait for another process that holds the file, such as a backup tool.
const BUSY: Duration = Duration::from_secs(5);

pub(crate) fn file(path: &Path) -> Result<Connection, StoreError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| StoreError::Io {
            path: folder.to_owned(),
            source,
        })?;
    }
    let db = read(path).map_err(|error| explain(path, error))?;
    prepare(&db).map_err(|error| explain(path, error.into()))?;
    Ok(db)
}

pub(crate) fn memory() -> Result<Connection, StoreError> {
    let mut db = Connection::open_in_memory()?;
    prepare(&db)?;
    migrate::run(&mut db, &table::steps())?;
    Ok(db)
}

/// Nothing is written before the file is known to be ours, whole, and of a version that we know.
fn read(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY)?;
    let steps = table::steps();
    let known = migrate::latest(&steps);
    let found = migrate::version(&db)?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
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
    if tables > 0 && found < known {
        copies::before_migration(&db, path, found)?;
    }
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    migrate::run(&mut db, &steps)?;
    Ok(db)
}

fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "foreign_keys", true)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}

fn explain(path: &Path, error: StoreError) -> StoreError {
    let StoreError::Sqlite(cause) = error else {
        return error;
    };
    let code = cause
        .downcast_ref::<rusqlite::Error>()
        .and_then(rusqlite::Error::sqlite_error_code);
    match code {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged {
            path: path.to_owned(),
            copies: copies::folder(path),
            detail: cause.to_string(),
        },
        _ => StoreError::Sqlite(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_opened_for_safety() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let db = file(&folder.path().join("goldcrest.db"))?;
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
        Ok(())
    }
}

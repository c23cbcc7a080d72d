//! SQLite's check of a whole file, now or at the next opening.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use system::private;

use crate::connect::connect;
use crate::error::{self, StoreError};
use crate::files::{check_mark, copies_folder};

/// Reads the whole file, and fails with [`StoreError::Damaged`] if it is damaged.
///
/// This takes a while with a large file.
pub fn check(database: &Path) -> Result<(), StoreError> {
    let db = connect(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    match fault(&db)? {
        Some(detail) => Err(damaged(database, &detail, true)),
        None => Ok(()),
    }
}

pub(crate) fn ask_for_check(database: &Path) -> Result<(), StoreError> {
    let mark = check_mark(database);
    private::file(&mark).map_err(StoreError::io(&mark))
}

/// Withdraws [`Store::ask_for_check`](crate::Store::ask_for_check): the file is used as it is.
pub fn forget_check(database: &Path) {
    let _ = fs::remove_file(check_mark(database));
}

/// Returns the damage that SQLite finds in a file, if any. A check that could not run is an error.
pub(crate) fn fault(db: &Connection) -> Result<Option<String>, StoreError> {
    // The first leaves out the free pages if the table that it happens to begin with is a view.
    for check in ["PRAGMA quick_check(1)", "PRAGMA quick_check(sqlite_schema)"] {
        match db.query_row(check, [], |row| row.get::<_, String>(0)) {
            Ok(state) if state == "ok" => {}
            Ok(state) => return Ok(Some(state)),
            Err(error) if error::is_damage(&error) => return Ok(Some(error.to_string())),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

pub(crate) fn damaged(database: &Path, detail: &str, opens: bool) -> StoreError {
    StoreError::Damaged {
        path: database.to_owned(),
        copies: copies_folder(database),
        detail: detail.to_owned(),
        opens,
    }
}

pub(crate) fn check_where_asked(db: &Connection, database: &Path) -> Result<(), StoreError> {
    if !check_mark(database).exists() {
        return Ok(());
    }
    if let Some(detail) = fault(db)? {
        return Err(damaged(database, &detail, true));
    }
    forget_check(database);
    Ok(())
}

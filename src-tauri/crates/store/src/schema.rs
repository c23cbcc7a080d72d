//! The application id, and an empty database.

use std::path::Path;

use rusqlite::Connection;
use system::private;

use crate::error::StoreError;
use crate::{migrate, table};

/// "GLDC": distinguishes Goldcrest's files from those of other programs.
pub(crate) const APPLICATION_ID: i32 = 0x474c_4443;

/// Makes an empty database, with no other file beside it.
pub(crate) fn create(path: &Path) -> Result<(), StoreError> {
    private::file(path).map_err(StoreError::io(path))?;
    let mut db = Connection::open(path)?;
    db.pragma_update(None, "journal_mode", "MEMORY")?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    Ok(migrate::run(&mut db, &table::steps())?)
}

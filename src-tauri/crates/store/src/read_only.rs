//! Reads of a file without opening it as a store.

use std::path::Path;

use rusqlite::OpenFlags;

use crate::connect::connect;
use crate::error::StoreError;
use crate::migrate;
use crate::open::explain;
use crate::table::preset::{self, PresetRow};

/// Reads the presets in a file, which may be open elsewhere, and is not changed.
pub fn read_presets(path: &Path) -> Result<Vec<PresetRow>, StoreError> {
    let read = || {
        let db = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let version = migrate::version(&db)?;
        if version < preset::SINCE {
            return Ok(Vec::new());
        }
        preset::PresetTable { db: &db }.list_of_version(version)
    };
    read().map_err(|error| explain(path, error))
}

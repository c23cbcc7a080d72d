//! Checks before the database is opened: an interrupted restore is finished, and a missing or empty file is reported if
//! copies exist.

use std::fs;
use std::path::Path;

use crate::copies;
use crate::error::StoreError;
use crate::files::{PROBE, SHM, UNFINISHED, WAL, is_there, remove, rename, restored, with_suffix};

/// Returns whether a database is missing that has copies.
pub(crate) fn is_missing(database: &Path) -> bool {
    !is_there(database) && copies::any(database)
}

/// Returns whether a database that had content is empty. SQLite takes an empty file for a new database and removes the
/// WAL beside it, which may hold everything that was written.
pub(crate) fn was_emptied(database: &Path) -> bool {
    let length = |path: &Path| {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        file.map(|file| file.len())
    };
    let has_journal = length(&with_suffix(database, WAL)).is_some_and(|length| length > 0);
    length(database) == Some(0) && (has_journal || copies::any(database))
}

/// Finishes an interrupted replacement: the new file becomes the database if the former one was moved away. Removes
/// temporary files.
pub(crate) fn finish_restoring(database: &Path) -> Result<(), StoreError> {
    for temporary in [UNFINISHED, PROBE] {
        let _ = fs::remove_file(database.with_extension(temporary));
    }
    let restored = restored(database);
    if !is_there(&restored) {
        return Ok(());
    }
    if is_there(database) {
        return remove(&restored);
    }
    // SQLite would replay the WAL of the former file, which is kept with it, into the new one.
    remove(&with_suffix(database, WAL))?;
    remove(&with_suffix(database, SHM))?;
    rename(&restored, database)
}

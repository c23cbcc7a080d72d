//! The files beside the database, by name, and changes of files that survive a power cut.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use system::private;

use crate::error::StoreError;

/// Extensions of an unfinished file and of a write probe.
pub(crate) const UNFINISHED: &str = "unfinished";
pub(crate) const PROBE: &str = "probe";
/// Files that SQLite keeps beside a database: the write-ahead log (WAL), and its index in shared memory.
pub(crate) const WAL: &str = "-wal";
pub(crate) const SHM: &str = "-shm";

/// Infix between the name of a database that was set aside and its date.
pub(crate) const ASIDE: &str = "-set-aside-";

/// Returns the prefix of a set-aside database.
pub(crate) fn aside_prefix(database: &Path) -> String {
    let stem = database.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}{ASIDE}")
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns the folder of the copies.
pub(crate) fn copies_folder(database: &Path) -> PathBuf {
    database.with_file_name("copies")
}

/// Returns the path of the complete new file that is to become the database.
pub(crate) fn restored(database: &Path) -> PathBuf {
    database.with_extension("restored")
}

/// Returns the path of the mark that requests a check at the next opening.
pub(crate) fn check_mark(database: &Path) -> PathBuf {
    database.with_extension("check")
}

pub(crate) fn duplicate(from: &Path, to: &Path) -> io::Result<()> {
    private::file(to)?;
    let mut target = OpenOptions::new().write(true).truncate(true).open(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()
}

/// Returns whether a path exists. A symbolic link counts, whatever its target.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Removes a file if it exists.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(path)(error)),
        _ => Ok(()),
    }
}

/// Renames a file, durably before anything that follows.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    #[cfg(feature = "faults")]
    crate::rename_faults::check(to).map_err(StoreError::io(from))?;
    fs::rename(from, to).map_err(StoreError::io(from))?;
    sync_folder(to);
    Ok(())
}

/// Syncs a folder, so that renames survive a power cut, where the system can.
pub(crate) fn sync_folder(file: &Path) {
    let _ = private::sync_parent(file);
}

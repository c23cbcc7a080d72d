//! Errors of the store.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

/// Errors of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file was written by a later version of the app.
    #[error(
        "{} was written by a newer version of Goldcrest (its format is {found}, this version knows {known}). \
         Install the newer version; nothing was changed.",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The newest schema version known here.
        known: u32,
    },
    /// The file is damaged.
    #[error("{} is damaged ({detail}). Nothing was changed; earlier copies are in {}.", path.display(), copies.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Folder of its copies.
        copies: PathBuf,
        /// Message of SQLite.
        detail: String,
        /// True if it opens nevertheless, because the damage is in a part that opening does not read.
        opens: bool,
    },
    /// The file is missing, but copies of it exist.
    #[error("{} is missing. Copies of it are in {}.", path.display(), copies.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// Folder of its copies.
        copies: PathBuf,
    },
    /// The file is a database of another program.
    #[error("{} is not a Goldcrest database. Nothing was changed.", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened.
    #[error("{} cannot be opened ({detail}).", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Message of SQLite or the system.
        detail: String,
    },
    /// The file can be read, but not written.
    #[error("{} can be read, but not written.", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Nothing can be written in the folder.
    #[error("Nothing can be written in the folder {} ({source}).", path.display())]
    FolderNotWritable {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another program holds the file.
    #[error("Another program holds {}.", path.display())]
    Held {
        /// The file.
        path: PathBuf,
    },
    /// A copy of the database has a part that Goldcrest did not make.
    #[error("{} was changed by another program: its {part} is not as Goldcrest makes it. It was not restored, and your chats are as they were.", path.display())]
    Altered {
        /// The file.
        path: PathBuf,
        /// Kind and name of the part.
        part: String,
    },
    /// There is no such row.
    #[error("This {0} does not exist any more.")]
    NotFound(&'static str),
    /// The disk is nearly full.
    #[error("The disk has {} MB free, and Goldcrest leaves {} MB to other programs. Free some space and try again.", free >> 20, reserve >> 20)]
    LittleRoom {
        /// Bytes that are free.
        free: u64,
        /// Bytes that are left free.
        reserve: u64,
    },
    /// The disk is full.
    #[error("The disk is full: this could not be saved. Free some space and try again.")]
    DiskFull,
    /// A folder could not be made, or a copy not written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// SQLite failed in another way.
    #[error("The database failed: {0}")]
    Sqlite(Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Makes the error of an operation on this file or folder.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
            _ => StoreError::Io { path, source },
        }
    }
}

/// Returns whether SQLite failed because the file is damaged.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    )
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        // The shared memory of the WAL is a file too, and needs space.
        let no_room = |error: &ffi::Error| {
            error.code == ErrorCode::DiskFull || error.extended_code == ffi::SQLITE_IOERR_SHMSIZE
        };
        match error.sqlite_error() {
            Some(cause) if no_room(cause) => StoreError::DiskFull,
            _ => StoreError::Sqlite(Box::new(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_known_whatever_file_it_hits() {
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert!(matches!(StoreError::from(error), StoreError::DiskFull));
        }
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let error = StoreError::io(Path::new("x"))(kind.into());
            assert!(matches!(error, StoreError::DiskFull));
        }
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_READ), None);
        assert!(matches!(StoreError::from(error), StoreError::Sqlite(_)));
    }
}

//! What can go wrong with the file.

use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;

/// Why the store could not do what it was asked.
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
        /// The folder where copies of it are.
        copies: PathBuf,
        /// What SQLite says.
        detail: String,
    },
    /// The file is a database of another program.
    #[error("{} is not a Goldcrest database. Nothing was changed.", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// There is no such row.
    #[error("This {0} does not exist any more.")]
    NotFound(&'static str),
    /// The disk is full.
    #[error("The disk is full: the chat could not be saved.")]
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

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::DiskFull,
            _ => StoreError::Sqlite(Box::new(error)),
        }
    }
}

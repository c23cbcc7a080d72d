//! Why a file could not be read.

use std::io;

use serde::{Deserialize, Serialize};

use crate::input::LARGEST_CHAT;

/// Why nothing could be read. Whoever wrote down chats before that has to remove them.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub enum ReadError {
    /// No known format.
    #[error(
        "{file} is not an export that Goldcrest knows. It reads its own JSONL files, and what ChatGPT, Claude, Jan and \
         LM Studio export."
    )]
    Unknown {
        /// The file.
        file: String,
    },
    /// The format is known, and there is nothing in it.
    #[error("There are no chats in {file}.")]
    Empty {
        /// The file.
        file: String,
    },
    /// Its end is missing.
    #[error("{file} ends in the middle. Perhaps it was not downloaded or copied to its end.")]
    CutOff {
        /// The file.
        file: String,
    },
    /// It does not hold what its format asks for.
    #[error("{file} cannot be read ({detail}).")]
    Damaged {
        /// The file.
        file: String,
        /// Where, and what.
        detail: String,
    },
    /// Our own format, of a later version of the app.
    #[error(
        "{file} was written by a newer version of Goldcrest (its format is {found}, this version reads {known})."
    )]
    Newer {
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The latest that is known here.
        known: u32,
    },
    /// One chat is larger than any that was written.
    #[error("A chat in {file} has more than {} MB.", LARGEST_CHAT >> 20)]
    TooLarge {
        /// The file.
        file: String,
    },
    /// The system cannot read it.
    #[error("{file} cannot be read: {cause}")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        cause: String,
    },
    /// Whoever takes the chats asked for an end.
    #[error("The import was cancelled.")]
    Stopped,
}

impl ReadError {
    /// The error of reading bytes.
    pub(crate) fn input(file: &str, error: io::Error) -> ReadError {
        let file = file.to_owned();
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::CutOff { file },
            io::ErrorKind::FileTooLarge => ReadError::TooLarge { file },
            // A compressed file that is damaged, or text that is none.
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => ReadError::Damaged {
                file,
                detail: error.to_string(),
            },
            _ => ReadError::Io {
                file,
                cause: error.to_string(),
            },
        }
    }

    /// The error of reading JSON.
    pub(crate) fn json(file: &str, error: serde_json::Error) -> ReadError {
        if error.is_io() {
            return ReadError::input(file, error.into());
        }
        let name = file.to_owned();
        if error.is_eof() {
            return ReadError::CutOff { file: name };
        }
        ReadError::Damaged {
            file: name,
            detail: error.to_string(),
        }
    }
}

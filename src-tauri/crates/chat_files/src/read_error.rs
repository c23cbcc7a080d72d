//! Errors of reading chats.

use std::io;

use serde::{Deserialize, Serialize};

use crate::input::{LARGEST_CHAT, Refusal};
use crate::limits::shortened;

/// Maximum characters of a parser's message, which may quote the file.
const LONGEST_DETAIL: usize = 200;

/// Reason that nothing was read. The caller has to remove the chats that it has stored so far.
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
    /// A known format without any content.
    #[error("There are no chats in {file}.")]
    Empty {
        /// The file.
        file: String,
    },
    /// A pipe or a device.
    #[error("{file} is not a file. Chats are imported from files and folders.")]
    NotAFile {
        /// The name of the file.
        file: String,
    },
    /// The end of the file is missing.
    #[error("{file} ends in the middle. Perhaps it was not downloaded or copied to its end.")]
    CutOff {
        /// The file.
        file: String,
    },
    /// The content violates the format.
    #[error("{file} cannot be read ({place}: {detail}).")]
    Damaged {
        /// The file.
        file: String,
        /// The position in the file.
        place: String,
        /// The problem there. It may quote the file.
        detail: String,
    },
    /// A file in our own format, of a later version of the app.
    #[error(
        "{file} was written by a newer version of Goldcrest (its format is {found}, this version reads {known})."
    )]
    Newer {
        /// The file.
        file: String,
        /// The version of the file.
        found: u32,
        /// The latest version that is supported.
        known: u32,
    },
    /// One chat is larger than any real one.
    #[error("A chat in {file} has more than {} GB.", LARGEST_CHAT >> 30)]
    TooLarge {
        /// The file.
        file: String,
    },
    /// An archive that would exhaust the memory or the time of its reader.
    #[error("{file} unpacks to far more than an export has, so it was not read to its end.")]
    UnpacksToTooMuch {
        /// The file.
        file: String,
    },
    /// The system cannot read it.
    #[error("{file} cannot be read: {cause}")]
    Io {
        /// The file.
        file: String,
        /// The error of the system.
        cause: String,
    },
    /// The receiver of the chats stopped the read.
    #[error("The import was cancelled.")]
    Stopped,
}

impl ReadError {
    /// The error for a log, which may not quote the file.
    #[must_use]
    pub fn without_quotation(&self) -> String {
        match self {
            ReadError::Damaged { file, place, .. } => format!("{file} is damaged ({place})"),
            error => error.to_string(),
        }
    }

    /// Converts an error of reading bytes.
    pub(crate) fn input(file: &str, error: &io::Error) -> ReadError {
        let file = file.to_owned();
        match (Refusal::of(error), error.kind()) {
            (Some(Refusal::Stopped), _) => ReadError::Stopped,
            (Some(Refusal::ChatTooLarge), _) => ReadError::TooLarge { file },
            (Some(Refusal::UnpacksToTooMuch), _) => ReadError::UnpacksToTooMuch { file },
            (None, io::ErrorKind::UnexpectedEof) => ReadError::CutOff { file },
            // A compressed file that is damaged.
            (None, io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
                ReadError::damaged(&file, "compressed data", &error.to_string())
            }
            _ => ReadError::Io {
                file,
                cause: error.to_string(),
            },
        }
    }

    /// Converts an error of reading JSON.
    pub(crate) fn json(file: &str, error: serde_json::Error) -> ReadError {
        if error.is_io() {
            return ReadError::input(file, &error.into());
        }
        if error.is_eof() {
            let file = file.to_owned();
            return ReadError::CutOff { file };
        }
        let place = format!("line {}, column {}", error.line(), error.column());
        ReadError::damaged(file, &place, &without_place(&error))
    }

    pub(crate) fn damaged(file: &str, place: &str, detail: &str) -> ReadError {
        ReadError::Damaged {
            file: file.to_owned(),
            place: place.to_owned(),
            detail: shortened(detail, LONGEST_DETAIL),
        }
    }
}

/// Serde's message without line and column.
pub(crate) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

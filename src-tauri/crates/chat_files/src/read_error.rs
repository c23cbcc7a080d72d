//! Why a file could not be read.

use std::io;

use serde::{Deserialize, Serialize};

use crate::input::{LARGEST_CHAT, Refusal};
use crate::limits::shortened;

/// Characters of what a parser says, which may quote the file.
const LONGEST_DETAIL: usize = 200;

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
    /// A pipe or a device.
    #[error("{file} is not a file. Chats are imported from files and folders.")]
    NotAFile {
        /// Its name.
        file: String,
    },
    /// Its end is missing.
    #[error("{file} ends in the middle. Perhaps it was not downloaded or copied to its end.")]
    CutOff {
        /// The file.
        file: String,
    },
    /// Its content is not of its format.
    #[error("{file} cannot be read ({place}: {detail}).")]
    Damaged {
        /// The file.
        file: String,
        /// The place in it.
        place: String,
        /// What is wrong there. It may quote the file.
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
    #[error("A chat in {file} has more than {} GB.", LARGEST_CHAT >> 30)]
    TooLarge {
        /// The file.
        file: String,
    },
    /// An archive made to fill the memory or the time of whoever unpacks it.
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
        /// What the system says.
        cause: String,
    },
    /// Whoever takes the chats asked for an end.
    #[error("The import was cancelled.")]
    Stopped,
}

impl ReadError {
    /// The error in words for a log, which may not quote what is in a file.
    #[must_use]
    pub fn without_quotation(&self) -> String {
        match self {
            ReadError::Damaged { file, place, .. } => format!("{file} is damaged ({place})"),
            error => error.to_string(),
        }
    }

    /// The error of reading bytes.
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

    /// The error of reading JSON.
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

/// Message of serde, without the line and the column.
pub(crate) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

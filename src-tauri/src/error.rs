//! Failures as the page sees them: a code that it acts on, and a sentence for the person.

use serde::{Deserialize, Serialize};

/// What the page does differently; it never reads the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    NoModel,
    BadModel,
    MissingModel,
    Crashed,
    NotFound,
    Busy,
    TooLong,
    AnswerFull,
    Generation,
    DiskFull,
    Store,
    Invalid,
}

/// A failure on the wire.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[error("{message}")]
pub struct WireError {
    pub code: ErrorCode,
    pub message: String,
}

impl WireError {
    /// The page asked for something that makes no sense.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::Invalid,
            message: message.into(),
        }
    }
}

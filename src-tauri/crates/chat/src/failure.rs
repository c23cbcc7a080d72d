//! Failures, as the window shows them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::StoreError;

use crate::text;

/// Maximum characters of a message. Paths may be long.
const MAX_MESSAGE: usize = 10_000;

/// Failure of a verb or of an answer.
///
/// `code` is what callers switch on; `message` is for the user and says what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[error("{message}")]
pub struct Failure {
    /// Kind of the failure.
    pub code: FailureCode,
    /// Cause in plain words, with names and numbers.
    pub message: String,
}

impl Failure {
    /// Makes a failure of the given kind. An overlong message is cut, as a file that it quotes may have no end.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Failure {
        let mut message = message.into();
        if message.len() > MAX_MESSAGE {
            message = text::cut(&message, MAX_MESSAGE);
        }
        Failure { code, message }
    }

    /// Makes a failure that no caller acts on.
    pub fn other(message: impl Into<String>) -> Failure {
        Failure::new(FailureCode::Other, message)
    }

    pub(crate) fn busy() -> Failure {
        Failure::new(
            FailureCode::Other,
            "An answer is still being written in this chat. Stop it first.",
        )
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let code = match error {
            StoreError::NotFound(_)
            | StoreError::Altered { .. }
            | StoreError::LittleRoom { .. } => FailureCode::Other,
            StoreError::DiskFull => FailureCode::DiskFull,
            _ => FailureCode::Store,
        };
        Failure::new(code, error.to_string())
    }
}

/// Makes the failure of an import that could not be written.
pub fn nothing_imported(error: StoreError) -> Failure {
    let message = match &error {
        StoreError::DiskFull => {
            "The disk is full. Nothing was imported; free some space and try again.".to_owned()
        }
        error => format!("Nothing was imported. {error}"),
    };
    let failure = Failure::from(error);
    // If the disk is full the import is retried; the retry of open chats does not help here.
    let code = if failure.code == FailureCode::DiskFull {
        FailureCode::Other
    } else {
        failure.code
    };
    Failure::new(code, message)
}

/// Kinds of failure that the window, or the caller that opens the store, acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum FailureCode {
    /// The model file cannot be used.
    BadModel,
    /// The model file is no longer where it was.
    MissingModel,
    /// The app crashed while it opened this model file.
    Crashed,
    /// The message does not fit the model's context.
    TooLong,
    /// No model is open.
    NoModel,
    /// The model cannot answer in the required form.
    BadForm,
    /// The answer fills the context, so that it cannot be continued.
    AnswerFull,
    /// The disk is full.
    DiskFull,
    /// The database failed: the next start checks all of it.
    Store,
    /// Any other kind: the message says everything.
    Other,
}

impl FailureCode {
    /// Returns the name that is stored and sent.
    pub(crate) fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::String(name)) => name,
            _ => String::new(),
        }
    }

    /// Returns the code of a stored name. A name that this version does not know reads as [`FailureCode::Other`].
    pub(crate) fn from_name(name: &str) -> FailureCode {
        serde_json::from_value(name.into()).unwrap_or(FailureCode::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_code_is_read_again_and_one_of_another_version_is_another_failure() {
        for code in [
            FailureCode::TooLong,
            FailureCode::DiskFull,
            FailureCode::Other,
        ] {
            assert_eq!(FailureCode::from_name(&code.name()), code);
        }
        assert_eq!(FailureCode::TooLong.name(), "too-long");
        assert_eq!(FailureCode::from_name("generation"), FailureCode::Other);
    }
}

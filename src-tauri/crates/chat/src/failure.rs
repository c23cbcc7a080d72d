//! What can go wrong, as the window tells it.

use std::fmt;

use store::StoreError;

use crate::text;

/// The most characters of a message. Paths may be long.
const MAX_MESSAGE: usize = 10_000;

/// A verb that was refused, or an answer that could not be given.
///
/// `code` is what callers switch on; `message` is for the user and says what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure this is.
    pub code: FailureCode,
    /// The cause in plain words, with names and numbers.
    pub message: String,
}

impl Failure {
    /// A failure of the given kind. A message that quotes a file without end is cut.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Failure {
        let mut message = message.into();
        if message.len() > MAX_MESSAGE {
            message = text::cut(&message, MAX_MESSAGE);
        }
        Failure { code, message }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(FailureCode::Invalid, message)
    }

    pub(crate) fn busy() -> Failure {
        Failure::new(
            FailureCode::Busy,
            "An answer is still being written in this chat. Stop it first.",
        )
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let code = match error {
            StoreError::NotFound(_) => FailureCode::NotFound,
            StoreError::DiskFull => FailureCode::DiskFull,
            _ => FailureCode::Store,
        };
        Failure::new(code, error.to_string())
    }
}

/// The kinds of failure: one for each thing that the window does differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCode {
    /// No model is open.
    NoModel,
    /// The model file cannot be used.
    BadModel,
    /// The model file is no longer where it was.
    MissingModel,
    /// The app ended while it opened this model file.
    Crashed,
    /// The chat or message does not exist.
    NotFound,
    /// The chat is still writing an answer.
    Busy,
    /// The message does not fit the model's context.
    TooLong,
    /// The answer fills the context, so that it cannot be continued.
    AnswerFull,
    /// The model failed while it answered.
    Generation,
    /// The disk is full.
    DiskFull,
    /// The database failed.
    Store,
    /// A value was refused.
    Invalid,
}

impl FailureCode {
    const ALL: [FailureCode; 12] = [
        FailureCode::NoModel,
        FailureCode::BadModel,
        FailureCode::MissingModel,
        FailureCode::Crashed,
        FailureCode::NotFound,
        FailureCode::Busy,
        FailureCode::TooLong,
        FailureCode::AnswerFull,
        FailureCode::Generation,
        FailureCode::DiskFull,
        FailureCode::Store,
        FailureCode::Invalid,
    ];

    /// The name that is stored and sent.
    pub fn name(self) -> &'static str {
        match self {
            FailureCode::NoModel => "no-model",
            FailureCode::BadModel => "bad-model",
            FailureCode::MissingModel => "missing-model",
            FailureCode::Crashed => "crashed",
            FailureCode::NotFound => "not-found",
            FailureCode::Busy => "busy",
            FailureCode::TooLong => "too-long",
            FailureCode::AnswerFull => "answer-full",
            FailureCode::Generation => "generation",
            FailureCode::DiskFull => "disk-full",
            FailureCode::Store => "store",
            FailureCode::Invalid => "invalid",
        }
    }

    /// The code of a stored name. A name of a version to come reads as [`FailureCode::Generation`].
    pub(crate) fn from_name(name: &str) -> FailureCode {
        FailureCode::ALL
            .into_iter()
            .find(|code| code.name() == name)
            .unwrap_or(FailureCode::Generation)
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

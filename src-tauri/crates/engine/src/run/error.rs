//! Errors of requests.

use crate::grammar::SchemaError;
use crate::model::error::DeviceError;

/// Error of generating an answer.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The prompt has no tokens.
    #[error("the prompt is empty")]
    Empty,
    /// The prompt fills the context.
    #[error(
        "the conversation is too long: {} in a context of {}",
        figures::tokens(*prompt),
        figures::count(*context)
    )]
    TooLong {
        /// Tokens in the prompt.
        prompt: usize,
        /// Length of the context.
        context: usize,
    },
    /// A token outside of the vocabulary.
    #[error("the model has no token {id}; its ids end at {last}", last = vocabulary.saturating_sub(1))]
    UnknownToken {
        /// Its id.
        id: u32,
        /// Number of tokens in the vocabulary.
        vocabulary: usize,
    },
    /// Answers cannot be held to the schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Answers cannot be held to the form, or one could not any longer.
    #[error("the answer cannot be held to the required form: {0}")]
    Form(String),
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(#[from] DeviceError),
}

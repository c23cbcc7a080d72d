//! Why a chat template cannot be used.

use serde::{Deserialize, Serialize};

/// The longest source in bytes; the published templates have 5,000.
pub(super) const MAX_SOURCE_BYTES: usize = 64 << 10;

/// Why a template cannot be used; lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum TemplateError {
    /// The source is too long for a chat template.
    #[error("the chat template has {bytes} bytes; at most {MAX_SOURCE_BYTES} are read")]
    TooLong {
        /// Length of the source.
        bytes: usize,
    },
    /// A sandbox stopped it.
    #[error("the chat template was stopped: {reason}")]
    Stopped {
        /// The end of a sentence.
        reason: String,
    },
    /// The source is not a Jinja template.
    #[error("the chat template has an error in line {line}: {message}")]
    Syntax {
        /// Line of the template's source.
        line: usize,
        /// The problem.
        message: String,
    },
    /// The template failed while rendering, by `raise_exception` or by an error.
    #[error("the chat template failed in line {line}: {message}")]
    Render {
        /// Line of the template's source.
        line: usize,
        /// The problem.
        message: String,
    },
}

//! Errors of chat templates.

/// Error of a template; lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
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

//! Errors of an input or an output.

use std::io;
use std::path::{Path, PathBuf};

use engine::{ConfigError, GgufError};

/// Reasons for which a model was not quantised. The message names the file, and the key or the tensor.
#[derive(Debug, thiserror::Error)]
pub enum QuantizeError {
    /// An input file is missing, unreadable or invalid.
    #[error("{}: {problem}", path.display())]
    Input {
        /// The file or the folder.
        path: PathBuf,
        /// Its fault.
        problem: String,
    },
    /// The input is not a readable GGUF file.
    #[error("{}: {source}", path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// Error of the reader.
        source: GgufError,
    },
    /// The metadata do not describe a model that the engine runs.
    #[error("{}: {source}", path.display())]
    Config {
        /// The file or the folder.
        path: PathBuf,
        /// Error of the engine.
        source: ConfigError,
    },
    /// A key of a JSON or GGUF file is missing or has an unusable value.
    #[error("{}: `{key}` {problem}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// Its fault, as the rest of a sentence.
        problem: String,
    },
    /// A tensor is missing, misshapen, unreadable or has values that cannot be stored.
    #[error("{}: tensor `{name}`: {problem}", path.display())]
    Tensor {
        /// The file or the folder.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its fault.
        problem: String,
    },
    /// The output cannot be written.
    #[error("{}: {problem}", path.display())]
    Output {
        /// The requested file.
        path: PathBuf,
        /// The fault.
        problem: String,
    },
    /// The disk has no room for the output.
    #[error(
        "{}: the file needs {} MB, and {} MB are free on its disk",
        path.display(), needed.div_ceil(1_000_000), available / 1_000_000
    )]
    Space {
        /// The requested file.
        path: PathBuf,
        /// Its size in bytes.
        needed: u64,
        /// Free bytes.
        available: u64,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl QuantizeError {
    pub(crate) fn input(path: &Path, problem: impl ToString) -> QuantizeError {
        QuantizeError::Input {
            path: path.to_owned(),
            problem: problem.to_string(),
        }
    }

    pub(crate) fn key(path: &Path, key: &str, problem: impl ToString) -> QuantizeError {
        QuantizeError::Key {
            path: path.to_owned(),
            key: key.to_owned(),
            problem: problem.to_string(),
        }
    }

    pub(crate) fn tensor(path: &Path, name: &str, problem: impl ToString) -> QuantizeError {
        QuantizeError::Tensor {
            path: path.to_owned(),
            name: engine::gguf::quote(name),
            problem: problem.to_string(),
        }
    }

    pub(crate) fn output(path: &Path, problem: impl ToString) -> QuantizeError {
        QuantizeError::Output {
            path: path.to_owned(),
            problem: problem.to_string(),
        }
    }

    /// Makes the error of a failed write of the output.
    pub(crate) fn write(path: &Path, error: &io::Error) -> QuantizeError {
        let problem = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full".into(),
            io::ErrorKind::FileTooLarge => "the file is larger than the system allows".into(),
            _ => format!("cannot be written: {error}"),
        };
        QuantizeError::output(path, problem)
    }
}

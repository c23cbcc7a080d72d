//! Error of reading a GGUF file, and the quotation of its text in messages.

use std::io;

/// Why a file cannot be read as GGUF.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file cannot be opened or read.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    /// The first four bytes are not `GGUF`.
    #[error("this is not a GGUF file")]
    NotGguf,
    /// A version other than 2 and 3, or a big-endian file.
    #[error("GGUF version {0} is not supported (2 and 3 are)")]
    Version(u32),
    /// The header is invalid as a whole: counts out of range, or a truncated file.
    #[error("the GGUF header is damaged: {0}")]
    Header(String),
    /// A metadata entry is damaged.
    #[error("metadata key `{key}`: {problem}")]
    Key {
        /// The key, or its position where its name cannot be read.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A tensor's description is damaged or its data is not in the file.
    #[error("tensor `{name}`: {problem}")]
    Tensor {
        /// The tensor, or its position where its name cannot be read.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Text of a file for a message, truncated: a file may hold megabytes of it.
pub fn quote(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

//! Error of reading a GGUF file, and the quotation of its text in messages.

use std::io;

/// Error of reading a file as GGUF.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file cannot be opened or read.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    /// The first four bytes are not `GGUF`.
    #[error("this is not a GGUF file")]
    NotGguf,
    /// The numbers of the file are big-endian.
    #[error(
        "this GGUF file is big-endian, made for another kind of computer; get the little-endian file of the same model"
    )]
    BigEndian,
    /// Several parts of a model in one file.
    #[error(
        "this file is several parts of a model joined end to end; put the parts themselves into one folder and open one \
         of them, or join them with llama.cpp's `llama-gguf-split --merge`"
    )]
    Joined,
    /// A part of a model whose name does not lead to the others.
    #[error(
        "this is part {number} of a model in {count} files; give it its name again, which ends in \
         `-{number:05}-of-{count:05}.gguf`, and put the other parts beside it"
    )]
    PartName {
        /// The part, from 1.
        number: usize,
        /// Number of parts.
        count: usize,
    },
    /// A part of the model is missing.
    #[error("a part of the model is missing: put `{file}` into the same folder")]
    MissingPart {
        /// Its file name.
        file: String,
    },
    /// Another part of the model cannot be read.
    #[error("the model's part `{file}`: {problem}")]
    Part {
        /// Its file name.
        file: String,
        /// The problem of the file.
        problem: String,
    },
    /// A file has the name of a part, but belongs to another model.
    #[error("`{file}` is not a part of the same model; download that file again")]
    ForeignPart {
        /// Its file name.
        file: String,
    },
    /// The parts do not have the declared number of tensors.
    #[error(
        "the parts are not all of one model: together they have {found} tensors, and should have {declared}"
    )]
    PartTensors {
        /// Declared tensors of the whole model.
        declared: usize,
        /// Tensors in the parts.
        found: usize,
    },
    /// A version other than 2 and 3.
    #[error("GGUF version {0} is not supported (2 and 3 are)")]
    Version(u32),
    /// The header is invalid as a whole: counts out of range, or a truncated file.
    #[error("the GGUF header is damaged: {0}")]
    Header(String),
    /// A metadata entry is damaged.
    #[error("metadata key `{key}`: {problem}")]
    Key {
        /// The key, or its position if its name cannot be read.
        key: String,
        /// The problem of the entry.
        problem: String,
    },
    /// A tensor's description is damaged or its data is not in the file.
    #[error("tensor `{name}`: {problem}")]
    Tensor {
        /// The tensor, or its position if its name cannot be read.
        name: String,
        /// The problem of the tensor.
        problem: String,
    },
}

/// Quotes text of a file for a message of one line: truncated, because a file may hold megabytes of it, and with
/// escapes for characters that would break or rearrange the line.
pub fn quote(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut quoted = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == LONGEST {
            quoted.push('…');
            break;
        }
        if c.is_control() || rearranges(c) {
            quoted.extend(c.escape_default());
        } else {
            quoted.push(c);
        }
    }
    quoted
}

/// Returns true if a character separates lines or paragraphs, or changes the direction of the text behind it.
fn rearranges(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

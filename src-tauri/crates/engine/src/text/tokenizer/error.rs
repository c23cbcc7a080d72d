//! Errors of a file's tokenizer.

use super::split::WordSplit;

/// Error of a file's tokenizer.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// No vocabulary.
    #[error("the file has no vocabulary (`{0}`), and no tokenizer.json lies beside it")]
    Missing(&'static str),
    /// A vocabulary that does not distinguish control tokens from text.
    #[error(
        "the file does not say which of its tokens are control tokens (`{0}`), and nothing would keep text from becoming \
         one; convert the model again with a current version of llama.cpp"
    )]
    NoTypes(&'static str),
    /// An unsupported kind of tokenizer.
    #[error("`tokenizer.ggml.model`: `{0}` is not supported (`gpt2`, byte-level BPE, is)")]
    Model(String),
    /// An unsupported pre-tokeniser.
    #[error("`tokenizer.ggml.pre`: pre-tokenizer `{name}` is not supported ({known} are)", name = .0, known = WordSplit::known())]
    Split(String),
    /// A list is too long or does not have an entry for each token.
    #[error("`{key}` has {found} entries where {expected} belong")]
    Count {
        /// The metadata key.
        key: &'static str,
        /// The expected number of entries.
        expected: String,
        /// The number of entries.
        found: usize,
    },
    /// An invalid token.
    #[error("token {id} {problem}")]
    Token {
        /// Its id.
        id: u32,
        /// The problem.
        problem: &'static str,
    },
    /// A merge that is not a pair, or longer than any token.
    #[error("merge {index} (`{merge}`) {problem}")]
    Merge {
        /// Position in the list of merges.
        index: usize,
        /// The merge as it is written.
        merge: String,
        /// The problem.
        problem: &'static str,
    },
    /// Text with this byte could not be encoded.
    #[error("the vocabulary has no token for byte 0x{0:02x}")]
    Byte(u8),
    /// The tokenizer.json beside the model.
    #[error("tokenizer.json: {0}")]
    Json(String),
    /// The encoder refuses the vocabulary.
    #[error("the vocabulary cannot be used: {0}")]
    Encoder(String),
}

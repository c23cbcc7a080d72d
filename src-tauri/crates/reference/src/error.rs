//! Errors.

use std::io;

/// Errors of the reference.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] io::Error),
    /// Not a model that candle covers.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedModel),
    /// The model does not fit.
    #[error("candle needs {} MB of memory for this model, but only {} MB are free", needed >> 20, available >> 20)]
    Memory {
        /// Bytes that opening and running it needs.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// The sequence is empty.
    #[error("no tokens to read")]
    Empty,
    /// The sequence is longer than the context.
    #[error("{tokens} tokens are more than the reference's context of {context}")]
    TooLong {
        /// Tokens of the sequence.
        tokens: usize,
        /// Length of the context.
        context: usize,
    },
    /// A token outside the vocabulary.
    #[error("the model has no token {id}; its ids end at {last}", last = vocab.saturating_sub(1))]
    UnknownToken {
        /// The id.
        id: u32,
        /// Tokens in the vocabulary.
        vocab: usize,
    },
    /// candle failed.
    #[error("candle: {0}")]
    Candle(#[from] candle_core::Error),
}

/// Reasons why candle cannot compute a model, or would compute another one than the file describes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedModel {
    /// Another architecture, or none.
    #[error("candle compares `smollm3`, `llama`, `qwen2` and `qwen3` models only")]
    Architecture,
    /// The model is split into several files.
    #[error(
        "candle reads models in one file, and this one is in several; join them with llama.cpp's `llama-gguf-split --merge`"
    )]
    SeveralFiles,
    /// A key is missing, or is not the unsigned 32-bit integer that candle reads.
    #[error("metadata key `{0}` is missing or has a type that candle does not read")]
    Key(String),
    /// A dimension is 0 or contradicts another one.
    #[error("metadata key `{0}` contradicts the others")]
    Dimension(String),
    /// Positions are scaled.
    #[error("candle does not support YaRN or scaled positions, which this file uses")]
    ScaledPositions,
    /// The output matrix is not the embedding table.
    #[error(
        "candle's SmolLM3 uses the embedding table as output matrix, and this file has a separate one"
    )]
    OwnOutput,
    /// Only a part of each head is rotated.
    #[error("candle applies RoPE to whole heads, and this file to a part of each")]
    PartialRotation,
    /// Heads whose width does not follow from the embedding.
    #[error("candle divides the embedding by the heads, and this file has heads of another width")]
    HeadWidth,
    /// A tensor that changes the result and that candle does not read.
    #[error("candle does not read the tensor `{0}`, which this file has")]
    Tensor(String),
}

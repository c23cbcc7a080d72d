//! The dimensions of a model.

use serde::Serialize;

/// The dimensions of a model. The first words of each field name the GGUF key that it is read from, without the
/// architecture's prefix; widths and lengths are counted in values. A report has the sizes of the matrices: `eps` and
/// `rotary` are not serialised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// `block_count`: transformer layers.
    pub layers: usize,
    /// `embedding_length`: width E of the residual stream.
    pub embedding: usize,
    /// `feed_forward_length`: width F of the feed-forward network.
    pub feed_forward: usize,
    /// `attention.head_count`: query heads.
    pub heads: usize,
    /// `attention.head_count_kv`: key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// `attention.key_length`: length of a head's query, key and value vectors.
    pub head_dim: usize,
    /// Length of `tokenizer.ggml.tokens`: tokens V in the vocabulary.
    pub vocab: usize,
    /// `attention.layer_norm_rms_epsilon`: epsilon of every RMS norm.
    #[serde(skip)]
    pub eps: f32,
    /// `rope.dimension_count`: values at the start of each head that RoPE rotates, an even number.
    #[serde(skip)]
    pub rotary: usize,
    /// Every layer whose number, from 1, is a multiple of this has no RoPE; `None` if all have it.
    #[serde(skip)]
    pub unrotated_every: Option<usize>,
}

impl Shape {
    /// SmolLM3-3B. Source: HuggingFaceTB/SmolLM3-3B, config.json.
    pub const SMOLLM3_3B: Self = Self {
        layers: 36,
        embedding: 2048,
        feed_forward: 11_008,
        heads: 16,
        kv_heads: 4,
        head_dim: 128,
        vocab: 128_256,
        eps: 1e-6,
        rotary: 128,
        unrotated_every: Some(4),
    };

    /// Width H of all query heads together.
    pub fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width K of all key heads together, and of all value heads.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Returns true if layer `layer`, from 0, has RoPE.
    pub fn rotates(&self, layer: usize) -> bool {
        (self.unrotated_every).is_none_or(|every| !(layer + 1).is_multiple_of(every))
    }
}

//! The buffers of a pass: activations, logits and the sampler's state.

use crate::error::GpuError;
use crate::exec::executor::Executor;
use crate::plan::tiling::{MAX_CHUNKS, VOCAB_PARTS};
use crate::shape::Shape;

/// Format of activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActivationFormat {
    /// In groups of 32 with scales, for integer products.
    Int8,
    /// Scaled into the range of f16, for cooperative matrices.
    F16,
    F32,
}

/// Rows of activations, as int8 in groups of 32 with scales, or as f16 or f32.
pub(crate) struct ActivationBuffers<B> {
    bytes: B,
    scales: B,
    floats: B,
}

impl<B> ActivationBuffers<B> {
    pub(crate) fn new<E: Executor<Buffer = B>>(
        exec: &mut E,
        name: &str,
        values: usize,
    ) -> Result<ActivationBuffers<B>, GpuError> {
        Ok(ActivationBuffers {
            bytes: exec.buffer(name, values as u64)?,
            scales: exec.buffer(name, values as u64 / 2)?,
            floats: exec.buffer(name, 4 * values as u64)?,
        })
    }

    /// The buffers of a format.
    pub(crate) fn of(&self, format: ActivationFormat) -> Vec<&B> {
        match format {
            ActivationFormat::Int8 => vec![&self.bytes, &self.scales],
            ActivationFormat::F16 | ActivationFormat::F32 => vec![&self.floats],
        }
    }
}

/// The buffers of passes over up to `m` tokens. Widths: E embedding, F feed-forward, H heads × head_dim,
/// K kv_heads × head_dim, V vocabulary.
pub(crate) struct PassBuffers<B> {
    /// `[m]` token ids; the sampler writes the sampled token and its status.
    pub(crate) tokens: B,
    /// `[m, E]` the residual stream
    pub(crate) x: B,
    /// `[m, E]` norm(x)
    pub(crate) normed: ActivationBuffers<B>,
    /// `[m, H + 2 K]`
    pub(crate) qkv: B,
    /// `[m, H]` queries after RoPE
    pub(crate) queries: B,
    /// `[m, heads, chunks, head_dim]` unnormalised outputs of attention
    pub(crate) sums: B,
    /// `[m, heads, chunks, 2]` maximum and sum of each softmax
    pub(crate) stats: B,
    /// `[m, H]` output of attention
    pub(crate) attended: ActivationBuffers<B>,
    /// `[m, F]` silu(gate) ⊙ up
    pub(crate) gated: ActivationBuffers<B>,
    /// `[batch, V]`
    pub(crate) logits: B,
    /// The sampler's parameters.
    pub(crate) sampling: B,
    /// A bit per token of the vocabulary, set if it is never sampled.
    pub(crate) suppressed: B,
    /// `[parts, 4]` the sampler's statistics of each part of the logits
    pub(crate) vocab_stats: B,
}

impl<B> PassBuffers<B> {
    /// Allocates buffers for `m` tokens, and logits for `batch` of them.
    pub(crate) fn new<E: Executor<Buffer = B>>(
        exec: &mut E,
        shape: &Shape,
        m: usize,
        batch: usize,
    ) -> Result<PassBuffers<B>, GpuError> {
        let floats = |exec: &mut E, name: &str, values: usize| exec.buffer(name, 4 * values as u64);
        let (e, h, k) = (shape.embedding, shape.q_width(), shape.kv_width());
        // Only small batches split the KV cache into chunks.
        let partials = m.max(batch * MAX_CHUNKS) * shape.heads;
        Ok(PassBuffers {
            tokens: floats(exec, "tokens", m)?,
            x: floats(exec, "x", m * e)?,
            normed: ActivationBuffers::new(exec, "normed", m * e)?,
            qkv: floats(exec, "qkv", m * (h + 2 * k))?,
            queries: floats(exec, "queries", m * h)?,
            sums: floats(exec, "sums", partials * shape.head_dim)?,
            stats: floats(exec, "stats", partials * 2)?,
            attended: ActivationBuffers::new(exec, "attended", m * h)?,
            gated: ActivationBuffers::new(exec, "gated", m * shape.feed_forward)?,
            logits: floats(exec, "logits", batch * shape.vocab)?,
            sampling: floats(exec, "sampling", 4)?,
            suppressed: floats(exec, "suppressed", shape.vocab.div_ceil(32))?,
            vocab_stats: floats(exec, "vocab stats", 4 * VOCAB_PARTS)?,
        })
    }
}

//! A model's weights, wherever their matrices (`M`) and norms (`N`) are stored.

pub(crate) mod matrix;

/// All weights. Widths: E embedding, F feed-forward, H heads × head_dim, K kv_heads × head_dim, V vocabulary.
pub struct Weights<M, N> {
    /// `[V, E]`
    pub token_embd: M,
    /// One per layer.
    pub layers: Vec<Layer<M, N>>,
    /// `[E]`
    pub output_norm: N,
    /// `[V, E]`; `None` if the output head is tied to `token_embd`.
    pub output: Option<M>,
}

impl<M, N> Weights<M, N> {
    /// The output head: `output`, or `token_embd` if they are tied.
    pub fn head(&self) -> &M {
        self.output.as_ref().unwrap_or(&self.token_embd)
    }
}

/// One layer's weights.
pub struct Layer<M, N> {
    /// `[E]`
    pub attn_norm: N,
    /// `[H, E]`
    pub attn_q: M,
    /// `[K, E]`
    pub attn_k: M,
    /// `[K, E]`
    pub attn_v: M,
    /// `[E, H]`
    pub attn_output: M,
    /// `[E]`
    pub ffn_norm: N,
    /// `[F, E]`
    pub ffn_gate: M,
    /// `[F, E]`
    pub ffn_up: M,
    /// `[E, F]`
    pub ffn_down: M,
    /// Added to q `[H]`, k `[K]` and v `[K]`, if the model has biases.
    pub qkv_bias: Option<[N; 3]>,
    /// RMS norms of each head's query and key, `[head_dim]` each, if the model has them.
    pub head_norms: Option<[N; 2]>,
}

//! The architectures that run. They share one transformer block; this table holds all in which they differ.

/// Order in which a file stores the rotated pairs of q and k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotaryPairs {
    /// Values 2j and 2j + 1.
    Interleaved,
    /// Values j and j + half of the rotated ones. The rows are brought into interleaved order when they are loaded, so that
    /// one kernel rotates both.
    Halves,
}

/// Presence of tensors in the block of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A file that has them is another model.
    Absent,
    /// Used if the file has them.
    Optional,
    /// A file without them is incomplete.
    Required,
}

/// An architecture by its name in `general.architecture`, and its block.
#[derive(Debug, PartialEq)]
pub struct Architecture {
    /// `general.architecture`, and the prefix of its keys.
    pub name: &'static str,
    /// The models of this architecture, as people know them.
    pub models: &'static [&'static str],
    /// Every layer whose number, from 1, is a multiple of this has no rotary embedding. Files have no key for it.
    pub unrotated_every: Option<usize>,
    /// Order of the rotated values.
    pub pairs: RotaryPairs,
    /// `rope_freqs.weight`: divisors of the frequencies, `[rotary / 2]`.
    pub frequency_divisors: Presence,
    /// `attn_{q,k,v}.bias`.
    pub qkv_bias: Presence,
    /// `attn_{q,k}_norm.weight`: RMS norm of each head's query and key, before the rotation.
    pub head_norms: Presence,
    /// Factor of YaRN for a context beyond the trained one, where the publisher recommends one.
    pub yarn_factor: Option<usize>,
}

/// SmolLM3: huggingface.co/blog/smollm3, llama.cpp's `smollm3` graph.
pub static SMOLLM3: Architecture = Architecture {
    name: "smollm3",
    models: &["SmolLM3"],
    unrotated_every: Some(4),
    pairs: RotaryPairs::Interleaved,
    frequency_divisors: Presence::Absent,
    qkv_bias: Presence::Absent,
    head_norms: Presence::Absent,
    yarn_factor: Some(2),
};

/// Llama 1 to 3.3 and models with the same block, such as SmolLM2. The converter permutes q and k (`LlamaModel.permute`
/// of llama.cpp's convert_hf_to_gguf.py).
pub static LLAMA: Architecture = Architecture {
    name: "llama",
    models: &["SmolLM2", "Llama 3"],
    unrotated_every: None,
    pairs: RotaryPairs::Interleaved,
    frequency_divisors: Presence::Optional,
    qkv_bias: Presence::Optional,
    head_norms: Presence::Absent,
    yarn_factor: None,
};

/// Qwen 2 and 2.5, dense: arXiv 2412.15115, which extends the context by YaRN with a factor of 4.
pub static QWEN2: Architecture = Architecture {
    name: "qwen2",
    models: &["Qwen 2.5"],
    unrotated_every: None,
    pairs: RotaryPairs::Halves,
    frequency_divisors: Presence::Absent,
    qkv_bias: Presence::Required,
    head_norms: Presence::Absent,
    yarn_factor: Some(4),
};

/// Qwen 3, dense: arXiv 2505.09388, YaRN as for Qwen 2.5.
pub static QWEN3: Architecture = Architecture {
    name: "qwen3",
    models: &["Qwen 3"],
    unrotated_every: None,
    pairs: RotaryPairs::Halves,
    frequency_divisors: Presence::Absent,
    qkv_bias: Presence::Absent,
    head_norms: Presence::Required,
    yarn_factor: Some(4),
};

/// All architectures, the recommended model's first.
pub static ARCHITECTURES: [&Architecture; 4] = [&SMOLLM3, &LLAMA, &QWEN2, &QWEN3];

/// Tensors of a block that change its result and that no architecture here has.
const FOREIGN_PARTS: [&str; 19] = [
    "attn_qkv.weight",
    "attn_output.bias",
    "attn_sinks.weight",
    "attn_sub_norm.weight",
    "attn_norm_2.weight",
    "attn_post_norm.weight",
    "post_attention_norm.weight",
    "post_ffw_norm.weight",
    "ffn_post_norm.weight",
    "ffn_sub_norm.weight",
    "ffn_gate.bias",
    "ffn_up.bias",
    "ffn_down.bias",
    "ffn_gate_inp.weight",
    "ffn_gate_exps.weight",
    "ffn_up_exps.weight",
    "ffn_down_exps.weight",
    "ffn_gate_shexp.weight",
    "attn_norm.bias",
];

/// The three biases of a block.
pub const QKV_BIASES: [&str; 3] = ["attn_q.bias", "attn_k.bias", "attn_v.bias"];
/// The two head norms of a block.
pub const HEAD_NORMS: [&str; 2] = ["attn_q_norm.weight", "attn_k_norm.weight"];

impl Architecture {
    /// The architecture of this name.
    pub fn named(name: &str) -> Option<&'static Architecture> {
        ARCHITECTURES.into_iter().find(|it| it.name == name)
    }

    /// Parts of a block that change its result and that this architecture does not have.
    pub fn foreign_parts(&self) -> impl Iterator<Item = &'static str> {
        let biases = (self.qkv_bias == Presence::Absent).then_some(QKV_BIASES);
        let norms = (self.head_norms == Presence::Absent).then_some(HEAD_NORMS);
        FOREIGN_PARTS
            .into_iter()
            .chain(biases.into_iter().flatten())
            .chain(norms.into_iter().flatten())
    }
}

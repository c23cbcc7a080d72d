//! The model's dimensions, read from the file and checked against each other.

use gpu::Shape;
use kernels::BlockType;

use crate::gguf::{Gguf, TensorInfo, TensorView, Value, quote};
use crate::model::architecture::{Architecture, LLAMA, Presence, SMOLLM3};
use crate::model::kind::{model_kind, runnable};
use crate::model::rope::{Rope, Scaling, Yarn};

/// Bounds far above any model; within them, products of dimensions cannot overflow, and scratch for a few hundred
/// tokens of any width is small.
const MAX_LAYERS: usize = 1 << 10;
const MAX_WIDTH: usize = 1 << 17;
/// Below these widths, padding to whole vectors would take many times the memory of the weights.
const MIN_EMBEDDING: usize = 32;
const HEAD_DIM: std::ops::RangeInclusive<usize> = 16..=512;
/// Divisors of the rotary frequencies.
const FREQUENCY_DIVISORS: &str = "rope_freqs.weight";

/// Reason that the metadata do not describe a supported model.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Another architecture, or none.
    #[error("this is {kind}; Goldcrest runs {known} files", kind = model_kind(.0), known = runnable())]
    Architecture(String),
    /// A required key is missing or has the wrong type.
    #[error("metadata key `{0}` is missing or has the wrong type")]
    Missing(String),
    /// A key's value is out of range or contradicts others.
    #[error("metadata key `{key}`: {problem}")]
    Invalid {
        /// The key.
        key: String,
        /// The problem of its value.
        problem: String,
    },
    /// A tensor that the architecture does not have, or that has invalid values.
    #[error("tensor `{name}`: {problem}")]
    Tensor {
        /// The tensor.
        name: String,
        /// Its problem.
        problem: String,
    },
}

/// A model's architecture, its dimensions, the context that it was trained for, and its position embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The transformer block.
    pub architecture: &'static Architecture,
    /// Dimensions.
    pub shape: Shape,
    /// Context length in tokens that the model was trained for; that of its sliding window if it is shorter.
    pub context: usize,
    /// Context length that it was trained for, if a sliding window limits it.
    pub without_window: Option<usize>,
    /// Rotary position embedding.
    pub rope: Rope,
}

impl Config {
    /// SmolLM3-3B, without a file. Source: HuggingFaceTB/SmolLM3-3B, config.json.
    pub fn smollm3_3b() -> Self {
        Self {
            architecture: &SMOLLM3,
            shape: Shape::SMOLLM3_3B,
            context: 65_536,
            without_window: None,
            rope: Rope {
                theta: 5e6,
                scaling: Scaling::Linear { factor: 1.0 },
                divisors: Vec::new(),
            },
        }
    }

    /// A SmolLM2 of these dimensions. Source: config.json of the repositories HuggingFaceTB/SmolLM2-…-Instruct, which
    /// agree in all else.
    fn smollm2(layers: usize, embedding: usize, feed_forward: usize, heads: [usize; 2]) -> Self {
        let [heads, kv_heads] = heads;
        Self {
            architecture: &LLAMA,
            shape: Shape {
                layers,
                embedding,
                feed_forward,
                heads,
                kv_heads,
                head_dim: 64,
                vocab: 49_152,
                eps: 1e-5,
                rotary: 64,
                unrotated_every: None,
            },
            context: 8192,
            without_window: None,
            rope: Rope {
                theta: 1.3e5,
                scaling: Scaling::Linear { factor: 1.0 },
                divisors: Vec::new(),
            },
        }
    }

    /// Returns the dimensions of a published model by its name; `None` for one that is not in the list of known models.
    pub fn published(name: &str) -> Option<Self> {
        Some(match name {
            "SmolLM3-3B" => Self::smollm3_3b(),
            "SmolLM2-1.7B-Instruct" => Self::smollm2(24, 2048, 8192, [32, 32]),
            "SmolLM2-360M-Instruct" => Self::smollm2(32, 960, 2560, [15, 5]),
            _ => return None,
        })
    }

    /// Reads the dimensions from a file's metadata.
    ///
    /// # Errors
    /// Fails if the architecture is not supported, a key is missing, or values contradict each other.
    pub fn from_gguf(gguf: &Gguf) -> Result<Config, ConfigError> {
        let name = gguf.str("general.architecture").unwrap_or("nameless");
        let architecture =
            Architecture::named(name).ok_or_else(|| ConfigError::Architecture(quote(name)))?;
        let keys = Keys { gguf, architecture };
        keys.refuse_variants()?;
        let embedding = keys.dimension("embedding_length", MAX_WIDTH)?;
        if embedding < MIN_EMBEDDING {
            let problem = format!("{embedding} is not between {MIN_EMBEDDING} and {MAX_WIDTH}");
            return Err(keys.invalid("embedding_length", problem));
        }
        let heads = keys.dimension("attention.head_count", MAX_WIDTH)?;
        let kv_heads = keys
            .optional("attention.head_count_kv", MAX_WIDTH)?
            .unwrap_or(heads);
        if heads % kv_heads != 0 {
            let problem = format!("{kv_heads} does not divide the {heads} query heads");
            return Err(keys.invalid("attention.head_count_kv", problem));
        }
        let head_dim = head_dim(&keys, embedding, heads)?;
        let layers = keys.dimension("block_count", MAX_LAYERS)?;
        refuse_foreign_parts(gguf, architecture, layers)?;
        let rotary = rotary(&keys, head_dim)?;
        let shape = Shape {
            layers,
            embedding,
            feed_forward: keys.dimension("feed_forward_length", MAX_WIDTH)?,
            heads,
            kv_heads,
            head_dim,
            vocab: vocab(gguf)?,
            eps: keys.positive("attention.layer_norm_rms_epsilon", None)?,
            rotary,
            unrotated_every: architecture.unrotated_every,
        };
        let context = keys.dimension("context_length", u32::MAX as usize)?;
        let window = keys
            .optional("attention.sliding_window", u32::MAX as usize)?
            .filter(|&window| window < context);
        Ok(Config {
            architecture,
            context: window.unwrap_or(context),
            without_window: window.map(|_| context),
            rope: rope(&keys, rotary)?,
            shape,
        })
    }

    /// The longest context that the model runs with: the trained one, or its extension by YaRN. A file
    /// with another kind of scaling sets its own limit.
    pub fn longest_context(&self) -> usize {
        match &self.rope.scaling {
            _ if self.without_window.is_some() => self.context,
            Scaling::Linear { factor: 1.0 } => {
                let factor = self.architecture.yarn_factor.unwrap_or(1);
                self.context.saturating_mul(factor)
            }
            Scaling::Linear { .. } => self.context,
            Scaling::Yarn(yarn) => {
                let extended = f64::from(yarn.factor) * yarn.original_context as f64;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a positive number of tokens, cut to what fits"
                )]
                let extended = extended.min(f64::from(u32::MAX)) as usize;
                self.context.max(extended)
            }
        }
    }

    /// Returns true if a context of this length needs YaRN in addition to the scaling of the file.
    pub fn needs_yarn(&self, context: usize) -> bool {
        context > self.context && self.rope.scaling == Scaling::Linear { factor: 1.0 }
    }

    /// Returns the configuration for a context of this length: with YaRN if that is longer than the trained one.
    #[must_use]
    pub fn for_context(&self, context: usize) -> Config {
        let mut config = self.clone();
        if self.needs_yarn(context) {
            config.rope.scaling = Scaling::Yarn(Yarn {
                factor: self.architecture.yarn_factor.unwrap_or(1) as f32,
                original_context: self.context,
                beta_fast: 32.0,
                beta_slow: 1.0,
                attention_factor: 1.0,
            });
        }
        config
    }

    /// Returns the same model with this number of layers.
    #[must_use]
    pub fn with_layers(&self, layers: usize) -> Config {
        let mut config = self.clone();
        config.shape.layers = layers;
        config
    }

    /// Multiply-accumulates per token in the matrices of all layers.
    pub fn products_per_token(&self) -> u64 {
        let shape = &self.shape;
        let attention = 2 * shape.embedding * (shape.q_width() + shape.kv_width());
        let layer = attention + 3 * shape.embedding * shape.feed_forward;
        (shape.layers * layer) as u64
    }
}

fn head_dim(keys: &Keys<'_>, embedding: usize, heads: usize) -> Result<usize, ConfigError> {
    let given = keys.optional("attention.key_length", MAX_WIDTH)?;
    if given.is_none() && !embedding.is_multiple_of(heads) {
        let problem = format!("{heads} heads do not divide an embedding of {embedding}");
        return Err(keys.invalid("attention.head_count", problem));
    }
    let head_dim = given.unwrap_or(embedding / heads);
    if !HEAD_DIM.contains(&head_dim) || head_dim * heads > MAX_WIDTH {
        let key = match given {
            Some(_) => "attention.key_length",
            None => "attention.head_count",
        };
        return Err(keys.invalid(
            key,
            format!("{heads} heads of {head_dim} values are not supported"),
        ));
    }
    if keys
        .optional("attention.value_length", MAX_WIDTH)?
        .is_some_and(|value| value != head_dim)
    {
        return Err(keys.invalid(
            "attention.value_length",
            format!("it differs from the key length {head_dim}"),
        ));
    }
    Ok(head_dim)
}

/// The length of the token list; the rows of the embedding table if the tokenizer is in a separate file.
fn vocab(gguf: &Gguf) -> Result<usize, ConfigError> {
    const TOKENS: &str = "tokenizer.ggml.tokens";
    let tokens = match gguf.get(TOKENS) {
        Some(Value::Array(tokens)) => Some(tokens.len()),
        _ => gguf.tensor_info("token_embd.weight").map(TensorInfo::rows),
    };
    tokens
        .filter(|&tokens| tokens > 0 && tokens <= u32::MAX as usize)
        .ok_or_else(|| ConfigError::Missing(TOKENS.to_owned()))
}

fn rotary(keys: &Keys<'_>, head_dim: usize) -> Result<usize, ConfigError> {
    let rotary = keys
        .optional("rope.dimension_count", MAX_WIDTH)?
        .unwrap_or(head_dim);
    if rotary > head_dim || rotary % 2 != 0 {
        let problem =
            format!("{rotary} of the {head_dim} values of a head cannot be rotated in pairs");
        return Err(keys.invalid("rope.dimension_count", problem));
    }
    Ok(rotary)
}

fn rope(keys: &Keys<'_>, rotary: usize) -> Result<Rope, ConfigError> {
    let theta = keys.positive("rope.freq_base", Some(10_000.0))?;
    if theta <= 1.0 {
        return Err(keys.invalid("rope.freq_base", format!("{theta} is not above 1")));
    }
    let divisors = match keys.architecture.frequency_divisors {
        Presence::Absent => Vec::new(),
        _ => divisors(keys.gguf, rotary)?,
    };
    Ok(Rope {
        theta,
        scaling: scaling(keys)?,
        divisors,
    })
}

/// The values of `rope_freqs.weight`, one for each rotated pair; empty if the file has none.
fn divisors(gguf: &Gguf, rotary: usize) -> Result<Vec<f32>, ConfigError> {
    let Some(tensor) = gguf.tensor(FREQUENCY_DIVISORS) else {
        return Ok(Vec::new());
    };
    let error = |problem: String| ConfigError::Tensor {
        name: FREQUENCY_DIVISORS.to_owned(),
        problem,
    };
    if (tensor.rows, tensor.cols) != (1, rotary / 2) || tensor.ty != BlockType::F32 {
        let TensorView { ty, rows, cols, .. } = tensor;
        return Err(error(format!(
            "{rows} × {cols} values of type {} where {} in F32 are required",
            ty.name(),
            rotary / 2
        )));
    }
    let bytes = tensor
        .bytes
        .read()
        .map_err(|reason| error(format!("it cannot be read: {reason}")))?;
    let values = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes));
    let values: Vec<f32> = values.collect();
    match values
        .iter()
        .find(|value| !(value.is_normal() && **value > 0.0))
    {
        Some(value) => Err(error(format!("{value} is no positive number"))),
        None => Ok(values),
    }
}

fn scaling(keys: &Keys<'_>) -> Result<Scaling, ConfigError> {
    const TYPE: &str = "rope.scaling.type";
    let factor = keys.positive("rope.scaling.factor", Some(1.0))?;
    match keys.gguf.str(&keys.name(TYPE)) {
        // llama.cpp takes a bare factor for linear scaling.
        None | Some("linear") => Ok(Scaling::Linear { factor }),
        Some("none") => Ok(Scaling::Linear { factor: 1.0 }),
        Some("yarn") => {
            let original = "rope.scaling.original_context_length";
            let original_context = match keys.optional(original, u32::MAX as usize)? {
                Some(context) => context,
                None => keys.dimension("context_length", u32::MAX as usize)?,
            };
            Ok(Scaling::Yarn(Yarn {
                factor,
                original_context,
                beta_fast: keys.positive("rope.scaling.yarn_beta_fast", Some(32.0))?,
                beta_slow: keys.positive("rope.scaling.yarn_beta_slow", Some(1.0))?,
                attention_factor: keys.positive("rope.scaling.attn_factor", Some(1.0))?,
            }))
        }
        Some(other) => Err(keys.invalid(TYPE, format!("`{}` is not supported", quote(other)))),
    }
}

/// Refuses tensors that change the result of a block and that the architecture does not have.
fn refuse_foreign_parts(
    gguf: &Gguf,
    architecture: &Architecture,
    layers: usize,
) -> Result<(), ConfigError> {
    for part in architecture.foreign_parts() {
        for layer in 0..layers {
            let name = format!("blk.{layer}.{part}");
            if gguf.tensor_info(&name).is_some() || gguf.unsupported_tensor(&name).is_some() {
                let problem = format!("`{}` models with it are not supported", architecture.name);
                return Err(ConfigError::Tensor { name, problem });
            }
        }
    }
    Ok(())
}

/// The keys of the architecture, without their prefix.
struct Keys<'a> {
    gguf: &'a Gguf,
    architecture: &'static Architecture,
}

impl Keys<'_> {
    /// Refuses keys that change the computation in a way that is not supported.
    fn refuse_variants(&self) -> Result<(), ConfigError> {
        const COUNTS: [&str; 2] = ["expert_count", "expert_used_count"];
        const SCALES: [&str; 4] = [
            "logit_scale",
            "residual_scale",
            "embedding_scale",
            "attention.scale",
        ];
        for key in COUNTS {
            let count = self.gguf.get(&self.name(key)).and_then(|it| it.as_u64());
            if let Some(count) = count.filter(|&count| count > 0) {
                let problem = format!("{count}: models of experts are not supported");
                return Err(self.invalid(key, problem));
            }
        }
        for key in SCALES {
            let scale = self.gguf.f32(&self.name(key)).unwrap_or(1.0);
            if scale != 1.0 && scale != 0.0 {
                return Err(self.invalid(key, format!("a scale of {scale} is not supported")));
            }
        }
        Ok(())
    }

    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture.name)
    }

    fn invalid(&self, key: &str, problem: String) -> ConfigError {
        ConfigError::Invalid {
            key: self.name(key),
            problem,
        }
    }

    fn optional(&self, key: &str, most: usize) -> Result<Option<usize>, ConfigError> {
        let Some(value) = self.gguf.get(&self.name(key)) else {
            return Ok(None);
        };
        let value = value
            .as_u64()
            .ok_or_else(|| ConfigError::Missing(self.name(key)))?;
        match usize::try_from(value) {
            Ok(value) if (1..=most).contains(&value) => Ok(Some(value)),
            _ => Err(self.invalid(key, format!("{value} is not between 1 and {most}"))),
        }
    }

    fn dimension(&self, key: &str, most: usize) -> Result<usize, ConfigError> {
        self.optional(key, most)?
            .ok_or_else(|| ConfigError::Missing(self.name(key)))
    }

    fn positive(&self, key: &str, default: Option<f32>) -> Result<f32, ConfigError> {
        let value = match (self.gguf.get(&self.name(key)), default) {
            (None, Some(default)) => return Ok(default),
            _ => self
                .gguf
                .f32(&self.name(key))
                .ok_or_else(|| ConfigError::Missing(self.name(key)))?,
        };
        if value.is_finite() && value > 0.0 {
            Ok(value)
        } else {
            Err(self.invalid(key, format!("{value} is not a positive number")))
        }
    }
}

#[cfg(test)]
mod tests;

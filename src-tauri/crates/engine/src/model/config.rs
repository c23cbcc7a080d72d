//! The model's dimensions, read from the file and checked against each other.

use gpu::Shape;

use crate::gguf::{Gguf, TensorInfo, Value, quote};
use crate::model::rope::{Rope, Scaling, Yarn};

/// The supported architecture.
pub const ARCHITECTURE: &str = "smollm3";

/// Bounds far above any model; within them, products of dimensions cannot overflow, and scratch for a few hundred
/// tokens of any width is small.
const MAX_LAYERS: usize = 1 << 10;
const MAX_WIDTH: usize = 1 << 17;
/// Below these widths, padding to whole vectors would take many times the memory of the weights.
const MIN_EMBEDDING: usize = 32;
const HEAD_DIM: std::ops::RangeInclusive<usize> = 16..=512;
/// Factor of YaRN for a context beyond the trained one: SmolLM3's own recipe.
const YARN_FACTOR: usize = 2;

/// Why the metadata do not describe a supported model.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Another architecture, or none.
    #[error("the file holds a `{0}` model; Goldcrest runs `{ARCHITECTURE}` models")]
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
}

/// A SmolLM3 model's dimensions, the context that it was trained for, and its position embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Dimensions.
    pub shape: Shape,
    /// Context length that the model was trained for, in tokens.
    pub context: usize,
    /// Rotary position embedding.
    pub rope: Rope,
}

impl Config {
    /// SmolLM3-3B, for which no file need be there. Source: HuggingFaceTB/SmolLM3-3B, config.json.
    pub fn smollm3_3b() -> Self {
        Self {
            shape: Shape::SMOLLM3_3B,
            context: 65_536,
            rope: Rope {
                theta: 5e6,
                scaling: Scaling::Linear { factor: 1.0 },
            },
        }
    }

    /// Reads the dimensions from a file's metadata.
    ///
    /// # Errors
    /// When the architecture is another one, a key is missing, or values contradict each other.
    pub fn from_gguf(gguf: &Gguf) -> Result<Config, ConfigError> {
        let architecture = gguf.str("general.architecture").unwrap_or("nameless");
        if architecture != ARCHITECTURE {
            return Err(ConfigError::Architecture(quote(architecture)));
        }
        let keys = Keys(gguf);
        let embedding = keys.dimension("embedding_length", MAX_WIDTH)?;
        if embedding < MIN_EMBEDDING {
            let problem = format!("{embedding} is not between {MIN_EMBEDDING} and {MAX_WIDTH}");
            return Err(invalid("embedding_length", problem));
        }
        let heads = keys.dimension("attention.head_count", MAX_WIDTH)?;
        let kv_heads = keys
            .optional("attention.head_count_kv", MAX_WIDTH)?
            .unwrap_or(heads);
        if heads % kv_heads != 0 {
            let problem = format!("{kv_heads} does not divide the {heads} query heads");
            return Err(invalid("attention.head_count_kv", problem));
        }
        let head_dim = head_dim(&keys, embedding, heads)?;
        let shape = Shape {
            layers: keys.dimension("block_count", MAX_LAYERS)?,
            embedding,
            feed_forward: keys.dimension("feed_forward_length", MAX_WIDTH)?,
            heads,
            kv_heads,
            head_dim,
            vocab: vocab(gguf)?,
            eps: keys.positive("attention.layer_norm_rms_epsilon", None)?,
            rotary: rotary(&keys, head_dim)?,
        };
        Ok(Config {
            context: keys.dimension("context_length", u32::MAX as usize)?,
            rope: rope(&keys)?,
            shape,
        })
    }

    /// The longest context that the model runs with: the trained one, or its extension by YaRN. A file
    /// with another kind of scaling sets its own limit.
    pub fn longest_context(&self) -> usize {
        match &self.rope.scaling {
            Scaling::Linear { factor: 1.0 } => self.context.saturating_mul(YARN_FACTOR),
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

    /// Whether a context of this length needs YaRN in addition to the scaling of the file.
    pub fn needs_yarn(&self, context: usize) -> bool {
        context > self.context && self.rope.scaling == Scaling::Linear { factor: 1.0 }
    }

    /// The configuration for a context of this length: with YaRN where that is longer than the trained one.
    #[must_use]
    pub fn for_context(&self, context: usize) -> Config {
        let mut config = self.clone();
        if self.needs_yarn(context) {
            config.rope.scaling = Scaling::Yarn(Yarn {
                factor: YARN_FACTOR as f32,
                original_context: self.context,
                beta_fast: 32.0,
                beta_slow: 1.0,
                attention_factor: 1.0,
            });
        }
        config
    }

    /// The same model with this number of layers.
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
        return Err(invalid("attention.head_count", problem));
    }
    let head_dim = given.unwrap_or(embedding / heads);
    if !HEAD_DIM.contains(&head_dim) || head_dim * heads > MAX_WIDTH {
        let key = match given {
            Some(_) => "attention.key_length",
            None => "attention.head_count",
        };
        return Err(invalid(
            key,
            format!("{heads} heads of {head_dim} values are not supported"),
        ));
    }
    if keys
        .optional("attention.value_length", MAX_WIDTH)?
        .is_some_and(|value| value != head_dim)
    {
        return Err(invalid(
            "attention.value_length",
            format!("it differs from the key length {head_dim}"),
        ));
    }
    Ok(head_dim)
}

/// The length of the token list; the rows of the embedding table where the tokenizer is in a separate file.
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
        return Err(invalid("rope.dimension_count", problem));
    }
    Ok(rotary)
}

fn rope(keys: &Keys<'_>) -> Result<Rope, ConfigError> {
    let theta = keys.positive("rope.freq_base", Some(10_000.0))?;
    if theta <= 1.0 {
        return Err(invalid("rope.freq_base", format!("{theta} is not above 1")));
    }
    Ok(Rope {
        theta,
        scaling: scaling(keys)?,
    })
}

fn scaling(keys: &Keys<'_>) -> Result<Scaling, ConfigError> {
    const TYPE: &str = "rope.scaling.type";
    let factor = keys.positive("rope.scaling.factor", Some(1.0))?;
    match keys.0.str(&name(TYPE)) {
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
        Some(other) => Err(invalid(
            TYPE,
            format!("`{}` is not supported", quote(other)),
        )),
    }
}

/// The keys of the architecture, without their prefix.
struct Keys<'a>(&'a Gguf);

impl Keys<'_> {
    fn optional(&self, key: &str, most: usize) -> Result<Option<usize>, ConfigError> {
        let Some(value) = self.0.get(&name(key)) else {
            return Ok(None);
        };
        let value = value
            .as_u64()
            .ok_or_else(|| ConfigError::Missing(name(key)))?;
        match usize::try_from(value) {
            Ok(value) if (1..=most).contains(&value) => Ok(Some(value)),
            _ => Err(invalid(key, format!("{value} is not between 1 and {most}"))),
        }
    }

    fn dimension(&self, key: &str, most: usize) -> Result<usize, ConfigError> {
        self.optional(key, most)?
            .ok_or_else(|| ConfigError::Missing(name(key)))
    }

    fn positive(&self, key: &str, default: Option<f32>) -> Result<f32, ConfigError> {
        let value = match (self.0.get(&name(key)), default) {
            (None, Some(default)) => return Ok(default),
            _ => self
                .0
                .f32(&name(key))
                .ok_or_else(|| ConfigError::Missing(name(key)))?,
        };
        if value.is_finite() && value > 0.0 {
            Ok(value)
        } else {
            Err(invalid(key, format!("{value} is not a positive number")))
        }
    }
}

fn name(key: &str) -> String {
    format!("{ARCHITECTURE}.{key}")
}

fn invalid(key: &str, problem: String) -> ConfigError {
    ConfigError::Invalid {
        key: name(key),
        problem,
    }
}

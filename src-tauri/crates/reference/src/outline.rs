//! The part of a file's header that candle depends on.

use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{Content, Value};

use crate::error::{ReferenceError, UnsupportedModel};

/// Positions for which candle allocates its cache up front, and the longest sequence that is read here.
pub const MOST_CONTEXT: usize = 4096;

const EMBEDDING: &str = "token_embd.weight";
const OWN_HEAD: &str = "output.weight";
/// Memory beyond what is counted: activations, the threads' stacks, the allocator.
const OVERHEAD: u64 = 256 << 20;

/// An architecture that candle runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `smollm3`.
    SmolLm3,
    /// `llama`.
    Llama,
    /// `qwen2`.
    Qwen2,
    /// `qwen3`.
    Qwen3,
}

impl Family {
    fn named(name: &str) -> Option<Family> {
        let all = [Self::SmolLm3, Self::Llama, Self::Qwen2, Self::Qwen3];
        all.into_iter().find(|it| it.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::SmolLm3 => "smollm3",
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }
}

/// The dimensions and sizes of a file, from its header alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOutline {
    /// Its architecture.
    pub architecture: Family,
    /// Tokens in the vocabulary.
    pub vocab: usize,
    /// The longest sequence in tokens: what the model was trained for, at most [`MOST_CONTEXT`].
    pub context: usize,
    /// Bytes of memory that opening and running it needs, with a margin.
    pub memory: u64,
}

impl ModelOutline {
    /// Reads the header of a GGUF file.
    ///
    /// # Errors
    /// Fails if it cannot be read, or candle does not cover the model.
    pub fn read(path: &Path) -> Result<ModelOutline, ReferenceError> {
        let mut file = File::open(path)?;
        let content = Content::read(&mut file)?;
        Ok(ModelOutline::of(&content)?)
    }

    fn of(content: &Content) -> Result<ModelOutline, UnsupportedModel> {
        let architecture = match content.metadata.get("general.architecture") {
            Some(Value::String(name)) => Family::named(name),
            _ => None,
        };
        let header = OutlineKeys {
            content,
            architecture: architecture.ok_or(UnsupportedModel::Architecture)?,
        };
        if header.is_part() {
            return Err(UnsupportedModel::SeveralFiles);
        }
        let architecture = header.architecture;
        let layers = header.dimension("block_count")?;
        let embedding = header.dimension("embedding_length")?;
        let feed_forward = header.dimension("feed_forward_length")?;
        let heads = header.dimension("attention.head_count")?;
        let kv_heads = header.dimension("attention.head_count_kv")?;
        let trained = header.dimension("context_length")?;
        if architecture == Family::SmolLm3 {
            // candle requires the key, though the embedding table decides.
            header.dimension("vocab_size")?;
        }
        let head_dim = match header.optional("attention.key_length")? {
            Some(length) => length,
            None => embedding / heads,
        };
        let rotated = header.optional("rope.dimension_count")?;
        if rotated.unwrap_or(head_dim) != head_dim {
            return Err(UnsupportedModel::PartialRotation);
        }
        let divides = matches!(architecture, Family::Llama | Family::Qwen2);
        if divides && head_dim * heads != embedding {
            return Err(UnsupportedModel::HeadWidth);
        }
        if heads % kv_heads != 0 {
            return Err(header.contradicts("attention.head_count_kv"));
        }
        header.check_scaling()?;
        header.check_tensors()?;
        let table = content.tensor_infos.get(EMBEDDING);
        let vocab = match table.map(|table| table.shape.dims()) {
            Some(&[rows, cols]) if rows > 0 && cols == embedding => rows,
            _ => return Err(header.contradicts("embedding_length")),
        };
        let size = |count: usize| count as u64;
        let product = |factors: &[usize]| {
            let factors = factors.iter().map(|&factor| size(factor));
            factors.fold(1, u64::saturating_mul)
        };
        // f32, twice while the output matrix is made of it; the matrix in 8 bits with a scale for each 32 values.
        let table = product(&[vocab, embedding]);
        let tables = table.saturating_mul(8).saturating_add(table / 32 * 34);
        let cache = product(&[layers, kv_heads, head_dim, 2, 4, MOST_CONTEXT]);
        // Angles, cosines and sines as tensors, and the latter two once more as plain values.
        let rotation = product(&[trained, head_dim / 2, 4, 5]);
        let activations = product(&[MOST_TOGETHER, 4, 8, feed_forward.max(embedding)]);
        let memory = header
            .tensor_bytes()
            .saturating_add(header.largest_tensor())
            .saturating_add(tables)
            .saturating_add(cache)
            .saturating_add(rotation)
            .saturating_add(activations)
            .saturating_add(OVERHEAD);
        Ok(ModelOutline {
            architecture,
            vocab,
            context: trained.min(MOST_CONTEXT),
            memory,
        })
    }
}

/// Tokens of a prompt that are read in one pass.
pub(crate) const MOST_TOGETHER: usize = 64;

struct OutlineKeys<'a> {
    content: &'a Content,
    architecture: Family,
}

impl OutlineKeys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture.name())
    }

    fn contradicts(&self, name: &str) -> UnsupportedModel {
        UnsupportedModel::Dimension(self.key(name))
    }

    /// Refuses tensors that change the result and that candle ignores.
    fn check_tensors(&self) -> Result<(), UnsupportedModel> {
        let has = |name: &str| self.content.tensor_infos.contains_key(name);
        match self.architecture {
            Family::SmolLm3 if has(OWN_HEAD) => Err(UnsupportedModel::OwnOutput),
            Family::Llama => {
                let unread = ["rope_freqs.weight", "blk.0.attn_q.bias"];
                let found = unread.into_iter().find(|name| has(name));
                found.map_or(Ok(()), |name| {
                    Err(UnsupportedModel::Tensor(name.to_owned()))
                })
            }
            _ => Ok(()),
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.content.metadata.get(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns whether the file is one of several.
    fn is_part(&self) -> bool {
        let count = self.content.metadata.get("split.count");
        match count {
            Some(&Value::U16(count)) => count > 1,
            Some(&Value::U32(count)) => count > 1,
            _ => false,
        }
    }

    fn optional(&self, name: &str) -> Result<Option<usize>, UnsupportedModel> {
        let name = self.key(name);
        match self.content.metadata.get(&name) {
            None => Ok(None),
            Some(Value::U32(0)) => Err(UnsupportedModel::Dimension(name)),
            Some(&Value::U32(value)) => usize::try_from(value)
                .map_or(Err(UnsupportedModel::Dimension(name)), |it| Ok(Some(it))),
            Some(_) => Err(UnsupportedModel::Key(name)),
        }
    }

    fn dimension(&self, name: &str) -> Result<usize, UnsupportedModel> {
        self.optional(name)?
            .ok_or_else(|| UnsupportedModel::Key(self.key(name)))
    }

    fn check_scaling(&self) -> Result<(), UnsupportedModel> {
        let factor = match self.content.metadata.get(&self.key("rope.scaling.factor")) {
            None => 1.0,
            Some(&Value::F32(factor)) => factor,
            Some(_) => return Err(UnsupportedModel::Key(self.key("rope.scaling.factor"))),
        };
        match self.text(&self.key("rope.scaling.type")) {
            Some("none") => Ok(()),
            None | Some("linear") if factor == 1.0 => Ok(()),
            _ => Err(UnsupportedModel::ScaledPositions),
        }
    }

    fn sizes(&self) -> impl Iterator<Item = u64> {
        self.content.tensor_infos.values().map(|tensor| {
            let ty = tensor.ggml_dtype;
            let values = tensor.shape.dims().iter().map(|&dim| dim as u64);
            let blocks = values.fold(1, u64::saturating_mul) / ty.block_size() as u64;
            blocks.saturating_mul(ty.type_size() as u64)
        })
    }

    fn tensor_bytes(&self) -> u64 {
        self.sizes().fold(0, u64::saturating_add)
    }

    /// Returns the size of the largest tensor, which is held twice while it is read.
    fn largest_tensor(&self) -> u64 {
        self.sizes().max().unwrap_or(0)
    }
}

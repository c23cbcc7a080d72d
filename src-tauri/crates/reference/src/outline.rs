//! What a file's header says, as far as candle's SmolLM3 depends on it.

use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{Content, Value};

use crate::error::{ARCHITECTURE, ReferenceError, UnsupportedModel};

/// Positions for which candle allocates its cache at once, and the longest sequence that is read here.
pub const MOST_CONTEXT: usize = 4096;

const EMBEDDING: &str = "token_embd.weight";
const OWN_HEAD: &str = "output.weight";
/// Memory beside all that is counted: activations, the threads' stacks, the allocator.
const OVERHEAD: u64 = 256 << 20;

/// The dimensions and sizes of a file, from its header alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOutline {
    /// Tokens in the vocabulary.
    pub vocab: usize,
    /// The longest sequence in tokens: what the model was trained for, at most [`MOST_CONTEXT`].
    pub context: usize,
    /// Bytes of memory that opening and running it takes, with a margin.
    pub memory: u64,
}

impl ModelOutline {
    /// Reads the header of a GGUF file.
    ///
    /// # Errors
    /// When it cannot be read, or candle's SmolLM3 does not cover the model.
    pub fn read(path: &Path) -> Result<ModelOutline, ReferenceError> {
        let mut file = File::open(path)?;
        let content = Content::read(&mut file)?;
        Ok(ModelOutline::of(&OutlineKeys(&content))?)
    }

    fn of(header: &OutlineKeys<'_>) -> Result<ModelOutline, UnsupportedModel> {
        if header.is_part() {
            return Err(UnsupportedModel::SeveralFiles);
        }
        if header.text("general.architecture") != Some(ARCHITECTURE) {
            return Err(UnsupportedModel::Architecture);
        }
        let layers = header.dimension("block_count")?;
        let embedding = header.dimension("embedding_length")?;
        let feed_forward = header.dimension("feed_forward_length")?;
        let heads = header.dimension("attention.head_count")?;
        let kv_heads = header.dimension("attention.head_count_kv")?;
        let trained = header.dimension("context_length")?;
        // candle reads it, though the embedding table decides.
        header.dimension("vocab_size")?;
        let head_dim = match header.optional("attention.key_length")? {
            Some(length) => length,
            None => embedding / heads,
        };
        let rotated = header.dimension("rope.dimension_count")?;
        if rotated != head_dim {
            return Err(UnsupportedModel::PartialRotation);
        }
        if heads % kv_heads != 0 {
            return Err(UnsupportedModel::Dimension(key("attention.head_count_kv")));
        }
        header.check_scaling()?;
        if header.0.tensor_infos.contains_key(OWN_HEAD) {
            return Err(UnsupportedModel::OwnOutput);
        }
        let table = header.0.tensor_infos.get(EMBEDDING);
        let vocab = match table.map(|table| table.shape.dims()) {
            Some(&[rows, cols]) if rows > 0 && cols == embedding => rows,
            _ => return Err(UnsupportedModel::Dimension(key("embedding_length"))),
        };
        let size = |count: usize| count as u64;
        let product = |factors: &[usize]| {
            let factors = factors.iter().map(|&factor| size(factor));
            factors.fold(1, u64::saturating_mul)
        };
        // In f32, twice while the output matrix is made of it; and that in 8 bits with a scale for each 32 values.
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
            vocab,
            context: trained.min(MOST_CONTEXT),
            memory,
        })
    }
}

/// Tokens of a prompt that are read in one pass.
pub(crate) const MOST_TOGETHER: usize = 64;

struct OutlineKeys<'a>(&'a Content);

impl OutlineKeys<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        match self.0.metadata.get(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns whether the file is one of several.
    fn is_part(&self) -> bool {
        let count = self.0.metadata.get("split.count");
        match count {
            Some(&Value::U16(count)) => count > 1,
            Some(&Value::U32(count)) => count > 1,
            _ => false,
        }
    }

    fn optional(&self, name: &str) -> Result<Option<usize>, UnsupportedModel> {
        let name = key(name);
        match self.0.metadata.get(&name) {
            None => Ok(None),
            Some(Value::U32(0)) => Err(UnsupportedModel::Dimension(name)),
            Some(&Value::U32(value)) => usize::try_from(value)
                .map_or(Err(UnsupportedModel::Dimension(name)), |it| Ok(Some(it))),
            Some(_) => Err(UnsupportedModel::Key(name)),
        }
    }

    fn dimension(&self, name: &str) -> Result<usize, UnsupportedModel> {
        self.optional(name)?
            .ok_or_else(|| UnsupportedModel::Key(key(name)))
    }

    fn check_scaling(&self) -> Result<(), UnsupportedModel> {
        let factor = match self.0.metadata.get(&key("rope.scaling.factor")) {
            None => 1.0,
            Some(&Value::F32(factor)) => factor,
            Some(_) => return Err(UnsupportedModel::Key(key("rope.scaling.factor"))),
        };
        match self.text(&key("rope.scaling.type")) {
            Some("none") => Ok(()),
            None | Some("linear") if factor == 1.0 => Ok(()),
            _ => Err(UnsupportedModel::ScaledPositions),
        }
    }

    fn sizes(&self) -> impl Iterator<Item = u64> {
        self.0.tensor_infos.values().map(|tensor| {
            let ty = tensor.ggml_dtype;
            let values = tensor.shape.dims().iter().map(|&dim| dim as u64);
            let blocks = values.fold(1, u64::saturating_mul) / ty.block_size() as u64;
            blocks.saturating_mul(ty.type_size() as u64)
        })
    }

    fn tensor_bytes(&self) -> u64 {
        self.sizes().fold(0, u64::saturating_add)
    }

    /// It is held twice while it is read.
    fn largest_tensor(&self) -> u64 {
        self.sizes().max().unwrap_or(0)
    }
}

fn key(name: &str) -> String {
    format!("{ARCHITECTURE}.{name}")
}

//! A model in floats from either kind of input: metadata, and the location of each tensor's rows.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use engine::gguf::write::{self, Field};
use engine::model::architecture::{Presence, RotaryPairs};
use engine::{Config, Gguf};
use half::{bf16, f16};
use kernels::{BlockType, read_exact_at};

use crate::error::QuantizeError;

/// A model's metadata and tensors.
pub(crate) struct FloatModel {
    /// The input as the user named it.
    pub(crate) path: PathBuf,
    /// Metadata without `general.file_type` and `general.quantization_version`.
    pub(crate) fields: Vec<(String, Field)>,
    /// Dimensions, from the metadata.
    pub(crate) config: Config,
    /// Tensors in the order in which they are written.
    pub(crate) tensors: Vec<FloatTensor>,
    /// The files that hold tensors.
    pub(crate) files: Vec<InputFile>,
}

/// A file of the input.
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

/// A matrix or a vector of floats in an input file.
pub(crate) struct FloatTensor {
    /// Its name in a GGUF file.
    pub(crate) name: String,
    /// Its name in the input.
    pub(crate) source_name: String,
    /// F32, F16 or BF16.
    pub(crate) ty: BlockType,
    /// Dimensions, fastest first.
    pub(crate) dims: Vec<usize>,
    /// The input file that holds it.
    pub(crate) file: usize,
    /// Offset of its data there.
    pub(crate) start: u64,
    /// Its values, if they are computed and no file holds them.
    pub(crate) computed: Option<Vec<f32>>,
    /// Order of its rows there.
    pub(crate) order: RowOrder,
}

/// Order of the input's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowOrder {
    /// The order of the output.
    Same,
    /// The two halves of a head's rows that rotary embedding pairs; GGUF has the pairs side by side.
    Halves {
        /// Rows of a head.
        head_dim: usize,
    },
}

impl RowOrder {
    /// Returns the row of the input that is row `row` of the output.
    fn source(self, row: usize) -> usize {
        match self {
            RowOrder::Same => row,
            RowOrder::Halves { head_dim } => {
                let (head, within) = (row / head_dim, row % head_dim);
                head * head_dim + within % 2 * (head_dim / 2) + within / 2
            }
        }
    }
}

/// A tensor that a model has, by both of its names.
pub(crate) struct ModelTensor {
    pub(crate) gguf: String,
    pub(crate) hf: String,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) order: RowOrder,
}

/// Returns every tensor of a model, in the order of a file; without the head, which may be tied to the embedding.
pub(crate) fn model_tensors(config: &Config) -> Vec<ModelTensor> {
    let (e, f) = (config.shape.embedding, config.shape.feed_forward);
    let (h, k) = (config.shape.q_width(), config.shape.kv_width());
    let d = config.shape.head_dim;
    let rotated = match config.architecture.pairs {
        RotaryPairs::Interleaved => RowOrder::Halves { head_dim: d },
        RotaryPairs::Halves => RowOrder::Same,
    };
    let tensor = |gguf: &str, hf: &str, rows, cols, order| {
        let is_named = [gguf, hf].iter().all(|name| name.ends_with(".bias"));
        let suffix = if is_named { "" } else { ".weight" };
        ModelTensor {
            gguf: format!("{gguf}{suffix}"),
            hf: format!("model.{hf}{suffix}"),
            rows,
            cols,
            order,
        }
    };
    let same = RowOrder::Same;
    let mut all = vec![
        tensor("token_embd", "embed_tokens", config.shape.vocab, e, same),
        tensor("output_norm", "norm", 1, e, same),
    ];
    for layer in 0..config.shape.layers {
        let parts = [
            ("attn_norm", "input_layernorm", 1, e, same),
            ("attn_q", "self_attn.q_proj", h, e, rotated),
            ("attn_k", "self_attn.k_proj", k, e, rotated),
            ("attn_v", "self_attn.v_proj", k, e, same),
            ("attn_output", "self_attn.o_proj", e, h, same),
            ("ffn_norm", "post_attention_layernorm", 1, e, same),
            ("ffn_gate", "mlp.gate_proj", f, e, same),
            ("ffn_up", "mlp.up_proj", f, e, same),
            ("ffn_down", "mlp.down_proj", e, f, same),
        ];
        let biases = [
            ("attn_q.bias", "self_attn.q_proj.bias", 1, h, same),
            ("attn_k.bias", "self_attn.k_proj.bias", 1, k, same),
            ("attn_v.bias", "self_attn.v_proj.bias", 1, k, same),
        ];
        let norms = [
            ("attn_q_norm", "self_attn.q_norm", 1, d, same),
            ("attn_k_norm", "self_attn.k_norm", 1, d, same),
        ];
        let required = |presence, parts| {
            let is_required = presence == Presence::Required;
            is_required.then_some(parts).into_iter().flatten()
        };
        let parts = parts
            .into_iter()
            .chain(required(config.architecture.qkv_bias, biases.to_vec()))
            .chain(required(config.architecture.head_norms, norms.to_vec()));
        all.extend(parts.map(|(gguf, hf, rows, cols, order)| {
            let (gguf, hf) = (
                format!("blk.{layer}.{gguf}"),
                format!("layers.{layer}.{hf}"),
            );
            tensor(&gguf, &hf, rows, cols, order)
        }));
    }
    all
}

/// Returns the head if it is not tied to the embedding.
pub(crate) fn head(config: &Config) -> ModelTensor {
    ModelTensor {
        gguf: "output.weight".to_owned(),
        hf: "lm_head.weight".to_owned(),
        rows: config.shape.vocab,
        cols: config.shape.embedding,
        order: RowOrder::Same,
    }
}

/// Returns the dimensions that metadata describe.
pub(crate) fn config_of(path: &Path, fields: &[(String, Field)]) -> Result<Config, QuantizeError> {
    let fields = fields
        .iter()
        .map(|(key, field)| (key.as_str(), field.clone()));
    let header =
        Gguf::from_bytes(write::header(fields, &[])).map_err(|source| QuantizeError::Gguf {
            path: path.to_owned(),
            source,
        })?;
    Config::from_gguf(&header).map_err(|source| QuantizeError::Config {
        path: path.to_owned(),
        source,
    })
}

impl FloatTensor {
    /// Returns the values in a row.
    pub(crate) fn cols(&self) -> usize {
        self.dims[0]
    }

    /// Returns the number of rows; 1 for a vector.
    pub(crate) fn rows(&self) -> usize {
        self.dims[1..].iter().product()
    }
}

impl FloatModel {
    /// Returns whether the head is the embedding.
    pub(crate) fn is_tied(&self) -> bool {
        self.tensors
            .iter()
            .all(|tensor| tensor.name != "output.weight")
    }

    /// Returns the bytes of all input files that hold tensors.
    pub(crate) fn bytes(&self) -> u64 {
        let len = |input: &InputFile| input.file.metadata().map_or(0, |metadata| metadata.len());
        self.files.iter().map(len).sum()
    }

    /// Returns the values `[rows.len(), cols]` of a tensor.
    pub(crate) fn rows(
        &self,
        tensor: &FloatTensor,
        rows: Range<usize>,
    ) -> Result<Vec<f32>, QuantizeError> {
        if let Some(values) = &tensor.computed {
            return Ok(values.clone());
        }
        let input = &self.files[tensor.file];
        let fail =
            |problem: String| QuantizeError::tensor(&input.path, &tensor.source_name, problem);
        let size = tensor.ty.block_bytes();
        let row_bytes = tensor.cols() * size;
        let mut bytes = vec![0; rows.len() * row_bytes];
        let read = |row: usize, bytes: &mut [u8]| {
            let start = tensor.start + (row * row_bytes) as u64;
            read_exact_at(&input.file, start, bytes)
                .map_err(|error| fail(format!("cannot be read: {error}")))
        };
        match tensor.order {
            RowOrder::Same => read(rows.start, &mut bytes)?,
            order => {
                for (row, bytes) in rows.clone().zip(bytes.chunks_exact_mut(row_bytes)) {
                    read(order.source(row), bytes)?;
                }
            }
        }
        let values: Vec<f32> = match tensor.ty {
            BlockType::F16 => halves(&bytes)
                .map(|bytes| f16::from_le_bytes(bytes).to_f32())
                .collect(),
            BlockType::BF16 => halves(&bytes)
                .map(|bytes| bf16::from_le_bytes(bytes).to_f32())
                .collect(),
            _ => bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|&bytes| f32::from_le_bytes(bytes))
                .collect(),
        };
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => {
                let (row, col) = (rows.start + at / tensor.cols(), at % tensor.cols());
                Err(fail(format!("row {row}, column {col} is {}", values[at])))
            }
            None => Ok(values),
        }
    }
}

fn halves(bytes: &[u8]) -> impl Iterator<Item = [u8; 2]> {
    bytes.as_chunks::<2>().0.iter().copied()
}

/// Opens a regular file of at most `most` bytes, and returns its length.
pub(crate) fn open_regular(path: &Path, most: u64) -> Result<(File, u64), QuantizeError> {
    let fail =
        |error: std::io::Error| QuantizeError::input(path, format!("cannot be read: {error}"));
    // Reading a folder or a device gives odd errors or none; check first.
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        return Err(QuantizeError::input(path, "this is not a file"));
    }
    let file = File::open(path).map_err(fail)?;
    let len = file.metadata().map_err(fail)?.len();
    if len > most {
        let problem = format!("it has {len} bytes where {most} are the most that are read");
        return Err(QuantizeError::input(path, problem));
    }
    Ok((file, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_become_pairs_within_each_head() {
        let order = RowOrder::Halves { head_dim: 6 };
        let rows: Vec<usize> = (0..12).map(|row| order.source(row)).collect();
        assert_eq!(rows, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
        assert_eq!(RowOrder::Same.source(7), 7);
    }
}

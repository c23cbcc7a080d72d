//! The model's weights: every tensor by name, with its required shape.

mod load;

use std::io;
use std::time::SystemTime;

use gpu::Weights;
use kernels::{BlockType, Cpu, Matrix, Stored};

use crate::gguf::{Gguf, TensorView};
use crate::model::architecture::{HEAD_NORMS, Presence, QKV_BIASES};
use crate::model::config::Config;
use crate::model::error::DeviceError;
pub use load::{load, load_first_layers, load_last_layers};

/// Error of loading weights.
#[derive(Debug, thiserror::Error)]
pub enum WeightError {
    /// A tensor is missing or contradicts the metadata.
    #[error("tensor `{name}`: {problem}")]
    Tensor {
        /// The tensor.
        name: String,
        /// The problem.
        problem: String,
    },
    /// The file's bytes cannot be read.
    #[error("tensor `{name}` cannot be read: {source}")]
    Read {
        /// The tensor.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The device rejects it.
    #[error("tensor `{name}` cannot be uploaded to the device: {source}")]
    Device {
        /// The tensor.
        name: String,
        /// The error of the device.
        source: DeviceError,
    },
}

impl WeightError {
    /// The error of the device, if it is the cause.
    pub(crate) fn device_error(&self) -> Option<&DeviceError> {
        match self {
            WeightError::Device { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Returns true if the device is out of memory.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        matches!(self.device_error(), Some(DeviceError::OutOfMemory(_)))
    }
}

/// Type, shape and bytes of a tensor, stored or generated.
pub struct Tensor<'a> {
    /// Storage type of the values.
    pub ty: BlockType,
    /// Rows; 1 for a vector.
    pub rows: usize,
    /// Values in a row.
    pub cols: usize,
    /// The stored values, row by row.
    pub bytes: TensorBytes<'a>,
}

/// The bytes of a tensor.
pub enum TensorBytes<'a> {
    /// Generated in memory.
    Generated(Vec<u8>),
    /// Stored in a file or its image.
    Stored(Stored<'a>),
}

impl Tensor<'_> {
    /// The bytes; those of a file are read on use.
    pub fn stored(&self) -> Stored<'_> {
        match &self.bytes {
            TensorBytes::Generated(bytes) => Stored::Memory(bytes),
            TensorBytes::Stored(stored) => *stored,
        }
    }
}

/// Source of weights: a file, or a generator.
pub trait WeightSource {
    /// The tensor's type, rows and values in a row.
    fn shape(&self, name: &str) -> Option<(BlockType, usize, usize)>;
    /// The tensor.
    fn tensor(&self, name: &str) -> Option<Tensor<'_>>;
    /// Name of the type of a tensor that is present but has an unsupported type.
    fn unsupported_type(&self, _name: &str) -> Option<&str> {
        None
    }
    /// Time of the last change; `None` if the source cannot change.
    ///
    /// # Errors
    /// Fails if the system does not report it.
    fn modified(&self) -> io::Result<Option<SystemTime>> {
        Ok(None)
    }
}

impl WeightSource for Gguf {
    fn modified(&self) -> io::Result<Option<SystemTime>> {
        Gguf::modified(self)
    }

    fn unsupported_type(&self, name: &str) -> Option<&str> {
        Some(&self.unsupported_tensor(name)?.ty)
    }

    fn shape(&self, name: &str) -> Option<(BlockType, usize, usize)> {
        let tensor = self.tensor_info(name)?;
        Some((tensor.ty, tensor.rows(), tensor.cols()))
    }

    fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let TensorView {
            ty,
            rows,
            cols,
            bytes,
        } = Gguf::tensor(self, name)?;
        Some(Tensor {
            ty,
            rows,
            cols,
            bytes: TensorBytes::Stored(bytes),
        })
    }
}

/// The memory of a device, to which weights are uploaded.
pub trait DeviceMemory {
    /// A quantised matrix on the device.
    type Matrix;
    /// The weight of a norm.
    type Norm;

    /// Uploads a matrix `[rows, cols]`.
    ///
    /// # Errors
    /// Fails if the device is out of memory, or the matrix cannot be read.
    fn matrix(&self, weights: TensorView<'_>) -> Result<Self::Matrix, DeviceError>;
    /// Uploads the weight of a norm.
    ///
    /// # Errors
    /// Fails if the device is out of memory.
    fn norm(&self, weights: &[f32]) -> Result<Self::Norm, DeviceError>;
}

impl DeviceMemory for Cpu {
    type Matrix = Matrix;
    type Norm = Vec<f32>;

    fn matrix(&self, weights: TensorView<'_>) -> Result<Matrix, DeviceError> {
        Ok(self.pack_stored(weights.ty, weights.rows, weights.cols, weights.bytes)?)
    }

    fn norm(&self, weights: &[f32]) -> Result<Vec<f32>, DeviceError> {
        Ok(weights.to_vec())
    }
}

/// A model's weights in the CPU's memory.
pub type CpuWeights = Weights<Matrix, Vec<f32>>;

/// Name and shape of a tensor.
pub struct TensorShape {
    /// Its name in the file.
    pub name: String,
    /// Rows; 1 for a norm.
    pub rows: usize,
    /// Values in a row.
    pub cols: usize,
}

/// Every required tensor of a model of these dimensions, in the order of a file.
pub fn required_tensors(config: &Config) -> Vec<TensorShape> {
    let tensor = |name: &str, rows, cols| TensorShape {
        name: name.to_owned(),
        rows,
        cols,
    };
    let mut all = vec![
        tensor(TOKEN_EMBD, config.shape.vocab, config.shape.embedding),
        tensor(OUTPUT_NORM, 1, config.shape.embedding),
    ];
    for layer in 0..config.shape.layers {
        all.extend(layer_tensors(config, layer));
        if config.architecture.qkv_bias == Presence::Required {
            all.extend(qkv_biases(config, layer));
        }
        if config.architecture.head_norms == Presence::Required {
            all.extend(head_norms(config, layer));
        }
    }
    all
}

/// The required tensors, and the optional ones that the source has.
fn used_tensors(source: &dyn WeightSource, config: &Config) -> Vec<TensorShape> {
    let mut all = required_tensors(config);
    if config.architecture.qkv_bias == Presence::Optional {
        let layers = 0..config.shape.layers;
        all.extend(
            layers
                .filter(|&layer| has_qkv_bias(source, layer))
                .flat_map(|layer| qkv_biases(config, layer)),
        );
    }
    all
}

/// Returns true if a layer has any of the three biases; it then needs all.
fn has_qkv_bias(source: &dyn WeightSource, layer: usize) -> bool {
    QKV_BIASES
        .iter()
        .any(|part| source.shape(&format!("blk.{layer}.{part}")).is_some())
}

const TOKEN_EMBD: &str = "token_embd.weight";
const OUTPUT_NORM: &str = "output_norm.weight";
const OUTPUT: &str = "output.weight";

fn tensor_name(layer: usize, part: &str) -> String {
    format!("blk.{layer}.{part}.weight")
}

/// Names and shapes of a layer's tensors.
fn layer_tensors(config: &Config, layer: usize) -> [TensorShape; 9] {
    let (e, f) = (config.shape.embedding, config.shape.feed_forward);
    let (h, k) = (config.shape.q_width(), config.shape.kv_width());
    [
        ("attn_norm", 1, e),
        ("attn_q", h, e),
        ("attn_k", k, e),
        ("attn_v", k, e),
        ("attn_output", e, h),
        ("ffn_norm", 1, e),
        ("ffn_gate", f, e),
        ("ffn_up", f, e),
        ("ffn_down", e, f),
    ]
    .map(|(part, rows, cols)| TensorShape {
        name: tensor_name(layer, part),
        rows,
        cols,
    })
}

/// The biases of q, k and v.
fn qkv_biases(config: &Config, layer: usize) -> [TensorShape; 3] {
    let (h, k) = (config.shape.q_width(), config.shape.kv_width());
    let widths = [h, k, k];
    std::array::from_fn(|at| TensorShape {
        name: format!("blk.{layer}.{}", QKV_BIASES[at]),
        rows: 1,
        cols: widths[at],
    })
}

/// The norms of each head's q and k.
fn head_norms(config: &Config, layer: usize) -> [TensorShape; 2] {
    HEAD_NORMS.map(|part| TensorShape {
        name: format!("blk.{layer}.{part}"),
        rows: 1,
        cols: config.shape.head_dim,
    })
}

/// Storage types of a layer's tensors.
pub fn layer_types(
    source: &dyn WeightSource,
    config: &Config,
    layer: usize,
) -> [Option<BlockType>; 9] {
    layer_tensors(config, layer).map(|tensor| source.shape(&tensor.name).map(|(ty, _, _)| ty))
}

/// Name of the output head's tensor.
pub fn head_name(source: &dyn WeightSource) -> &'static str {
    match source.shape(OUTPUT) {
        Some(_) => OUTPUT,
        None => TOKEN_EMBD,
    }
}

/// Checks presence and shape of every tensor, without reading any.
///
/// # Errors
/// Names the first tensor that is missing or misshapen.
pub fn check(source: &dyn WeightSource, config: &Config) -> Result<(), WeightError> {
    for tensor in used_tensors(source, config) {
        let shape = source
            .shape(&tensor.name)
            .ok_or_else(|| missing(source, &tensor.name))?;
        check_shape(&tensor.name, shape, tensor.rows, tensor.cols)?;
    }
    match source.shape(OUTPUT) {
        Some(shape) => check_shape(OUTPUT, shape, config.shape.vocab, config.shape.embedding),
        None if source.unsupported_type(OUTPUT).is_some() => Err(missing(source, OUTPUT)),
        None => Ok(()),
    }
}

/// Passes the first, the middle and the last bytes of each required tensor to `each`.
///
/// # Errors
/// Fails if they cannot be read.
pub fn sample(
    source: &dyn WeightSource,
    config: &Config,
    each: &mut dyn FnMut(&[u8]),
) -> io::Result<()> {
    const PART: usize = 4096;
    let mut buffer = Vec::new();
    for TensorShape { name, .. } in used_tensors(source, config) {
        let tensor = source.tensor(&name).ok_or(io::ErrorKind::NotFound)?;
        let stored = tensor.stored();
        let last = stored.len().saturating_sub(PART);
        for first in [0, last / 2, last] {
            each(stored.get(first..stored.len().min(first + PART), &mut buffer)?);
        }
    }
    Ok(())
}

fn missing(source: &dyn WeightSource, name: &str) -> WeightError {
    WeightError::Tensor {
        name: name.to_owned(),
        problem: match source.unsupported_type(name) {
            Some(ty) => format!(
                "its type {ty} is not supported; get the model in another one, such as Q4_K_M or Q8_0"
            ),
            None => "it is missing".to_owned(),
        },
    }
}

fn check_shape(
    name: &str,
    (ty, rows, cols): (BlockType, usize, usize),
    required_rows: usize,
    required_cols: usize,
) -> Result<(), WeightError> {
    let problem = if (rows, cols) != (required_rows, required_cols) {
        format!(
            "its shape is {rows} × {cols} where the metadata require {required_rows} × {required_cols}"
        )
    } else if required_rows == 1 && ty != BlockType::F32 {
        format!("a vector stored as {} where F32 is required", ty.name())
    } else {
        return Ok(());
    };
    Err(WeightError::Tensor {
        name: name.to_owned(),
        problem,
    })
}

/// Bytes of all tensors as stored.
pub fn stored_bytes(source: &dyn WeightSource, config: &Config) -> u64 {
    let names = used_tensors(source, config)
        .into_iter()
        .map(|tensor| tensor.name);
    names
        .chain([OUTPUT.to_owned()])
        .map(|name| tensor_bytes(source, &name))
        .sum()
}

/// Bytes of all tensors in memory on the CPU, where rows are padded to whole row blocks.
pub fn packed_bytes(source: &dyn WeightSource, config: &Config) -> u64 {
    let names = used_tensors(source, config)
        .into_iter()
        .map(|tensor| tensor.name);
    let packed = |name: String| {
        let (ty, rows, cols) = source.shape(&name)?;
        let rows = if rows == 1 {
            1
        } else {
            rows.checked_next_multiple_of(kernels::Matrix::ROWS)?
        };
        Some((ty.row_bytes(cols)? as u64).saturating_mul(rows as u64))
    };
    names
        .chain([OUTPUT.to_owned()])
        .filter_map(packed)
        .fold(0, u64::saturating_add)
}

/// Bytes of the weights that each generated token reads: all but an untied embedding table.
pub fn bytes_per_token(source: &dyn WeightSource, config: &Config) -> u64 {
    let untied = source.shape(OUTPUT).is_some();
    stored_bytes(source, config)
        - if untied {
            tensor_bytes(source, TOKEN_EMBD)
        } else {
            0
        }
}

fn tensor_bytes(source: &dyn WeightSource, name: &str) -> u64 {
    let shape = source
        .shape(name)
        .and_then(|(ty, rows, cols)| Some((rows, ty.row_bytes(cols)?)));
    shape.map_or(0, |(rows, row)| (rows * row) as u64)
}

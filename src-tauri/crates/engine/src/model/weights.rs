//! The model's weights: every tensor by name, with its required shape.

use std::io;
use std::ops::Range;
use std::time::SystemTime;

use gpu::{Layer, Weights};
use kernels::{BlockType, Cpu, Matrix, Stored};

use crate::gguf::{Gguf, TensorView};
use crate::model::config::Config;
use crate::model::error::DeviceError;

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

    /// Whether the device is out of memory.
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
    /// In a file or its image.
    Stored(Stored<'a>),
}

impl Tensor<'_> {
    /// Its bytes; those of a file are read on use.
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
    /// The type of a tensor that is there but cannot be read.
    fn unsupported_type(&self, _name: &str) -> Option<&str> {
        None
    }
    /// When it was last changed, where that may happen.
    ///
    /// # Errors
    /// When it cannot be asked.
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
    /// When the device is out of memory, or the matrix cannot be read.
    fn matrix(&self, weights: TensorView<'_>) -> Result<Self::Matrix, DeviceError>;
    /// Uploads the weight of a norm.
    ///
    /// # Errors
    /// When the device is out of memory.
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
    }
    all
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
    for tensor in required_tensors(config) {
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
/// When they cannot be read.
pub fn sample(
    source: &dyn WeightSource,
    config: &Config,
    each: &mut dyn FnMut(&[u8]),
) -> io::Result<()> {
    const PART: usize = 4096;
    let mut buffer = Vec::new();
    for TensorShape { name, .. } in required_tensors(config) {
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
    } else if name.ends_with("norm.weight") && ty != BlockType::F32 {
        format!("a norm stored as {} where F32 is required", ty.name())
    } else {
        return Ok(());
    };
    Err(WeightError::Tensor {
        name: name.to_owned(),
        problem,
    })
}

/// Uploads every tensor; `progress` is called with the fraction that is done.
///
/// # Errors
/// When a tensor is missing or misshapen, or the device rejects it.
pub fn load<D: DeviceMemory>(
    memory: &D,
    source: &dyn WeightSource,
    config: &Config,
    progress: &mut dyn FnMut(f32),
) -> Result<DeviceWeights<D>, WeightError> {
    let mut loader = Loader::new(memory, source, config, progress)?;
    let mut weights = loader.outer_weights()?;
    weights.layers = loader.layers(0..config.shape.layers)?;
    Ok(weights)
}

/// Uploads the embedding and the first layers, without an output head.
///
/// # Errors
/// As [`load`].
pub fn load_first_layers<D: DeviceMemory>(
    memory: &D,
    source: &dyn WeightSource,
    config: &Config,
    layers: usize,
    progress: &mut dyn FnMut(f32),
) -> Result<DeviceWeights<D>, WeightError> {
    let mut loader = Loader::new(memory, source, config, progress)?;
    Ok(Weights {
        token_embd: loader.matrix(TOKEN_EMBD)?,
        output_norm: loader.norm(OUTPUT_NORM)?,
        output: None,
        layers: loader.layers(0..layers)?,
    })
}

/// Uploads the head and as many of the last layers as fit.
///
/// # Errors
/// As [`load`], and when not a single layer fits.
pub fn load_last_layers<D: DeviceMemory>(
    memory: &D,
    source: &dyn WeightSource,
    config: &Config,
    progress: &mut dyn FnMut(f32),
) -> Result<DeviceWeights<D>, WeightError> {
    let mut loader = Loader::new(memory, source, config, progress)?;
    let mut weights = loader.outer_weights()?;
    for layer in (0..config.shape.layers).rev() {
        match loader.layer(layer) {
            Ok(layer) => weights.layers.push(layer),
            Err(error) if error.is_out_of_memory() && !weights.layers.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    weights.layers.reverse();
    Ok(weights)
}

/// The weights in the memory of a device `D`.
type DeviceWeights<D> = Weights<<D as DeviceMemory>::Matrix, <D as DeviceMemory>::Norm>;

/// One layer's weights in the memory of a device `D`.
type DeviceLayer<D> = Layer<<D as DeviceMemory>::Matrix, <D as DeviceMemory>::Norm>;

struct Loader<'a, D: DeviceMemory> {
    memory: &'a D,
    source: &'a dyn WeightSource,
    progress: &'a mut dyn FnMut(f32),
    loaded: usize,
    total: usize,
}

impl<'a, D: DeviceMemory> Loader<'a, D> {
    fn new(
        memory: &'a D,
        source: &'a dyn WeightSource,
        config: &Config,
        progress: &'a mut dyn FnMut(f32),
    ) -> Result<Self, WeightError> {
        check(source, config)?;
        Ok(Loader {
            memory,
            source,
            progress,
            loaded: 0,
            total: 9 * config.shape.layers + 2,
        })
    }

    /// The embedding, the output norm and the head.
    fn outer_weights(&mut self) -> Result<DeviceWeights<D>, WeightError> {
        Ok(Weights {
            token_embd: self.matrix(TOKEN_EMBD)?,
            output: match self.source.shape(OUTPUT) {
                Some(_) => Some(self.matrix(OUTPUT)?),
                None => None,
            },
            output_norm: self.norm(OUTPUT_NORM)?,
            layers: Vec::new(),
        })
    }

    fn layers(&mut self, which: Range<usize>) -> Result<Vec<DeviceLayer<D>>, WeightError> {
        which.map(|layer| self.layer(layer)).collect()
    }

    fn layer(&mut self, layer: usize) -> Result<DeviceLayer<D>, WeightError> {
        Ok(Layer {
            attn_norm: self.norm(&tensor_name(layer, "attn_norm"))?,
            attn_q: self.matrix(&tensor_name(layer, "attn_q"))?,
            attn_k: self.matrix(&tensor_name(layer, "attn_k"))?,
            attn_v: self.matrix(&tensor_name(layer, "attn_v"))?,
            attn_output: self.matrix(&tensor_name(layer, "attn_output"))?,
            ffn_norm: self.norm(&tensor_name(layer, "ffn_norm"))?,
            ffn_gate: self.matrix(&tensor_name(layer, "ffn_gate"))?,
            ffn_up: self.matrix(&tensor_name(layer, "ffn_up"))?,
            ffn_down: self.matrix(&tensor_name(layer, "ffn_down"))?,
        })
    }

    fn matrix(&mut self, name: &str) -> Result<D::Matrix, WeightError> {
        let tensor = (self.source.tensor(name)).ok_or_else(|| missing(self.source, name))?;
        let matrix = self.memory.matrix(TensorView {
            ty: tensor.ty,
            rows: tensor.rows,
            cols: tensor.cols,
            bytes: tensor.stored(),
        });
        self.finish(name, matrix)
    }

    fn norm(&mut self, name: &str) -> Result<D::Norm, WeightError> {
        let tensor = (self.source.tensor(name)).ok_or_else(|| missing(self.source, name))?;
        let mut values = vec![0.0; tensor.cols];
        let stored = tensor.stored().read().map_err(DeviceError::Read);
        let norm = stored
            .and_then(|stored| {
                kernels::dequantise(tensor.ty, &stored, &mut values)
                    .map_err(|error| DeviceError::Failed(error.to_string()))
            })
            .and_then(|()| self.memory.norm(&values));
        self.finish(name, norm)
    }

    fn finish<T>(&mut self, name: &str, loaded: Result<T, DeviceError>) -> Result<T, WeightError> {
        self.loaded += 1;
        (self.progress)((self.loaded as f32 / self.total as f32).min(1.0));
        loaded.map_err(|error| {
            let name = name.to_owned();
            match error {
                DeviceError::Read(source) => WeightError::Read { name, source },
                source => WeightError::Device { name, source },
            }
        })
    }
}

/// Bytes of all tensors as stored.
pub fn stored_bytes(source: &dyn WeightSource, config: &Config) -> u64 {
    let names = required_tensors(config)
        .into_iter()
        .map(|tensor| tensor.name);
    names
        .chain([OUTPUT.to_owned()])
        .map(|name| tensor_bytes(source, &name))
        .sum()
}

/// Bytes of all tensors in memory on the CPU, where rows are padded to whole row blocks.
pub fn packed_bytes(source: &dyn WeightSource, config: &Config) -> u64 {
    let names = required_tensors(config)
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

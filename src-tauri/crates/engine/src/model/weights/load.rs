//! Weights from their source into the memory of a device.

use std::ops::Range;

use gpu::{Layer, Weights};
use kernels::Stored;

use super::{
    DeviceMemory, OUTPUT, OUTPUT_NORM, TOKEN_EMBD, WeightError, WeightSource, check, has_qkv_bias,
    head_norms, missing, qkv_biases, tensor_name, used_tensors,
};
use crate::gguf::TensorView;
use crate::model::architecture::{Presence, RotaryPairs};
use crate::model::config::Config;
use crate::model::error::DeviceError;

/// Uploads every tensor; `progress` is called with the fraction that is done.
///
/// # Errors
/// Fails if a tensor is missing or misshapen, or the device rejects it.
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
/// Same as [`load`].
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
/// Same as [`load`]; also fails if not a single layer fits.
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
    config: &'a Config,
    progress: &'a mut dyn FnMut(f32),
    loaded: usize,
    total: usize,
}

impl<'a, D: DeviceMemory> Loader<'a, D> {
    fn new(
        memory: &'a D,
        source: &'a dyn WeightSource,
        config: &'a Config,
        progress: &'a mut dyn FnMut(f32),
    ) -> Result<Self, WeightError> {
        check(source, config)?;
        Ok(Loader {
            memory,
            source,
            config,
            progress,
            loaded: 0,
            total: used_tensors(source, config).len(),
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
            attn_q: self.rotated_matrix(&tensor_name(layer, "attn_q"))?,
            attn_k: self.rotated_matrix(&tensor_name(layer, "attn_k"))?,
            attn_v: self.matrix(&tensor_name(layer, "attn_v"))?,
            attn_output: self.matrix(&tensor_name(layer, "attn_output"))?,
            ffn_norm: self.norm(&tensor_name(layer, "ffn_norm"))?,
            ffn_gate: self.matrix(&tensor_name(layer, "ffn_gate"))?,
            ffn_up: self.matrix(&tensor_name(layer, "ffn_up"))?,
            ffn_down: self.matrix(&tensor_name(layer, "ffn_down"))?,
            qkv_bias: self.qkv_bias(layer)?,
            head_norms: self.head_norms(layer)?,
        })
    }

    fn qkv_bias(&mut self, layer: usize) -> Result<Option<[D::Norm; 3]>, WeightError> {
        if self.config.architecture.qkv_bias == Presence::Absent
            || !has_qkv_bias(self.source, layer)
        {
            return Ok(None);
        }
        let [q, k, v] = qkv_biases(self.config, layer);
        Ok(Some([
            self.rotated_vector(&q.name)?,
            self.rotated_vector(&k.name)?,
            self.norm(&v.name)?,
        ]))
    }

    fn head_norms(&mut self, layer: usize) -> Result<Option<[D::Norm; 2]>, WeightError> {
        if self.config.architecture.head_norms == Presence::Absent {
            return Ok(None);
        }
        let [q, k] = head_norms(self.config, layer);
        Ok(Some([
            self.rotated_vector(&q.name)?,
            self.rotated_vector(&k.name)?,
        ]))
    }

    /// A matrix whose rows are values of heads, in the interleaved order of rotated pairs.
    fn rotated_matrix(&mut self, name: &str) -> Result<D::Matrix, WeightError> {
        if self.config.architecture.pairs == RotaryPairs::Interleaved {
            return self.matrix(name);
        }
        let tensor = (self.source.tensor(name)).ok_or_else(|| missing(self.source, name))?;
        let stored = tensor.stored();
        let matrix = stored.read().map_err(DeviceError::Read).and_then(|stored| {
            let row = stored.len() / tensor.rows;
            let mut bytes = Vec::new();
            kernels::reserve(&mut bytes, stored.len())?;
            for at in 0..tensor.rows {
                let from = self.row_in_file(at) * row;
                bytes.extend_from_slice(&stored[from..from + row]);
            }
            self.memory.matrix(TensorView {
                ty: tensor.ty,
                rows: tensor.rows,
                cols: tensor.cols,
                bytes: Stored::Memory(&bytes),
            })
        });
        self.finish(name, matrix)
    }

    /// A vector over heads, or over one head, in the interleaved order of rotated pairs.
    fn rotated_vector(&mut self, name: &str) -> Result<D::Norm, WeightError> {
        let mut values = self.values(name)?;
        if self.config.architecture.pairs == RotaryPairs::Halves {
            let in_file = values.clone();
            for (at, value) in values.iter_mut().enumerate() {
                *value = in_file[self.row_in_file(at)];
            }
        }
        let vector = self.memory.norm(&values);
        self.finish(name, vector)
    }

    /// The row in a file with [`RotaryPairs::Halves`] of row `at` in interleaved order.
    fn row_in_file(&self, at: usize) -> usize {
        let (head_dim, rotary) = (self.config.shape.head_dim, self.config.shape.rotary);
        let (head, value) = (at / head_dim * head_dim, at % head_dim);
        head + match value {
            _ if value >= rotary => value,
            _ if value.is_multiple_of(2) => value / 2,
            _ => rotary / 2 + value / 2,
        }
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
        let values = self.values(name)?;
        let norm = self.memory.norm(&values);
        self.finish(name, norm)
    }

    /// The values of a vector.
    fn values(&self, name: &str) -> Result<Vec<f32>, WeightError> {
        let tensor = (self.source.tensor(name)).ok_or_else(|| missing(self.source, name))?;
        let mut values = vec![0.0; tensor.cols];
        let stored = tensor.stored().read().map_err(DeviceError::Read);
        stored
            .and_then(|stored| {
                kernels::dequantise(tensor.ty, &stored, &mut values)
                    .map_err(|error| DeviceError::Failed(error.to_string()))
            })
            .map_err(|error| load_error(name, error))?;
        Ok(values)
    }

    fn finish<T>(&mut self, name: &str, loaded: Result<T, DeviceError>) -> Result<T, WeightError> {
        self.loaded += 1;
        (self.progress)((self.loaded as f32 / self.total as f32).min(1.0));
        loaded.map_err(|error| load_error(name, error))
    }
}

fn load_error(name: &str, error: DeviceError) -> WeightError {
    let name = name.to_owned();
    match error {
        DeviceError::Read(source) => WeightError::Read { name, source },
        source => WeightError::Device { name, source },
    }
}

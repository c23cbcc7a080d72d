//! Why a model does not open.

use gpu::GpuError;
use kernels::CpuLevelError;

use crate::gguf::GgufError;
use crate::model::config::ConfigError;
use crate::model::error::DeviceError;
use crate::model::weights::WeightError;
use crate::text::tokenizer::TokenizerError;

/// Why a model does not open. The message is for people and names what is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not a readable GGUF file.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Not a model that this engine runs.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The weights are not those of such a model.
    #[error(transparent)]
    Weights(#[from] WeightError),
    /// The tokenizer in the file cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The CPU level that was asked for is not one of this machine's.
    #[error(transparent)]
    CpuLevel(#[from] CpuLevelError),
    /// The model does not fit.
    #[error("the model needs {} MB of memory where {} MB are free", needed >> 20, available >> 20)]
    Memory {
        /// Bytes needed for weights and a short context.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// The device has no room for cache or scratch.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The GPU does not take the model.
    #[error(transparent)]
    Gpu(#[from] GpuRejection),
}

impl OpenError {
    /// What the device says, where it is why.
    pub fn device_error(&self) -> Option<&DeviceError> {
        match self {
            OpenError::Device(error) => Some(error),
            OpenError::Weights(error) => error.device_error(),
            _ => None,
        }
    }

    /// Whether it is for want of the device's memory.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.device_error(), Some(DeviceError::OutOfMemory(_)))
    }
}

impl From<GpuError> for OpenError {
    fn from(failure: GpuError) -> Self {
        OpenError::Device(failure.into())
    }
}

/// Why a GPU does not take a model. The CPU may.
#[derive(Debug, thiserror::Error)]
pub enum GpuRejection {
    /// There is no such device, or it does not open.
    #[error("{0}")]
    NotOpened(GpuError),
    /// It has no room for a context beside a single layer.
    #[error("beside one layer its memory has no room for {} of context", figures::tokens(*context))]
    NoRoom {
        /// The shortest context that was acceptable.
        context: usize,
    },
    /// It has no room for as many layers as were asked for.
    #[error("its memory has room for {fit} of {layers} layers only")]
    TooFewLayers {
        /// Layers that it has room for.
        fit: usize,
        /// Layers of the model.
        layers: usize,
    },
    /// It failed while it was loaded, or is full.
    #[error("{0}")]
    NotLoaded(Box<OpenError>),
}

impl GpuRejection {
    /// Whether the device has failed, and not for want of memory.
    pub fn is_fault(&self) -> bool {
        match self {
            GpuRejection::NotOpened(failure) => !matches!(failure, GpuError::NoDevice(_)),
            GpuRejection::NotLoaded(error) => {
                matches!(error.device_error(), Some(DeviceError::Failed(_)))
            }
            GpuRejection::NoRoom { .. } | GpuRejection::TooFewLayers { .. } => false,
        }
    }
}

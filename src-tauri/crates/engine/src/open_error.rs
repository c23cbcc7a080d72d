//! Errors of opening a model.

use gpu::GpuError;
use kernels::CpuLevelError;

use crate::gguf::GgufError;
use crate::model::config::ConfigError;
use crate::model::error::DeviceError;
use crate::model::weights::WeightError;
use crate::text::tokenizer::TokenizerError;

/// Error of opening a model. The message is shown to the user and names the problem of the file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Not a readable GGUF file.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// Not a supported model.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Missing or invalid weights.
    #[error(transparent)]
    Weights(#[from] WeightError),
    /// An unsupported or invalid tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// A vocabulary without the control tokens of any known chat format.
    #[error(
        "its vocabulary (`tokenizer.ggml.tokens`) has no control tokens of a chat format that Goldcrest knows (SmolLM3, \
         ChatML, Qwen, Llama 3); it may be a model that is not made for chats"
    )]
    NoChatFormat,
    /// A chat template that is too long.
    #[error("its chat template (`{key}`) has {} bytes; at most {} are read", figures::count(*bytes), figures::count(*most))]
    LongTemplate {
        /// The metadata key.
        key: &'static str,
        /// Length of the template.
        bytes: usize,
        /// Longest accepted length.
        most: usize,
    },
    /// This machine lacks the requested CPU level.
    #[error(transparent)]
    CpuLevel(#[from] CpuLevelError),
    /// The model does not fit in memory.
    #[error("the model needs {} MB of memory, but only {} MB are free", needed >> 20, available >> 20)]
    Memory {
        /// Bytes needed for weights and a short context.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// The device fails, or is out of memory for cache or scratch.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The GPU rejects the model.
    #[error(transparent)]
    Gpu(#[from] GpuRejection),
}

impl OpenError {
    /// The error of the device, if it is the cause.
    pub fn device_error(&self) -> Option<&DeviceError> {
        match self {
            OpenError::Device(error) => Some(error),
            OpenError::Weights(error) => error.device_error(),
            _ => None,
        }
    }

    /// Returns true if the device is out of memory.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.device_error(), Some(DeviceError::OutOfMemory(_)))
    }
}

impl From<GpuError> for OpenError {
    fn from(failure: GpuError) -> Self {
        OpenError::Device(failure.into())
    }
}

/// Reason that a GPU rejects a model; the CPU may still run it.
#[derive(Debug, thiserror::Error)]
pub enum GpuRejection {
    /// The device does not exist or does not open.
    #[error("{0}")]
    NotOpened(GpuError),
    /// No context fits beside a single layer.
    #[error("its memory cannot hold one layer and {} of context", figures::tokens(*context))]
    NoRoom {
        /// The shortest acceptable context, in tokens.
        context: usize,
    },
    /// Fewer layers fit than required.
    #[error("its memory holds only {fit} of {layers} layers")]
    TooFewLayers {
        /// Layers that fit.
        fit: usize,
        /// Layers of the model.
        layers: usize,
    },
    /// Loading failed, or the device is out of memory.
    #[error("{0}")]
    NotLoaded(Box<OpenError>),
}

impl GpuRejection {
    /// Returns true if the device failed for another reason than memory.
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

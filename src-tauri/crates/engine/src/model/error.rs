//! Errors of a device that runs a model.

use std::io;

use gpu::GpuError;
use kernels::{OutOfMemory, PackError};

/// Error of a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Out of memory.
    #[error("{0}")]
    OutOfMemory(String),
    /// A failure: a missing kernel, a lost GPU.
    #[error("{0}")]
    Failed(String),
    /// Invalid tokens of a pass; the device is not at fault.
    #[error("{0}")]
    Input(String),
    /// A weight cannot be read from its file.
    #[error("{0}")]
    Read(#[source] io::Error),
}

impl From<OutOfMemory> for DeviceError {
    fn from(error: OutOfMemory) -> Self {
        DeviceError::OutOfMemory(error.to_string())
    }
}

impl From<PackError> for DeviceError {
    fn from(error: PackError) -> Self {
        match error {
            PackError::Shape(error) => DeviceError::Failed(error.to_string()),
            PackError::Memory(error) => error.into(),
            PackError::Read(error) => DeviceError::Read(error),
        }
    }
}

impl From<GpuError> for DeviceError {
    fn from(failure: GpuError) -> Self {
        match failure {
            GpuError::OutOfMemory(_) => DeviceError::OutOfMemory(failure.to_string()),
            GpuError::Read(error) => DeviceError::Read(io::Error::other(error)),
            _ => DeviceError::Failed(failure.to_string()),
        }
    }
}

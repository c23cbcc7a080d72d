//! SmolLM3 on any GPU: a token is a plan of kernels over buffers, plain data, and an executor runs it.
//!
//! The kernels are WGSL (`wgsl/`), compiled for a model's dimensions when they are first used; the executor is wgpu,
//! on Vulkan or Metal. Nothing here needs more than the GPU's driver.

#[cfg(test)]
mod battery;
mod check;
mod device;
#[cfg(test)]
mod dry;
mod exec;
mod failure;
mod format;
mod kernel;
mod matrix;
mod model;
mod pace;
mod plan;
mod products;
mod recorder;
mod scratch;
#[cfg(test)]
#[path = "../../skipped.rs"]
mod skipped;
mod weights;
mod wgpu_exec;

pub use check::{KernelVariant, ProductCheck};
pub use device::{Allowed, GpuInfo, GpuKind, list};
pub use exec::{CoopMatrices, DeviceLimits, Dispatch, Executor};
pub use failure::GpuError;
pub use format::{Section, WeightFormat};
pub use kernel::Kernel;
pub use matrix::{GpuMatrix, GpuNorm, load_matrix, load_norm};
pub use model::{Angles, DeviceModel, DeviceSampling, KernelCost, Options, PassInput, Shape, Want};
pub use weights::{Layer, Weights};
pub use wgpu_exec::Wgpu;

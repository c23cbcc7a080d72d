//! SmolLM3 on any GPU: a token is a plan of kernels over buffers, plain data, and an executor runs it.
//!
//! The kernels are WGSL (`wgsl/`), compiled for a model's dimensions when they are first used; the executor is wgpu,
//! on Vulkan or Metal. Nothing here needs more than the GPU's driver.

mod check;
mod device;
mod error;
mod exec;
mod kernel;
mod model;
mod plan;
#[cfg(test)]
#[path = "../../skipped.rs"]
mod skipped;
mod weights;

pub use check::{KernelVariant, ProductCheck};
pub use device::adapter::{Allowed, GpuInfo, GpuKind, list};
pub use error::GpuError;
pub use exec::executor::{CoopMatrices, DeviceLimits, Dispatch, Executor};
pub use exec::wgpu_executor::Wgpu;
pub use kernel::Kernel;
pub use model::{Angles, DeviceModel, DeviceSampling, KernelCost, Options, PassInput, Shape, Want};
pub use weights::format::{Section, WeightFormat};
pub use weights::matrix::{GpuMatrix, GpuNorm, load_matrix, load_norm};
pub use weights::{Layer, Weights};

//! SmolLM3 on any GPU: a pass is a plan of kernels over buffers, plain data, and an executor runs it.
//!
//! The kernels are WGSL (`wgsl/`), specialised for a model's dimensions and compiled when they are first used; the
//! executor is wgpu, on Vulkan or Metal. Only the GPU's driver has to be installed. It has run on Vulkan alone: for Metal
//! the kernels are translated in a test.
//!
//! Modules, bottom to top: `error`, `shape`, `weights`, `kernel`; `device` (adapters and their limits); `exec` (the
//! executor); `plan` (the forward pass as fused kernels); `model` (prefill, sampling, memory, profile); `check`.

mod check;
mod device;
mod error;
mod exec;
mod kernel;
mod model;
mod plan;
mod shape;
mod weight_format;
mod weights;

pub use check::{KernelVariant, ProductCheck};
pub use device::adapter::{Allowed, GpuInfo, GpuKind, list};
pub use device::limits::{CoopMatrices, DeviceLimits};
pub use error::GpuError;
pub use exec::executor::{Dispatch, Executor};
pub use exec::wgpu_executor::Wgpu;
pub use kernel::Kernel;
pub use model::input::{PassInput, Want};
pub use model::profile::KernelCost;
pub use model::sample::DeviceSampling;
pub use model::{Angles, DeviceModel, DeviceSequence};
pub use plan::options::Options;
pub use shape::Shape;
pub use weight_format::{Section, WeightFormat};
pub use weights::matrix::{GpuMatrix, GpuNorm, load_matrix, load_norm};
pub use weights::{Layer, Weights};

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

pub use check::{How, Product};
pub use device::{Allowed, DeviceInfo, Kind, list};
pub use exec::{Dispatch, Executor, Limits, Matrices};
pub use failure::Failure;
pub use format::{Format, Section};
pub use kernel::Kernel;
pub use model::{Angles, Input, KernelCost, Model, Options, Sampling, Shape, Wanted};
pub use weights::{LayerWeights, Matrix, Norm, Weights, load_matrix, load_norm};
pub use wgpu_exec::Wgpu;

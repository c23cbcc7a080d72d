//! SmolLM3 GGUF in, tokens out.
//!
//! Synchronous and single-owner: an [`Engine`] belongs to one thread, which loads it, asks it and drops it. The
//! layers, bottom to top: the file ([`gguf`]), what the file says about the model, its weights, one forward pass
//! over a backend, the sequence with its KV cache, and generation.

mod bench;
mod check;
mod context;
mod device;
mod engine;
mod excerpt;
#[cfg(test)]
mod faulty;
pub mod gguf;
mod model;
mod place;
mod process;
mod run;
#[cfg(test)]
#[path = "../../skipped.rs"]
mod skipped;
mod summary;
mod synthetic;
mod text;

pub use ::gpu::{DeviceInfo as GpuInfo, list as gpus};
pub use bench::{
    BenchError, BenchParams, BenchReport, FollowUp, GpuReport, KernelReport, LookupReport,
};
pub use check::{CheckOrder, CheckStep, GpuCheck, MatrixCheck, Rate, Rates, check_gpu};
pub use device::{DeviceChoice, DeviceKind, DeviceRequest, UnknownDevice};
pub use engine::{Engine, LoadOptions, OpenError};
pub use gguf::inspect::{Inspection, ModelLine, TensorLine, TypeTotal};
pub use gguf::{Gguf, GgufError};
pub use kernels::{CpuLevel, CpuLevelError, KvType};
pub use model::config::{Config, ConfigError};
pub use run::generate::{Event, Finished, GenerateError, GenerateParams, Stats, StopReason};
pub use run::sampler::Sampling;
pub use summary::ModelSummary;
pub use synthetic::{Synthetic, UnknownShape};
pub use text::prompt::{Conversation, KeepThinking, Prompt, PromptError, Role, Turn};
pub use text::template::{
    Capabilities, ChatTemplate, TemplateError, TemplateSandbox, TemplateUse, render_template,
};
pub use text::think::Part;
pub use text::tokenizer::{Decoder, Tokenizer, TokenizerError};

//! SmolLM3 GGUF in, tokens out.
//!
//! Synchronous and single-owner: an [`Engine`] belongs to one thread, which loads it, asks it and drops it. The
//! layers, bottom to top: the file ([`gguf`]), what the file says about the model, its weights, one forward pass
//! over a backend, the sequence with its KV cache, and generation.

mod backend;
mod bench;
mod check;
mod config;
mod context;
mod device;
mod engine;
mod excerpt;
#[cfg(test)]
mod faulty;
mod forward;
mod generate;
pub mod gguf;
mod inspect;
mod lookup;
mod place;
mod process;
mod prompt;
mod random;
mod rope;
mod sampler;
#[cfg(test)]
mod scripted;
mod session;
#[cfg(test)]
#[path = "../../skipped.rs"]
mod skipped;
mod split;
mod summary;
mod survival;
mod synthetic;
mod template;
mod think;
mod tokenizer;
mod weights;

pub use ::gpu::{DeviceInfo as GpuInfo, list as gpus};
pub use bench::{
    BenchError, BenchParams, BenchReport, FollowUp, GpuReport, KernelReport, LookupReport,
};
pub use check::{CheckOrder, CheckStep, GpuCheck, MatrixCheck, Rate, Rates, check_gpu};
pub use config::{Config, ConfigError};
pub use device::{DeviceChoice, DeviceKind, DeviceRequest, UnknownDevice};
pub use engine::{Engine, LoadOptions, OpenError};
pub use generate::{Event, Finished, GenerateError, GenerateParams, Stats, StopReason};
pub use gguf::{Gguf, GgufError};
pub use inspect::{Inspection, ModelLine, TensorLine, TypeTotal};
pub use kernels::{CpuLevel, CpuLevelError, KvType};
pub use prompt::{Conversation, KeepThinking, Prompt, PromptError, Role, Turn};
pub use sampler::Sampling;
pub use summary::ModelSummary;
pub use synthetic::{Synthetic, UnknownShape};
pub use template::{
    Capabilities, ChatTemplate, TemplateError, TemplateSandbox, TemplateUse, render_template,
};
pub use think::Part;
pub use tokenizer::{Decoder, Tokenizer, TokenizerError};

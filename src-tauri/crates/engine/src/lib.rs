//! GGUF in, tokens out.
//!
//! Synchronous and single-owner: an [`Engine`] belongs to one thread, which loads it, calls it and drops it. The
//! modules, bottom to top: the file ([`gguf`]), the configuration and weights of the model, its forward pass
//! ([`model`]), text and tokens ([`text`]), the sequence with its KV cache, and generation ([`run`]).

mod context;
mod context_cost;
mod engine;
pub mod gguf;
mod grammar;
mod inspect;
pub mod machine;
pub mod model;
mod model_file;
mod model_header;
mod open_error;
mod options;
mod placement;
pub mod process;
pub mod run;
mod summary;
pub mod text;

pub use context_cost::{ContextCost, ContextCosts, context_costs};
pub use engine::Engine;
pub use gguf::{Gguf, GgufError};
pub use grammar::{FormCost, SchemaError, check_schema};
pub use inference::{
    Constraint, Conversation, Event, Finished, GenerateParams, KvType, MAX_TOKENS, MIN_P,
    ModelRequest, PARAMETERS, Parameter, Priority, Prompt, PromptFrame, REPEAT_PENALTY, RequestId,
    Role, SEED, Sampling, SamplingDefaults, Signals, Stats, StopReason, TEMPERATURE,
    THINKING_BUDGET, TOP_K, TOP_P, ThinkingCut, TokenKind, ToolCall, ToolDefinition, Turn,
};
pub use inspect::{Inspection, ModelLine, TensorLine, TypeTotal};
pub use kernels::{CpuLevel, CpuLevelError, read_bandwidth};
pub use model::config::{Config, ConfigError};
pub use model::external::LogitsSource;
pub use model::kind::{model_kind, runnable};
pub use model_file::ModelFile;
pub use model_header::{ContextMemory, FileLabel, Footprint, ModelHeader};
pub use open_error::{GpuRejection, OpenError};
pub use options::{GpuPlacement, LoadOptions, Placement};
pub use placement::{ActiveDevice, GpuFit};
pub use run::error::GenerateError;
pub use run::kv_blocks::{KvBlocks, NoBlocks};
pub use run::scheduler::{OnEvent, RequestEnd, StepOptions};
pub use run::session::restorable;
pub use summary::ModelSummary;
pub use text::prompt::{PromptEncoder, PromptError};
pub use text::protocol::{Protocol, SMOLLM3_CHAT};
pub use text::template::{Capabilities, ChatTemplate, TemplateError};
pub use text::tokenizer::{Decoder, Tokenizer, TokenizerError};

//! The types that a chat and an engine share, each defined once.
//!
//! A [`Conversation`] becomes a [`Prompt`]; with [`GenerateParams`] the prompt is a [`ModelRequest`], which becomes [`Event`]s
//! and, at the end, [`Finished`]. A [`DeviceRequest`] selects the device. There is no behaviour here beyond names, ranges and defaults.

#![warn(missing_docs)]

mod answer;
mod conversation;
mod device;
mod frame;
mod parameters;
mod params;
mod part;
mod prompt;
mod request;
mod signals;
mod tool;

pub use answer::{Event, Finished, Stats, StopReason, ThinkingCut};
pub use conversation::{Conversation, Role, ToolCall, Turn};
pub use device::{DeviceRequest, Opening, UnknownDevice};
pub use frame::{CodeTool, Content, EncodedMessage, MessageFrame, PromptFrame};
pub use parameters::{
    MAX_TOKENS, MIN_P, MIN_TEMPERATURE, PARAMETERS, Parameter, REPEAT_PENALTY, SAMPLING_PARAMETERS,
    SEED, TEMPERATURE, THINKING_BUDGET, TOP_K, TOP_P,
};
pub use params::{GenerateParams, KvType, Sampling, SamplingDefaults};
pub use part::{Part, Parts, ToolOutcome};
pub use prompt::{Prompt, TokenKind};
pub use request::{ModelRequest, Priority, RequestId};
pub use signals::Signals;
pub use tool::{Constraint, ToolDefinition};

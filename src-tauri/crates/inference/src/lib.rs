//! The types that a chat and an engine share, each defined once.
//!
//! A [`Conversation`] becomes a [`Prompt`]; with [`GenerateParams`] the prompt becomes [`Event`]s and, at the end,
//! [`Finished`]. A [`DeviceRequest`] says what computes it. There is no behaviour here beyond names and defaults.

#![warn(missing_docs)]

mod answer;
mod conversation;
mod device;
mod frame;
mod params;
mod prompt;
mod signals;

pub use answer::{Event, Finished, Stats, StopReason, ThinkingCut};
pub use conversation::{Conversation, Role, Turn};
pub use device::{DeviceRequest, UnknownDevice};
pub use frame::{MessageFrame, PromptFrame};
pub use params::{GenerateParams, KvType, MIN_TEMPERATURE, Sampling};
pub use prompt::{Part, Prompt};
pub use signals::Signals;

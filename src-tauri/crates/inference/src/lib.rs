//! The types that a chat and an engine share, each defined once.
//!
//! A [`Conversation`] becomes a [`Prompt`]; with [`GenerateParams`] the prompt becomes [`Event`]s and, at the end,
//! [`Finished`]. There is no behaviour here beyond names and defaults.

#![warn(missing_docs)]

mod answer;
mod conversation;
mod params;
mod prompt;

pub use answer::{Event, Finished, Stats, StopReason};
pub use conversation::{Conversation, Role, Turn};
pub use params::{GenerateParams, KvType, MIN_TEMPERATURE, Sampling};
pub use prompt::{Part, Prompt};

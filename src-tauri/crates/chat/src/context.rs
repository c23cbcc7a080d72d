//! Usage of the context, as the window shows it.

use serde::Serialize;

use crate::view::Omitted;

/// Tokens that the next prompt of a chat would take of the model's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Length of the context.
    pub context: u32,
    /// Tokens reserved for the answer.
    pub reserved: u32,
    /// Instructions, including the additions of the model's protocol.
    pub instructions: u32,
    /// Definitions of the tools that are on.
    pub definitions: u32,
    /// Results of tools.
    pub results: u32,
    /// The chat, without its thinking and results.
    pub chat: u32,
    /// Thinking of the answers.
    pub thinking: u32,
    /// Texts pasted into the draft, as the window has counted them.
    pub pasted: u32,
    /// The draft.
    pub message: u32,
    /// Tokens that the model has read before.
    pub cached: u32,
    /// Messages and thinking that would be left out so that the rest fits.
    pub omitted: Option<Omitted>,
    /// Tokens of the answer in progress that were generated when this was counted.
    pub written: Option<u32>,
    /// Tokens of everything if nothing were left out.
    pub whole: u32,
    /// Tokens of everything without earlier thinking.
    pub without_thinking: u32,
    /// Maximum tokens of a message with its pasted texts, with the whole chat left out.
    pub message_room: u32,
}

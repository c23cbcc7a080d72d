//! What a context is filled with, as the window shows it.

use serde::Serialize;

use crate::view::Omitted;

/// What the next prompt of a chat would take of the model's context, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// The context.
    pub context: u32,
    /// Of it, what is kept free for the answer.
    pub reserved: u32,
    /// The instructions, with what the model's protocol adds.
    pub instructions: u32,
    /// The chat, without its thinking.
    pub chat: u32,
    /// What the answers have thought.
    pub thinking: u32,
    /// Texts that were pasted to the draft, as the window has counted them.
    pub pasted: u32,
    /// The draft.
    pub message: u32,
    /// Of all these, what the model has read before.
    pub cached: u32,
    /// What would be left out, so that the rest fits.
    pub omitted: Option<Omitted>,
    /// Of the answer that is being written: the tokens that were generated when this was counted.
    pub written: Option<u32>,
    /// What all would take if nothing were left out.
    pub whole: u32,
    /// The same without earlier thinking.
    pub without_thinking: u32,
    /// What a message and its pasted texts may take, with all of the chat left out.
    pub message_room: u32,
}

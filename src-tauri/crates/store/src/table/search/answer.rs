//! Results of a search.

use inference::{Part, Role};
use serde::Serialize;

use crate::table::id::{ChatId, MessageId};

/// The results of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct SearchAnswer {
    /// Chats with hits, the best first.
    pub chats: Vec<ChatHits>,
    /// True if more chats match than are listed.
    pub more: bool,
    /// True while older messages are still being indexed.
    pub indexing: bool,
}

/// Hits in a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ChatHits {
    /// The chat.
    pub chat: ChatId,
    /// Its title; hits stand between U+E000 and U+E001.
    pub title: String,
    /// True if the title matches the whole query.
    pub in_title: bool,
    /// Unix seconds of its best message, or of its last one if only the title was found.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub at: i64,
    /// Its best messages, in order.
    pub hits: Vec<SearchHit>,
    /// Number of matching messages, including those that are not in `hits`.
    pub count: u32,
}

/// A matching message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// The message.
    pub message: MessageId,
    /// Its author.
    pub role: Role,
    /// Kind of the part that the snippet is from.
    pub kind: PartKind,
    /// Original text around the hits, which stand between U+E000 and U+E001.
    pub snippet: String,
    /// Unix seconds of the message.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub at: i64,
}

/// The kind of a part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// Text.
    Text,
    /// Reasoning of the model.
    Thinking,
    /// A call of a tool.
    ToolCall,
    /// The result of a call.
    ToolResult,
}

impl From<&Part> for PartKind {
    fn from(part: &Part) -> PartKind {
        match part {
            Part::Text { .. } => PartKind::Text,
            Part::Thinking { .. } => PartKind::Thinking,
            Part::ToolCall { .. } => PartKind::ToolCall,
            Part::ToolResult { .. } => PartKind::ToolResult,
        }
    }
}

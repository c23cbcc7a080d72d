//! What a search answers.

use inference::Role;
use serde::Serialize;

use crate::table::id::{ChatId, MessageId};

/// The answer to a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct SearchAnswer {
    /// The chats in which something was found, the best first.
    pub chats: Vec<ChatHits>,
    /// More chats have it than are listed.
    pub more: bool,
    /// Older messages are not in the index yet: it is being made.
    pub indexing: bool,
}

/// What was found in a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ChatHits {
    /// The chat.
    pub chat: ChatId,
    /// Its title; hits stand between U+E000 and U+E001.
    pub title: String,
    /// The title has all of the query.
    pub in_title: bool,
    /// Unix seconds of its best message, or of its last one where only the title was found.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub at: i64,
    /// Its messages, the best first: a few of them.
    pub hits: Vec<SearchHit>,
    /// Messages that were found in it, those that are not in `hits` too.
    pub count: u32,
}

/// A message in which something was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// The message.
    pub message: MessageId,
    /// Who wrote it.
    pub role: Role,
    /// Whether the snippet is from its thinking.
    pub in_thinking: bool,
    /// Text around the hits, as it was written; hits stand between U+E000 and U+E001.
    pub snippet: String,
    /// Unix seconds of the message.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub at: i64,
}

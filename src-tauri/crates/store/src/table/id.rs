//! Keys of rows that other tables refer to.

use serde::{Deserialize, Serialize};

/// Names a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(transparent)]
pub struct ChatId(#[cfg_attr(feature = "specta", specta(type = u32))] pub i64);

/// Names a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(transparent)]
pub struct MessageId(#[cfg_attr(feature = "specta", specta(type = u32))] pub i64);

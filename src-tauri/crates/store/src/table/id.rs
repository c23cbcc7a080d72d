//! Keys of rows that other tables refer to. Those of temporary chats are in a separate range, so that an id tells in
//! which store its row is.

use serde::{Deserialize, Serialize};

/// Id of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(transparent)]
pub struct ChatId(#[cfg_attr(feature = "specta", specta(type = u32))] pub i64);

/// Id of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(transparent)]
pub struct MessageId(#[cfg_attr(feature = "specta", specta(type = u32))] pub i64);

/// Id of a preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(transparent)]
pub struct PresetId(#[cfg_attr(feature = "specta", specta(type = u32))] pub i64);

/// The first id of a chat or a message in [`Store::temporary`](crate::Store::temporary); a JavaScript number holds it.
pub(crate) const FIRST_TEMPORARY: i64 = 1 << 40;

impl ChatId {
    /// Returns whether the chat is never written to the disk.
    pub fn is_temporary(self) -> bool {
        self.0 >= FIRST_TEMPORARY
    }
}

impl MessageId {
    /// Returns whether the message belongs to a chat that is never written to the disk.
    pub fn is_temporary(self) -> bool {
        self.0 >= FIRST_TEMPORARY
    }
}

/// Id of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(transparent)]
pub struct FolderId(#[cfg_attr(feature = "specta", specta(type = u32))] pub i64);

//! A chat that is being copied into the other store: a temporary one to the disk, or one on the disk into memory.

use std::sync::Arc;
use std::time::Duration;

use store::{ChatCopy, ChatId, Store, StoreError};

/// A partly copied chat, which the waiting caller holds between the parts.
pub(crate) struct CopyingChat {
    /// The chat, which cannot change while this exists.
    chat: Arc<ChatId>,
    copy: ChatCopy,
    /// Token that blocks purges.
    _unfinished: Arc<()>,
}

/// A chat and its copy, which is still hidden.
pub(super) type CopiedChat = (ChatId, ChatCopy);

impl CopyingChat {
    pub(super) fn begin(chat: Arc<ChatId>, copy: ChatCopy, unfinished: Arc<()>) -> CopyingChat {
        CopyingChat {
            chat,
            copy,
            _unfinished: unfinished,
        }
    }

    pub fn is_whole(&self) -> bool {
        self.copy.is_whole()
    }

    pub(super) fn chat(&self) -> ChatId {
        *self.chat
    }

    pub(super) fn go_on(
        self,
        from: &Store,
        to: &Store,
        within: Duration,
    ) -> Result<CopyingChat, StoreError> {
        let copy = self.copy.go_on(from, to, within)?;
        Ok(CopyingChat { copy, ..self })
    }

    /// Returns the complete copy with its source chat, which may change from now on.
    pub(super) fn whole(self) -> CopiedChat {
        (*self.chat, self.copy)
    }
}

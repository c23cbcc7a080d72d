//! A chat that is being copied into the other store: a temporary one to the disk, or one of the disk to the memory.

use std::sync::Arc;
use std::time::Duration;

use store::{ChatCopy, ChatId, Store, StoreError};

/// A chat of which some is copied. Whoever waits for it holds it between the parts.
pub(crate) struct CopyingChat {
    /// The chat, in which nothing changes as long as this is there.
    chat: Arc<ChatId>,
    copy: ChatCopy,
    /// Nothing is purged as long as it is there.
    _unfinished: Arc<()>,
}

/// A chat, and a copy of it that is not shown yet.
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

    /// The copy, with the chat that it is of. The chat may change from now on.
    pub(super) fn whole(self) -> CopiedChat {
        (*self.chat, self.copy)
    }
}

//! Chats that are being copied in parts, between which others are served: forks, and copies into the other store, which
//! are of a temporary chat to the disk or of one on the disk into memory. A copy is hidden until it is whole; what an
//! interrupted one leaves is purged.

pub(crate) mod fork;
pub(crate) mod kept;

use std::sync::{Arc, Weak};

use store::{ChatCopy, ChatId, MessageId, StoreError};

use self::fork::{Fork, PART};
use crate::failure::Failure;
use crate::stores::Stores;

#[derive(Default)]
pub(crate) struct Copies {
    /// Token that is cloned by each copy in progress: meanwhile nothing hidden may be purged.
    unfinished: Arc<()>,
    /// Chats that are being copied into the other store, which cannot change.
    sources: Vec<Weak<ChatId>>,
    /// Copy for the change that is being undone or redone.
    whole: Option<(ChatId, ChatCopy)>,
}

/// A partly copied chat, which the waiting caller holds between the parts.
pub(crate) struct CopyingChat {
    chat: Arc<ChatId>,
    copy: ChatCopy,
    _unfinished: Arc<()>,
}

impl Copies {
    /// Returns whether a copy is in progress.
    pub fn any(&self) -> bool {
        Arc::strong_count(&self.unfinished) > 1
    }

    /// Begins to copy a branch into a chat of its own.
    pub fn begin_fork(
        &self,
        stores: &Stores,
        message: MessageId,
        at: i64,
    ) -> Result<Fork, Failure> {
        Fork::begin(stores, message, at, Arc::clone(&self.unfinished))
    }

    /// Begins to copy a chat into the other store.
    pub fn begin(&mut self, stores: &Stores, chat: ChatId) -> Result<CopyingChat, StoreError> {
        let (from, to) = stores.copying(chat);
        let copy = from.begin_copy(chat, to)?;
        let chat = Arc::new(chat);
        self.sources.retain(|chat| chat.strong_count() > 0);
        self.sources.push(Arc::downgrade(&chat));
        Ok(CopyingChat {
            chat,
            copy,
            _unfinished: Arc::clone(&self.unfinished),
        })
    }

    /// Fails while the chat is being copied into the other store.
    pub fn refuse(&self, chat: ChatId) -> Result<(), Failure> {
        let mut sources = self.sources.iter().filter_map(Weak::upgrade);
        if sources.any(|source| *source == chat) {
            return Err(Failure::other(
                "This chat is still being copied. Try again in a moment.",
            ));
        }
        Ok(())
    }

    /// Sets the copy for the change that is being undone or redone. Its chat may change from now on. Returns whether
    /// another was not used.
    pub fn set_whole(&mut self, copying: Option<CopyingChat>) -> bool {
        let whole = copying.map(|copying| (*copying.chat, copying.copy));
        std::mem::replace(&mut self.whole, whole).is_some()
    }

    /// Returns whether that copy is of this chat.
    pub fn is_whole(&self, chat: ChatId) -> bool {
        self.whole.as_ref().is_some_and(|(of, _)| *of == chat)
    }

    /// Publishes that copy.
    pub fn publish(&mut self, stores: &Stores, chat: ChatId) -> Result<ChatId, StoreError> {
        let whole = self.whole.take_if(|(of, _)| *of == chat);
        let (_, copy) = whole.ok_or(StoreError::NotFound("copy"))?;
        let (from, to) = stores.copying(chat);
        copy.finish(from, to)
    }
}

impl CopyingChat {
    pub fn is_whole(&self) -> bool {
        self.copy.is_whole()
    }

    pub fn chat(&self) -> ChatId {
        *self.chat
    }

    /// Copies the next part.
    pub fn go_on(self, stores: &Stores) -> Result<CopyingChat, StoreError> {
        let (from, to) = stores.copying(*self.chat);
        let copy = self.copy.go_on(from, to, PART)?;
        Ok(CopyingChat { copy, ..self })
    }

    /// Publishes the copy. Returns its id.
    pub fn finish(self, stores: &Stores) -> Result<ChatId, StoreError> {
        let (from, to) = stores.copying(*self.chat);
        self.copy.finish(from, to)
    }
}

#[cfg(test)]
mod tests {
    use store::Store;

    use super::*;
    use crate::stores::tests::add_answer;

    #[test]
    fn a_chat_cannot_change_while_it_is_copied() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (chat, answer) = add_answer(&stores.temporary)?;
        let (other, _) = add_answer(&stores.temporary)?;
        let mut copies = Copies::default();
        let mut copying = copies.begin(&stores, chat)?;
        assert!(copies.any());
        assert!(copies.refuse(chat).is_err());
        assert!(copies.refuse(other).is_ok());
        while !copying.is_whole() {
            copying = copying.go_on(&stores)?;
        }
        let kept = copying.finish(&stores)?;
        assert!(!copies.any());
        assert!(copies.refuse(chat).is_ok());
        let asked = &stores.path(answer)?[0].progress.parts;
        let copy = stores.shown_path(&stores.chat(kept)?)?;
        assert_eq!(&copy[0].progress.parts, asked);
        Ok(())
    }

    #[test]
    fn a_copy_for_undo_is_of_its_chat_alone_and_used_once() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (chat, _) = add_answer(&stores.temporary)?;
        let other = ChatId(chat.0 + 1);
        let mut copies = Copies::default();
        let mut copying = copies.begin(&stores, chat)?;
        while !copying.is_whole() {
            copying = copying.go_on(&stores)?;
        }
        assert!(!copies.set_whole(Some(copying)));
        assert!(!copies.any(), "the change may be made");
        assert!(copies.is_whole(chat) && !copies.is_whole(other));
        assert!(copies.publish(&stores, other).is_err());
        let kept = copies.publish(&stores, chat)?;
        assert!(!kept.is_temporary());
        assert!(copies.publish(&stores, chat).is_err());
        assert!(!copies.set_whole(None), "it was used");
        Ok(())
    }

    #[test]
    fn a_fork_is_hidden_until_it_is_whole_and_stops_no_change() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (chat, answer) = add_answer(&stores.disk)?;
        let copies = Copies::default();
        let mut fork = copies.begin_fork(&stores, answer, 9)?;
        assert!(copies.any());
        assert!(copies.refuse(chat).is_ok());
        while !fork.is_whole() {
            fork = fork.go_on(&stores)?;
        }
        assert_eq!(stores.disk.chats().list()?.len(), 1);
        fork.publish(&stores)?;
        assert_eq!(stores.disk.chats().list()?.len(), 2);
        let copy = stores.shown_path(&stores.chat(fork.chat)?)?;
        assert_eq!(copy.len(), 2);
        drop(fork);
        assert!(!copies.any());
        Ok(())
    }
}

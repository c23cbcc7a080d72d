//! A temporary chat that the user kept: it goes on as a copy on the disk, and is hidden in memory for undo.

use store::{ChatField, ChatId, DraftPlace, StoreError};

use crate::stores::Stores;

#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptChat {
    /// The temporary chat.
    pub chat: ChatId,
    /// Its copy.
    pub copy: ChatId,
    /// Messages of the copy at that time.
    messages: usize,
}

impl KeptChat {
    /// Replaces a temporary chat with its copy.
    pub fn new(
        stores: &Stores,
        chat: ChatId,
        copy: ChatId,
        at: i64,
    ) -> Result<KeptChat, StoreError> {
        let values = vec![(chat, Some(at))];
        stores.temporary.chats().set(ChatField::Deleted, &values)?;
        let messages = stores.count_messages(copy)?;
        Ok(KeptChat {
            chat,
            copy,
            messages,
        })
    }

    /// Returns whether the temporary chat still exists, and the copy has no later messages.
    pub fn is_unchanged(&self, stores: &Stores) -> Result<bool, StoreError> {
        let is_there = stores.temporary.chats().get_with_deleted(self.chat).is_ok();
        Ok(is_there && stores.count_messages(self.copy)? == self.messages)
    }

    /// Restores the temporary chat, with the draft of the copy.
    pub fn restore(&self, stores: &Stores) -> Result<(), StoreError> {
        let draft = stores.disk.drafts().get(DraftPlace::Chat(self.copy))?;
        let chats = stores.temporary.chats();
        chats.set(ChatField::Deleted, &vec![(self.chat, None)])?;
        let place = DraftPlace::Chat(self.chat);
        stores.temporary.drafts().put(place, &draft)
    }

    /// Has the copy purged, in whose place `chat` goes on. After a failure the copy goes on.
    pub fn expire_copy(&self, stores: &Stores, chat: ChatId, at: i64) -> Result<(), StoreError> {
        let expired = stores.disk.transaction(|store| {
            let chats = store.chats();
            chats.set(ChatField::Deleted, &vec![(self.copy, Some(at))])?;
            chats.expire(&[self.copy])
        });
        if expired.is_err() {
            stores.temporary.chats().delete(chat, at)?;
        }
        expired.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use store::{Store, faults};

    use super::*;
    use crate::branches;
    use crate::copies::Copies;
    use crate::stores::tests::add_answer;

    fn keep(stores: &Stores) -> Result<KeptChat, StoreError> {
        let (chat, _) = add_answer(&stores.temporary)?;
        let mut copying = Copies::default().begin(stores, chat)?;
        while !copying.is_whole() {
            copying = copying.go_on(stores)?;
        }
        let copy = copying.finish(stores)?;
        KeptChat::new(stores, chat, copy, 9)
    }

    #[test]
    fn a_kept_chat_comes_back_with_its_draft() -> Result<(), StoreError> {
        let stores = Stores::new(Store::in_memory()?)?;
        let kept = keep(&stores)?;
        assert!(stores.chat(kept.chat).is_err());
        let place = DraftPlace::Chat(kept.copy);
        stores.disk.drafts().set(place, "And when?")?;
        assert!(kept.is_unchanged(&stores)?);
        kept.restore(&stores)?;
        kept.expire_copy(&stores, kept.chat, 10)?;
        assert!(stores.chat(kept.copy).is_err());
        stores.chat(kept.chat)?;
        let draft = stores.temporary.drafts().get(DraftPlace::Chat(kept.chat))?;
        assert_eq!(draft.text, "And when?");
        Ok(())
    }

    #[test]
    fn later_messages_make_it_another_chat() -> Result<(), StoreError> {
        let stores = Stores::new(Store::in_memory()?)?;
        let kept = keep(&stores)?;
        let leaf = stores.chat(kept.copy)?.leaf;
        branches::add_question(&stores.disk, kept.copy, leaf, "And?", false, 10)?;
        assert!(!kept.is_unchanged(&stores)?);
        Ok(())
    }

    #[test]
    fn a_copy_that_cannot_be_removed_goes_on() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("goldcrest.db");
        let stores = Stores::new(Store::open(&file)?)?;
        let kept = keep(&stores)?;
        kept.restore(&stores)?;
        faults::refuse_writes(&file, &["chat"])?;
        assert!(kept.expire_copy(&stores, kept.chat, 10).is_err());
        assert!(stores.chat(kept.chat).is_err());
        stores.chat(kept.copy)?;
        Ok(())
    }
}

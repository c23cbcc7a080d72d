//! The two stores: of the chats on the disk, and of the temporary ones. An id tells which of them has its row.

use store::{
    ChatField, ChatId, ChatPreset, ChatRow, ChatValues, DraftPlace, MessageId, MessageRow,
    MessageTable, Store, StoreError,
};

use crate::failure::Failure;

pub(crate) struct Stores {
    /// Everything but the temporary chats: settings, presets, folders and windows too.
    pub disk: Store,
    /// Temporary chats, in memory.
    pub temporary: Store,
}

impl Stores {
    pub fn new(disk: Store) -> Result<Stores, StoreError> {
        Ok(Stores {
            disk,
            temporary: Store::temporary()?,
        })
    }

    /// Returns the store of a chat.
    pub fn of(&self, chat: ChatId) -> &Store {
        self.copying(chat).0
    }

    /// Returns the store of a chat, and the one that it can be copied into.
    pub fn copying(&self, chat: ChatId) -> (&Store, &Store) {
        if chat.is_temporary() {
            (&self.temporary, &self.disk)
        } else {
            (&self.disk, &self.temporary)
        }
    }

    /// Returns the store of a draft.
    pub fn at(&self, place: DraftPlace) -> &Store {
        match place {
            DraftPlace::NewChat => &self.disk,
            DraftPlace::Chat(chat) => self.of(chat),
        }
    }

    /// Returns the place of a chat's draft, or without a chat that of the next new one. The chat must exist.
    pub fn draft_place(&self, chat: Option<ChatId>) -> Result<DraftPlace, StoreError> {
        Ok(match chat {
            Some(chat) => DraftPlace::Chat(self.chat(chat)?.id),
            None => DraftPlace::NewChat,
        })
    }

    pub fn chat(&self, chat: ChatId) -> Result<ChatRow, StoreError> {
        self.of(chat).chats().get(chat)
    }

    /// Returns the chats among these that are not deleted.
    pub fn some(&self, chats: &[ChatId]) -> Result<Vec<ChatRow>, StoreError> {
        let mut rows = self.disk.chats().some(chats)?;
        rows.extend(self.temporary.chats().some(chats)?);
        Ok(rows)
    }

    /// Returns the ids of all chats, deleted ones included.
    pub fn ids_of_all(&self) -> Result<Vec<ChatId>, StoreError> {
        let mut all = self.disk.chats().ids_of_all()?;
        all.extend(self.temporary.chats().ids_of_all()?);
        Ok(all)
    }

    /// Sets a field of chats, and returns its former values. Chats that do not exist are left out; an error if none
    /// does, and if a temporary one would get a place among those on the disk.
    pub fn set(&self, field: ChatField, values: ChatValues) -> Result<ChatValues, Failure> {
        let (temporary, kept): (ChatValues, ChatValues) = values
            .into_iter()
            .partition(|(chat, _)| chat.is_temporary());
        if field != ChatField::Deleted && !temporary.is_empty() {
            return Err(Failure::other(
                "A temporary chat cannot be pinned, archived or put in a folder. Keep it first.",
            ));
        }
        let mut before = ChatValues::new();
        for (store, values) in [(&self.disk, kept), (&self.temporary, temporary)] {
            match store.chats().set(field, &values) {
                // The rest are changed all the same.
                Err(StoreError::NotFound(_)) => {}
                was => before.extend(was?),
            }
        }
        if before.is_empty() {
            return Err(StoreError::NotFound("chat").into());
        }
        Ok(before)
    }

    /// Returns the messages of the store that has this message.
    pub fn messages_with(&self, message: MessageId) -> MessageTable<'_> {
        let store = if message.is_temporary() {
            &self.temporary
        } else {
            &self.disk
        };
        store.messages()
    }

    pub fn message(&self, message: MessageId) -> Result<MessageRow, StoreError> {
        self.messages_with(message).get(message)
    }

    /// Returns the branch that ends with this message, the root first.
    pub fn path(&self, leaf: MessageId) -> Result<Vec<MessageRow>, StoreError> {
        self.messages_with(leaf).path(leaf)
    }

    /// Returns the shown branch of a chat, the root first.
    pub fn shown_path(&self, chat: &ChatRow) -> Result<Vec<MessageRow>, StoreError> {
        chat.leaf.map_or(Ok(Vec::new()), |leaf| self.path(leaf))
    }

    /// Returns the preset and instructions chosen for a chat, or for the next new one.
    pub fn chosen_preset(&self, chat: Option<ChatId>) -> Result<Option<ChatPreset>, StoreError> {
        let place = chat.map_or(DraftPlace::NewChat, DraftPlace::Chat);
        self.at(place).presets().of(place)
    }

    /// Returns the number of a chat's messages, in all branches.
    pub fn count_messages(&self, chat: ChatId) -> Result<usize, StoreError> {
        Ok(self.of(chat).messages().tree(chat)?.len())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use store::{MessageState, NewMessage, Parts, Role};

    use super::*;

    /// Adds a chat with an answer that is being written.
    pub(crate) fn add_answer(store: &Store) -> Result<(ChatId, MessageId), StoreError> {
        let chat = store.chats().create("A chat", "2026-03-05", 1)?;
        let add = |parent, role, state, text| {
            let (thinks, created_at) = (false, 1);
            store.messages().add(&NewMessage {
                chat,
                parent,
                role,
                state,
                parts: Parts::of_text(text),
                thinks,
                created_at,
            })
        };
        let asked = add(
            None,
            Role::User,
            MessageState::Done,
            "Where do goldcrests nest?",
        )?;
        let answer = add(Some(asked), Role::Assistant, MessageState::Writing, "")?;
        Ok((chat, answer))
    }

    fn stores_with_a_chat_each() -> Result<(Stores, [ChatId; 2]), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let create = |store: &Store| store.chats().create("A chat", "2026-03-05", 1);
        let chats = [create(&stores.disk)?, create(&stores.temporary)?];
        Ok((stores, chats))
    }

    #[test]
    fn an_id_leads_to_the_store_of_its_row() -> Result<(), Failure> {
        let (stores, [kept, temporary]) = stores_with_a_chat_each()?;
        assert!(stores.disk.chats().get(temporary).is_err());
        assert!(stores.temporary.chats().get(kept).is_err());
        for chat in [kept, temporary] {
            assert_eq!(stores.chat(chat)?.id, chat);
            let (_, other) = stores.copying(chat);
            assert!(other.chats().get(chat).is_err());
        }
        assert_eq!(stores.ids_of_all()?, [kept, temporary]);
        Ok(())
    }

    #[test]
    fn chats_of_both_stores_are_changed_together_and_back() -> Result<(), Failure> {
        let (stores, chats) = stores_with_a_chat_each()?;
        let gone = ChatId(chats[0].0 + 1);
        let deleted = chats.map(|chat| (chat, Some(5))).into_iter();
        let values = deleted.chain([(gone, Some(5))]).collect();
        let before = stores.set(ChatField::Deleted, values)?;
        assert!(stores.some(&chats)?.is_empty());
        stores.set(ChatField::Deleted, before)?;
        assert_eq!(stores.some(&chats)?.len(), 2);
        assert!(stores.set(ChatField::Deleted, vec![(gone, None)]).is_err());
        Ok(())
    }

    #[test]
    fn a_temporary_chat_gets_no_place_among_those_on_the_disk() -> Result<(), Failure> {
        let (stores, chats) = stores_with_a_chat_each()?;
        let values = chats.map(|chat| (chat, Some(5))).to_vec();
        assert!(stores.set(ChatField::Pinned, values).is_err());
        assert_eq!(stores.chat(chats[0])?.pinned_at, None);
        Ok(())
    }
}

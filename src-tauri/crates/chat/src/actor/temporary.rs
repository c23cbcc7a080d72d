//! Temporary chats: what is said in them is in memory alone, until the user keeps one.

use std::collections::BTreeSet;
use std::time::Duration;

use store::{ChatField, ChatId, ChatPreset, DraftPlace, Store, WholeChat};

use crate::actor::daily::Daily;
use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::failure::Failure;
use crate::view::{ChatEvent, ChatSummary, ChatView};

impl ChatActor {
    /// A temporary chat in which nothing was said yet. Its draft is in memory, too.
    pub(crate) fn new_temporary_chat(&mut self) -> Result<ChatView, Failure> {
        let chats = self.temporary.chats();
        let today = self.clock.now().date().to_string();
        let unused = chats
            .list()?
            .into_iter()
            .find(|row| row.title.is_empty() && row.leaf.is_none() && row.today == today);
        let chat = match unused {
            Some(row) => row.id,
            None => self.create_temporary(&today)?,
        };
        self.emit_changed(chat)?;
        self.view(chat, None)
    }

    /// It begins with what a new chat would.
    fn create_temporary(&self, today: &str) -> Result<ChatId, Failure> {
        let (at, chosen) = (self.now(), self.chat_preset(None)?);
        self.temporary.transaction(|store| {
            let chat = store.chats().create("", today, at)?;
            if chosen != ChatPreset::default() {
                let place = DraftPlace::Chat(chat);
                store.presets().choose(place, Some(&chosen))?;
            }
            Ok(chat)
        })
    }

    /// Copies a temporary chat to the disk, where it goes on.
    pub(crate) fn keep_chat(&mut self, chat: ChatId) -> Result<ChatSummary, Failure> {
        if !chat.is_temporary() {
            return Err(Failure::other("This chat is kept already."));
        }
        self.refuse_change(chat)?;
        let title = self.chat_row(chat)?.title;
        if title.is_empty() {
            return Err(Failure::other("There is nothing to keep in this chat yet."));
        }
        let (kept, revert) = self.move_to_disk(chat)?;
        self.record_in_branch(format!("kept “{title}”"), kept, None, revert);
        Ok(self.summary(self.chat_row(kept)?))
    }

    fn move_to_disk(&mut self, chat: ChatId) -> Result<(ChatId, Revert), Failure> {
        let kept = self.temporary.copy_chat(chat, &self.store)?;
        self.temporary
            .chats()
            .set(ChatField::Deleted, &vec![(chat, Some(self.now()))])?;
        let messages = self.messages_of(kept)?;
        // What was read of it is taken up by the chat that it is now.
        let chats = vec![chat];
        self.emit(ChatEvent::ChatsRemoved { chats });
        self.emit_changed(kept)?;
        let revert = Revert::new(move |actor| actor.make_temporary(kept, chat, messages));
        Ok((kept, revert.showing(kept)))
    }

    /// Takes back that `chat` was kept as `kept`, of as many `messages`: it is purged from the disk.
    fn make_temporary(
        &mut self,
        kept: ChatId,
        chat: ChatId,
        messages: usize,
    ) -> Result<Revert, Failure> {
        self.refuse_change(kept)?;
        let at = self.now();
        let is_there = self.temporary.chats().get_with_deleted(chat).is_ok();
        let chat = if is_there && self.messages_of(kept)? == messages {
            let draft = self.store.drafts().get(DraftPlace::Chat(kept))?;
            let chats = self.temporary.chats();
            chats.set(ChatField::Deleted, &vec![(chat, None)])?;
            self.temporary
                .drafts()
                .put(DraftPlace::Chat(chat), &draft)?;
            chat
        } else {
            // What was said since is not lost.
            self.store.copy_chat(kept, &self.temporary)?
        };
        let expired = self.store.transaction(|store| {
            let chats = store.chats();
            chats.set(ChatField::Deleted, &vec![(kept, Some(at))])?;
            chats.expire(&[kept])
        });
        if let Err(error) = expired {
            self.temporary.chats().delete(chat, at)?;
            return Err(error.into());
        }
        self.purging = Daily::after(Duration::ZERO);
        self.leave(vec![kept])?;
        self.retain_chats(&BTreeSet::new());
        self.emit_changed(chat)?;
        let again = Revert::new(move |actor| Ok(actor.move_to_disk(chat)?.1));
        Ok(again.showing(chat))
    }

    /// A chat as it leaves its store. The presets of temporary chats are in another one.
    pub(crate) fn whole_chat(&self, chat: ChatId) -> Result<WholeChat, Failure> {
        let mut whole = self.store_of(chat).records().read(chat)?;
        let chosen = self.chosen_preset(Some(chat))?;
        let preset = chosen.and_then(|chosen| chosen.preset);
        if let Some(preset) = preset.filter(|_| chat.is_temporary())
            && let Some(row) = self.store.presets().get(preset)?
            && let Some(chosen) = &mut whole.chat.chosen_preset
        {
            chosen.preset = Some(row.name);
        }
        Ok(whole)
    }

    fn messages_of(&self, chat: ChatId) -> Result<usize, Failure> {
        Ok(self.store_of(chat).messages().tree(chat)?.len())
    }

    /// The ids of all chats that there are, deleted ones included.
    pub(super) fn ids_of_all(&self) -> Result<Vec<ChatId>, Failure> {
        let ids = |store: &Store| store.chats().ids_of_all();
        let mut all = ids(&self.store)?;
        all.extend(ids(&self.temporary)?);
        Ok(all)
    }
}

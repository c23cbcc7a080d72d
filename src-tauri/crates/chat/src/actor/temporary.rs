//! Temporary chats: what is said in them is in memory alone, until the user keeps one.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use store::{ChatCopy, ChatField, ChatId, ChatPreset, DraftPlace, Store, StoreError, WholeChat};

use crate::actor::daily::Daily;
use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::failure::Failure;
use crate::job::Job;
use crate::view::{ChatEvent, ChatSummary, ChatView};

/// How long others wait while a part of a chat is copied.
const PART: Duration = Duration::from_millis(30);

/// A temporary chat that is being copied to the disk.
pub(crate) struct Keeping {
    /// The chat, in which nothing changes as long as this is there.
    chat: Arc<ChatId>,
    copy: ChatCopy,
    /// Nothing is purged as long as it is there.
    _unfinished: Arc<()>,
}

impl Keeping {
    pub fn is_whole(&self) -> bool {
        self.copy.is_whole()
    }
}

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

    /// Begins to copy a temporary chat to the disk.
    pub(crate) fn begin_keep(&mut self, chat: ChatId) -> Result<Keeping, Failure> {
        if !chat.is_temporary() {
            return Err(Failure::other("This chat is kept already."));
        }
        self.refuse_change(chat)?;
        if self.chat_row(chat)?.title.is_empty() {
            return Err(Failure::other("There is nothing to keep in this chat yet."));
        }
        let copy = self.temporary.begin_copy(chat, &self.store)?;
        let chat = Arc::new(chat);
        self.being_kept.retain(|kept| kept.strong_count() > 0);
        self.being_kept.push(Arc::downgrade(&chat));
        Ok(Keeping {
            chat,
            copy,
            _unfinished: Arc::clone(&self.unfinished),
        })
    }

    /// Copies some of it. After a failure nothing of the chat stays on the disk.
    pub(crate) fn go_on_with_keep(&mut self, keeping: Keeping) -> Result<Keeping, Failure> {
        let Keeping { copy, .. } = keeping;
        let copy = self.or_purge(|actor| copy.go_on(&actor.temporary, &actor.store, PART))?;
        Ok(Keeping { copy, ..keeping })
    }

    pub(crate) fn end_keep(&mut self, keeping: Keeping) -> Result<ChatSummary, Failure> {
        let Keeping { chat, copy, .. } = keeping;
        let kept = self.or_purge(|actor| copy.finish(&actor.temporary, &actor.store))?;
        let revert = self.go_on_as(*chat, kept)?;
        let row = self.chat_row(kept)?;
        self.record_in_branch(format!("kept “{}”", row.title), kept, None, revert);
        Ok(self.summary(row))
    }

    /// Fails while the chat is being copied to the disk.
    pub(super) fn refuse_if_being_kept(&self, chat: ChatId) -> Result<(), Failure> {
        let kept = self.being_kept.iter().filter_map(Weak::upgrade);
        if kept.into_iter().any(|kept| *kept == chat) {
            return Err(Failure::other(
                "This chat is still being kept. Try again in a moment.",
            ));
        }
        Ok(())
    }

    /// Writes to the disk. What is hidden there after a failure is purged at once.
    fn or_purge<T>(
        &mut self,
        write: impl FnOnce(&ChatActor) -> Result<T, StoreError>,
    ) -> Result<T, Failure> {
        let written = write(self);
        if written.is_err() {
            self.purging = Daily::after(Duration::ZERO);
        }
        Ok(written?)
    }

    fn move_to_disk(&mut self, chat: ChatId) -> Result<Revert, Failure> {
        let kept = self.or_purge(|actor| actor.temporary.copy_chat(chat, &actor.store))?;
        self.go_on_as(chat, kept)
    }

    /// Has the copy on the disk take the place of a temporary chat.
    fn go_on_as(&mut self, chat: ChatId, kept: ChatId) -> Result<Revert, Failure> {
        self.temporary
            .chats()
            .set(ChatField::Deleted, &vec![(chat, Some(self.now()))])?;
        let messages = self.messages_of(kept)?;
        // What was read of it is taken up by the chat that it is now.
        let chats = vec![chat];
        self.emit(ChatEvent::ChatsRemoved { chats });
        self.emit_changed(kept)?;
        let revert = Revert::new(move |actor| actor.make_temporary(kept, chat, messages));
        Ok(revert.showing(kept))
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
        // Before what is left of the other is forgotten.
        self.submit_job(Job::Relabel {
            from: kept,
            to: chat,
        });
        self.leave(vec![kept])?;
        self.retain_chats(&BTreeSet::new());
        self.emit_changed(chat)?;
        let again = Revert::new(move |actor| actor.move_to_disk(chat));
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

//! Copies of chats: forks, and temporary chats, which are in memory only until the user keeps one.

use std::collections::BTreeSet;

use store::{ChatId, MessageId, StoreError, WholeChat};

use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::copies::CopyingChat;
use crate::copies::fork::Fork;
use crate::copies::kept::KeptChat;
use crate::failure::Failure;
use crate::job::Job;
use crate::preset::guidance::chat_preset;
use crate::preset::stored;
use crate::view::{ChatEvent, ChatSummary, ChatView};

impl ChatActor {
    pub(crate) fn begin_fork(&mut self, message: MessageId) -> Result<Fork, Failure> {
        let source = self.stores.message(message)?.chat;
        self.refuse_change(source)?;
        self.copies.begin_fork(&self.stores, message, self.now())
    }

    pub(crate) fn end_fork(&mut self, fork: &Fork) -> Result<ChatView, Failure> {
        fork.publish(&self.stores)?;
        let (chat, source) = (fork.chat, fork.source);
        self.emit_changed(chat)?;
        let revert = Revert::new(move |actor| actor.take_derived(chat, source));
        self.record(format!("made a new chat of “{}”", fork.title), chat, revert);
        self.view(chat, None)
    }

    /// Creates an empty temporary chat. Its draft is in memory, too.
    pub(crate) fn new_temporary_chat(&mut self) -> Result<ChatView, Failure> {
        let chats = self.stores.temporary.chats();
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

    /// Creates its row with the defaults of a new chat.
    fn create_temporary(&self, today: &str) -> Result<ChatId, Failure> {
        let at = self.now();
        let chosen = chat_preset(&self.stores, &self.settings, None)?;
        self.stores.temporary.transaction(|store| {
            let chat = store.chats().create("", today, at)?;
            stored::begin_with(store, chat, &chosen)?;
            Ok(chat)
        })
    }

    /// Begins to copy a temporary chat to the disk.
    pub(crate) fn begin_keep(&mut self, chat: ChatId) -> Result<CopyingChat, Failure> {
        if !chat.is_temporary() {
            return Err(Failure::other("This chat is kept already."));
        }
        if self.stores.chat(chat)?.title.is_empty() {
            return Err(Failure::other("There is nothing to keep in this chat yet."));
        }
        self.begin_copying(chat)
    }

    /// Begins to copy a chat into the other store.
    pub(super) fn begin_copying(&mut self, chat: ChatId) -> Result<CopyingChat, Failure> {
        self.refuse_change(chat)?;
        Ok(self.copies.begin(&self.stores, chat)?)
    }

    /// Copies the next part. After a failure nothing of the copy stays.
    pub(crate) fn go_on_copying(&mut self, copying: CopyingChat) -> Result<CopyingChat, Failure> {
        let copied = copying.go_on(&self.stores);
        self.or_purge(copied)
    }

    pub(crate) fn end_keep(&mut self, copying: CopyingChat) -> Result<ChatSummary, Failure> {
        let chat = copying.chat();
        let kept = copying.finish(&self.stores);
        let kept = self.or_purge(kept)?;
        let revert = self.go_on_as(chat, kept)?;
        let row = self.stores.chat(kept)?;
        self.record_in_branch(format!("kept “{}”", row.title), kept, None, revert);
        Ok(self.summary(row))
    }

    /// Passes on the result of a copy. After a failure the hidden rows are purged at once.
    fn or_purge<T>(&mut self, copied: Result<T, StoreError>) -> Result<T, Failure> {
        if copied.is_err() {
            self.upkeep.purge_soon();
        }
        Ok(copied?)
    }

    /// Publishes the copy that was made of a chat for undo or redo.
    fn finish_copy(&mut self, chat: ChatId) -> Result<ChatId, Failure> {
        let copied = self.copies.publish(&self.stores, chat);
        self.or_purge(copied)
    }

    fn move_to_disk(&mut self, chat: ChatId) -> Result<Revert, Failure> {
        let kept = self.finish_copy(chat)?;
        self.go_on_as(chat, kept)
    }

    /// Replaces a temporary chat with its copy on the disk.
    fn go_on_as(&mut self, chat: ChatId, copy: ChatId) -> Result<Revert, Failure> {
        let kept = KeptChat::new(&self.stores, chat, copy, self.now())?;
        // Its cache now belongs to the copy.
        let chats = vec![chat];
        self.emit(ChatEvent::ChatsRemoved { chats });
        self.emit_changed(copy)?;
        let revert = Revert::new(move |actor| actor.make_temporary(kept));
        let copies = move |actor: &ChatActor| {
            let is_same = kept.is_unchanged(&actor.stores)?;
            Ok((!is_same).then_some(copy))
        };
        Ok(revert.showing(copy).copying(copies))
    }

    /// Undoes that a chat was kept: the copy is purged from the disk.
    fn make_temporary(&mut self, kept: KeptChat) -> Result<Revert, Failure> {
        self.refuse_change(kept.copy)?;
        let chat = if kept.is_unchanged(&self.stores)? {
            kept.restore(&self.stores)?;
            kept.chat
        } else {
            // Later messages are not lost.
            self.finish_copy(kept.copy)?
        };
        kept.expire_copy(&self.stores, chat, self.now())?;
        self.upkeep.purge_soon();
        // Done before the rest of the other is dropped.
        self.jobs.submit(Job::Relabel {
            from: kept.copy,
            to: chat,
        });
        self.leave(vec![kept.copy])?;
        self.retain_chats(&BTreeSet::new());
        self.emit_changed(chat)?;
        let again = Revert::new(move |actor| actor.move_to_disk(chat));
        Ok(again.showing(chat).copying(move |_| Ok(Some(chat))))
    }

    /// Returns a chat in the form in which it leaves its store. The presets of temporary chats are in the other store.
    pub(crate) fn whole_chat(&self, chat: ChatId) -> Result<WholeChat, Failure> {
        let mut whole = self.stores.of(chat).records().read(chat)?;
        let chosen = self.stores.chosen_preset(Some(chat))?;
        let preset = chosen.and_then(|chosen| chosen.preset);
        if let Some(preset) = preset.filter(|_| chat.is_temporary())
            && let Some(row) = self.stores.disk.presets().get(preset)?
            && let Some(chosen) = &mut whole.chat.chosen_preset
        {
            chosen.preset = Some(row.name);
        }
        Ok(whole)
    }
}

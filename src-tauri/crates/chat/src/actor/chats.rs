//! Chats as they are shown, begun and continued.

use inference::Role;
use store::{ChatId, ChatRow, DraftPlace, MessageId, MessageRow, QueuedMessage, Store, StoreError};

use crate::actor::drafting::refuse_large_queue;
use crate::actor::state::{CURRENT, ChatActor};
use crate::actor::undo::Revert;
use crate::answers::AnswerStart;
use crate::branches::message_text;
use crate::failure::Failure;
use crate::folders;
use crate::preset::guidance::chat_preset;
use crate::preset::stored;
use crate::view::{ChatEvent, ChatSnapshot, ChatSummary, ChatView};
use crate::{branches, showing, summary, title};

impl ChatActor {
    pub(crate) fn snapshot(&self) -> Result<ChatSnapshot, Failure> {
        let mut rows = self.stores.temporary.chats().list()?;
        rows.extend(self.stores.disk.chats().list()?);
        let chats: Vec<ChatSummary> = rows.into_iter().map(|row| self.summary(row)).collect();
        let current = self
            .stores
            .disk
            .settings()
            .get(CURRENT)?
            .and_then(|id| id.as_i64())
            .map(ChatId);
        Ok(ChatSnapshot {
            first_start: !self.stores.disk.chats().any()?,
            current: current.filter(|id| chats.iter().any(|chat| chat.id == *id)),
            chats,
            folders: folders::list(&self.stores.disk)?,
            settings: self.settings.clone(),
            model: self.model.view(),
            new_chat_draft: self.stores.disk.drafts().get(DraftPlace::NewChat)?,
            presets: stored::list(&self.stores.disk)?,
            new_chat_preset: self.stores.chosen_preset(None)?,
        })
    }

    /// Returns a chat as the list shows it.
    pub(super) fn summary(&self, row: ChatRow) -> ChatSummary {
        showing::summary(&self.answers, row)
    }

    /// Returns the shown branch of a chat, after the message `after`.
    pub(super) fn view(&self, chat: ChatId, after: Option<MessageId>) -> Result<ChatView, Failure> {
        showing::view(&self.stores, &self.answers, chat, after)
    }

    pub(crate) fn open_chat(&mut self, chat: ChatId) -> Result<ChatView, Failure> {
        let view = self.view(chat, None)?;
        if chat.is_temporary() || view.chat.purge_at.is_some() {
            return Ok(view);
        }
        if let Err(error) = self.stores.disk.settings().set(CURRENT, &chat.0.into()) {
            // It can be read all the same.
            tracing::warn!(%error, "which chat is open was not saved");
        }
        Ok(view)
    }

    pub(crate) fn send(
        &mut self,
        chat: Option<ChatId>,
        text: &str,
        thinking: bool,
    ) -> Result<ChatView, Failure> {
        self.add_question(chat, text, thinking, |store, place| {
            store.drafts().set(place, "")?;
            store.drafts().set_pastes(place, &[])
        })
    }

    pub(crate) fn send_queued(
        &mut self,
        chat: ChatId,
        text: &str,
        thinking: bool,
        rest: &[QueuedMessage],
    ) -> Result<ChatView, Failure> {
        refuse_large_queue(rest)?;
        self.add_question(Some(chat), text, thinking, |store, place| {
            store.drafts().set_queue(place, rest)
        })
    }

    /// Adds a question. `taken`: removes the message from its former place.
    fn add_question(
        &mut self,
        chat: Option<ChatId>,
        text: &str,
        thinking: bool,
        taken: impl FnOnce(&Store, DraftPlace) -> Result<(), StoreError>,
    ) -> Result<ChatView, Failure> {
        let text = message_text(text)?;
        if let Some(chat) = chat {
            self.refuse_change(chat)?;
        }
        let now = self.clock.now();
        let at = now.timestamp().as_second();
        let is_new = chat.is_none();
        let was_chosen = is_new && self.stores.chosen_preset(None)?.is_some();
        let store = chat.map_or(&self.stores.disk, |chat| self.stores.of(chat));
        let (view, answer) = store.transaction(|store| {
            let (place, chat, parent) = match chat {
                Some(chat) => {
                    let row = store.chats().get(chat)?;
                    if row.title.is_empty() {
                        // A temporary chat exists before its first message.
                        store.chats().rename(chat, &title::from_message(text))?;
                    }
                    (DraftPlace::Chat(chat), chat, row.leaf)
                }
                None => {
                    let chat = store.chats().create(
                        &title::from_message(text),
                        &now.date().to_string(),
                        at,
                    )?;
                    store.settings().set(CURRENT, &chat.0.into())?;
                    let chosen = chat_preset(&self.stores, &self.settings, None)?;
                    stored::begin_with(store, chat, &chosen)?;
                    store.presets().choose(DraftPlace::NewChat, None)?;
                    (DraftPlace::NewChat, chat, None)
                }
            };
            let (_, answer) = branches::add_question(store, chat, parent, text, thinking, at)?;
            taken(store, place)?;
            Ok::<_, Failure>((self.view(chat, parent)?, answer))
        })?;
        if is_new {
            self.undo.forget_new_chat();
        }
        if was_chosen {
            let (chat, preset) = (None, None);
            self.emit(ChatEvent::PresetChosen { chat, preset });
        }
        Ok(self.queue_answer(view, answer, AnswerStart::Asked))
    }

    pub(crate) fn start_summary(&mut self, of: ChatId) -> Result<ChatView, Failure> {
        self.refuse_if_unsaved(of)?;
        let row = self.stores.chat(of)?;
        let path = self.stores.shown_path(&row)?;
        let is_answer = |row: &MessageRow| {
            row.role == Role::Assistant
                && (row.progress.parts.has_text() || self.answers.has(row.id))
        };
        let leaf = path.last().filter(|_| path.iter().any(is_answer));
        let leaf = leaf
            .map(|row| row.id)
            .ok_or_else(|| Failure::other("There is nothing to sum up in this chat yet."))?;
        let title = summary::title_after(&row.title)?;
        let now = self.clock.now();
        let (view, answer) = self.stores.of(of).transaction(|store| {
            let (chat, answer) = summary::add(store, &row, leaf, &title, &now)?;
            if !chat.is_temporary() {
                store.settings().set(CURRENT, &chat.0.into())?;
            }
            Ok::<_, Failure>((self.view(chat, None)?, answer))
        })?;
        let chat = view.chat.id;
        let revert = Revert::new(move |actor| actor.take_derived(chat, of));
        self.record(format!("started “{title}”"), chat, revert);
        Ok(self.queue_answer(view, answer, AnswerStart::New))
    }

    pub(crate) fn rename(&mut self, chat: ChatId, title: &str) -> Result<ChatSummary, Failure> {
        let (title, before) = (title::from_user(title)?, self.stores.chat(chat)?.title);
        let revert = self.set_title(chat, &title)?;
        self.record(format!("renamed “{before}”"), chat, revert);
        Ok(self.summary(self.stores.chat(chat)?))
    }

    fn set_title(&mut self, chat: ChatId, title: &str) -> Result<Revert, Failure> {
        let before = self.stores.chat(chat)?.title;
        self.stores.of(chat).chats().rename(chat, title)?;
        self.emit_changed(chat)?;
        Ok(Revert::new(move |actor| actor.set_title(chat, &before)))
    }

    pub(super) fn emit_changed(&self, chat: ChatId) -> Result<ChatSummary, Failure> {
        let summary = self.summary(self.stores.chat(chat)?);
        self.emit(ChatEvent::ChatChanged {
            chat: summary.clone(),
        });
        Ok(summary)
    }

    /// Returns an error while the chat has an answer in progress: the next write builds on its rows, so they must be
    /// final.
    pub(super) fn refuse_change(&mut self, chat: ChatId) -> Result<(), Failure> {
        match self.answers.of_chat(chat) {
            Some(_) => Err(Failure::busy()),
            None => {
                self.copies.refuse(chat)?;
                self.refuse_if_unsaved(chat)
            }
        }
    }
}

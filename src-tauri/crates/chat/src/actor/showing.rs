//! Conversion of rows for display.

use std::collections::HashMap;
use std::time::Instant;

use store::{ChatId, ChatRow, DraftPlace, MessageId, MessageRow, MessageState};

use crate::actor::state::{CURRENT, ChatActor};
use crate::bin::BIN;
use crate::failure::{Failure, FailureCode};
use crate::view::{AnswerStats, ChatSnapshot, ChatSummary, ChatView, Message, Omitted, ReadFrom};

/// Number of messages below which siblings are queried one by one; from it on, those of the whole chat at once.
const FEW: usize = 50;

/// Siblings by parent.
type Siblings = HashMap<Option<MessageId>, Vec<MessageId>>;

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
            folders: self.folders()?,
            settings: self.settings.clone(),
            model: self.model.view(),
            new_chat_draft: self.stores.disk.drafts().get(DraftPlace::NewChat)?,
            presets: self.presets()?,
            new_chat_preset: self.chosen_preset(None)?,
        })
    }

    pub(super) fn summary(&self, row: ChatRow) -> ChatSummary {
        ChatSummary {
            writing: self.answers.of_chat(row.id).is_some(),
            id: row.id,
            title: row.title,
            created_at: row.created_at,
            updated_at: row.updated_at,
            continues: row.continues,
            folder: row.folder,
            pinned: row.pinned_at.is_some(),
            archived: row.archived_at.is_some(),
            temporary: row.id.is_temporary(),
            purge_at: row.deleted_at.map(|at| at + BIN),
        }
    }

    /// Returns the shown branch of a chat, after the message `after`.
    pub(super) fn view(&self, chat: ChatId, after: Option<MessageId>) -> Result<ChatView, Failure> {
        let store = self.stores.of(chat);
        // A chat in the bin can be read.
        let row = store.chats().get_with_deleted(chat)?;
        let leaf = self.unsaved.leaf(chat).or(row.leaf);
        let path = match leaf.filter(|_| leaf != after) {
            Some(leaf) => store.messages().path_after(after, leaf)?,
            None => Vec::new(),
        };
        let after = path.first().map_or(after, |row| row.parent);
        let messages = if path.len() < FEW {
            let shown = path.into_iter().map(|row| self.one_message(row));
            shown.collect::<Result<_, Failure>>()?
        } else {
            let siblings = self.siblings(chat)?;
            let of = |row: &MessageRow| siblings.get(&row.parent).cloned().unwrap_or_default();
            let shown = path.into_iter().map(|row| {
                let siblings = of(&row);
                self.message(row, siblings)
            });
            shown.collect()
        };
        Ok(ChatView {
            chat: self.summary(row),
            after,
            messages,
            draft: store.drafts().get(DraftPlace::Chat(chat))?,
            preset: self.chosen_preset(Some(chat))?,
        })
    }

    /// Returns one message for display.
    pub(super) fn one_message(&self, row: MessageRow) -> Result<Message, Failure> {
        let messages = self.stores.messages_with(row.id);
        let siblings = messages.children(row.chat, row.parent)?;
        Ok(self.message(row, siblings))
    }

    fn siblings(&self, chat: ChatId) -> Result<Siblings, Failure> {
        let mut siblings = Siblings::new();
        for (message, parent) in self.stores.of(chat).messages().tree(chat)? {
            siblings.entry(parent).or_default().push(message);
        }
        Ok(siblings)
    }

    fn message(&self, mut row: MessageRow, siblings: Vec<MessageId>) -> Message {
        let mut seq = 0;
        if let Some(buffer) = self.answers.buffer(row.id) {
            row.progress = buffer.flushed(Instant::now());
            seq = buffer.seq;
        } else if !self.unsaved.lay_over(&mut row)
            && row.state == MessageState::Writing
            && !self.answers.has(row.id)
        {
            // Nobody writes it, whatever its row says.
            row.state = MessageState::Interrupted;
        }
        let error = row
            .error
            .map(|error| Failure::new(FailureCode::from_name(&error.code), error.message));
        let omitted = Omitted {
            messages: row.omitted.messages,
            thinking: row.omitted.thinking,
        };
        let omits = omitted != Omitted::default();
        let read_from = ReadFrom {
            message: row.omitted.kept_from,
            thinking: row.omitted.thinking_from,
            again: row.read_again,
        };
        Message {
            id: row.id,
            parent: row.parent,
            role: row.role,
            text: row.progress.text,
            thinking: row.progress.thinking,
            thinking_ms: row.progress.thinking_ms,
            thinks: row.thinks,
            length: row.length,
            guide: row.progress.guide,
            state: row.state,
            stats: row.stats.and_then(AnswerStats::from_stored),
            error,
            omitted: omits.then_some(omitted),
            read_from: omits.then_some(read_from),
            created_at: row.created_at,
            siblings,
            seq,
        }
    }
}

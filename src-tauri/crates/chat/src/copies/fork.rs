//! Forks: a branch becomes a chat of its own.
//!
//! A long branch is copied in parts, because the search indices take their time for each message, and others wait
//! meanwhile. Until the copy is complete its chat is hidden: after a crash the rest is purged.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{ChatId, DraftPlace, MessageId, OmittedRow, StoreError};

use crate::failure::Failure;
use crate::stores::Stores;
use crate::title;

/// Time limit of a part of a copy, during which others wait.
pub(super) const PART: Duration = Duration::from_millis(30);

/// A fork in progress.
pub(crate) struct Fork {
    pub source: ChatId,
    /// Title of the source at the start: the source may be deleted meanwhile.
    pub title: String,
    pub chat: ChatId,
    /// The branch, root first.
    branch: Vec<(MessageId, OmittedRow)>,
    /// Copies made so far.
    copies: HashMap<MessageId, MessageId>,
    last: Option<MessageId>,
    /// Token that blocks purges.
    _unfinished: Arc<()>,
}

impl Fork {
    pub(super) fn begin(
        stores: &Stores,
        message: MessageId,
        at: i64,
        unfinished: Arc<()>,
    ) -> Result<Fork, Failure> {
        let path = stores.path(message)?;
        let source = path.last().ok_or(StoreError::NotFound("message"))?.chat;
        let row = stores.chat(source)?;
        let chosen = stores.chosen_preset(Some(source))?;
        let chat = stores.of(source).transaction(|store| {
            let chats = store.chats();
            let chat = chats.create(&title::of_copy(&row.title), &row.today, at)?;
            if let Some(of) = row.continues {
                chats.set_continues(chat, of)?;
            }
            let place = DraftPlace::Chat(chat);
            store.presets().choose(place, chosen.as_ref())?;
            chats.hide(chat)?;
            Ok::<_, StoreError>(chat)
        })?;
        Ok(Fork {
            source,
            title: row.title,
            chat,
            branch: path.into_iter().map(|row| (row.id, row.omitted)).collect(),
            copies: HashMap::new(),
            last: None,
            _unfinished: unfinished,
        })
    }

    pub fn is_whole(&self) -> bool {
        self.copies.len() == self.branch.len()
    }

    /// Copies the next part.
    pub fn go_on(mut self, stores: &Stores) -> Result<Fork, StoreError> {
        let end = Instant::now() + PART;
        stores.of(self.source).transaction(|store| {
            while !self.is_whole() && Instant::now() < end {
                let (message, omitted) = self.branch[self.copies.len()];
                let copy = store.messages().copy(message, self.chat, self.last)?;
                let copied =
                    |id: Option<MessageId>| id.and_then(|id| self.copies.get(&id).copied());
                if omitted != OmittedRow::default() {
                    let omitted = OmittedRow {
                        kept_from: copied(omitted.kept_from),
                        thinking_from: copied(omitted.thinking_from),
                        ..omitted
                    };
                    store.messages().omit(copy, &omitted)?;
                }
                self.copies.insert(message, copy);
                self.last = Some(copy);
            }
            Ok::<_, StoreError>(())
        })?;
        Ok(self)
    }

    /// Shows the chat, which is whole.
    pub fn publish(&self, stores: &Stores) -> Result<(), StoreError> {
        stores.of(self.chat).transaction(|store| {
            if let Some(last) = self.last {
                store.messages().show(last)?;
            }
            store.chats().restore(self.chat)
        })
    }
}

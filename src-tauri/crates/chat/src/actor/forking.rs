//! Forks: a branch becomes a chat of its own.
//!
//! A long branch is copied in parts, because the search indices take their time for each message, and others wait
//! meanwhile. Until the copy is complete its chat is hidden: after a crash the rest is purged.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{ChatId, DraftPlace, MessageId, OmittedRow};

use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::failure::Failure;
use crate::title;
use crate::view::ChatView;

/// Time limit of a part, during which others wait.
const PART: Duration = Duration::from_millis(30);

/// A fork in progress.
pub(crate) struct Fork {
    source: ChatId,
    /// Title of the source at the start: the source may be deleted meanwhile.
    title: String,
    chat: ChatId,
    /// The branch, root first.
    branch: Vec<(MessageId, OmittedRow)>,
    /// Copies made so far.
    copies: HashMap<MessageId, MessageId>,
    last: Option<MessageId>,
    /// Token that blocks purges.
    _unfinished: Arc<()>,
}

impl Fork {
    pub fn is_whole(&self) -> bool {
        self.copies.len() == self.branch.len()
    }
}

impl ChatActor {
    pub(crate) fn begin_fork(&mut self, message: MessageId) -> Result<Fork, Failure> {
        let source = self.stores.message(message)?.chat;
        self.refuse_change(source)?;
        let row = self.stores.chat(source)?;
        let at = self.now();
        let path = self.stores.path(message)?;
        let chosen = self.stores.chosen_preset(Some(source))?;
        let chat = self.stores.of(source).transaction(|store| {
            let chats = store.chats();
            let chat = chats.create(&title::of_copy(&row.title), &row.today, at)?;
            if let Some(of) = row.continues {
                chats.set_continues(chat, of)?;
            }
            let place = DraftPlace::Chat(chat);
            store.presets().choose(place, chosen.as_ref())?;
            chats.hide(chat)?;
            Ok::<_, Failure>(chat)
        })?;
        Ok(Fork {
            source,
            title: row.title,
            chat,
            branch: path.into_iter().map(|row| (row.id, row.omitted)).collect(),
            copies: HashMap::new(),
            last: None,
            _unfinished: Arc::clone(&self.unfinished),
        })
    }

    /// Copies the next part.
    pub(crate) fn go_on_with_fork(&mut self, mut fork: Fork) -> Result<Fork, Failure> {
        let end = Instant::now() + PART;
        self.stores.of(fork.source).transaction(|store| {
            while !fork.is_whole() && Instant::now() < end {
                let (message, omitted) = fork.branch[fork.copies.len()];
                let copy = store.messages().copy(message, fork.chat, fork.last)?;
                let copied =
                    |id: Option<MessageId>| id.and_then(|id| fork.copies.get(&id).copied());
                if omitted != OmittedRow::default() {
                    let omitted = OmittedRow {
                        kept_from: copied(omitted.kept_from),
                        thinking_from: copied(omitted.thinking_from),
                        ..omitted
                    };
                    store.messages().omit(copy, &omitted)?;
                }
                fork.copies.insert(message, copy);
                fork.last = Some(copy);
            }
            Ok::<_, Failure>(())
        })?;
        Ok(fork)
    }

    pub(crate) fn end_fork(&mut self, fork: &Fork) -> Result<ChatView, Failure> {
        let chat = fork.chat;
        self.stores.of(chat).transaction(|store| {
            if let Some(last) = fork.last {
                store.messages().show(last)?;
            }
            Ok::<_, Failure>(store.chats().restore(chat)?)
        })?;
        self.emit_changed(chat)?;
        let (source, title) = (fork.source, &fork.title);
        let revert = Revert::new(move |actor| actor.take_derived(chat, source));
        self.record(format!("made a new chat of “{title}”"), chat, revert);
        self.view(chat, None)
    }
}

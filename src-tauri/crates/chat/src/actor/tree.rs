//! The tree of messages: other answers, other versions, and deletion.

use inference::Role;
use store::{ChatId, LengthWish, MessageId, MessageRow, MessageState};

use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::answers::AnswerStart;
use crate::branches::{self, Added, message_text};
use crate::failure::Failure;
use crate::view::ChatView;

impl ChatActor {
    pub(crate) fn regenerate(
        &mut self,
        message: MessageId,
        thinking: bool,
        length: Option<LengthWish>,
    ) -> Result<ChatView, Failure> {
        let row = self.stores.message(message)?;
        self.refuse_change(row.chat)?;
        let asked = match row.role {
            Role::User | Role::System | Role::Tool => row.id,
            Role::Assistant => row
                .parent
                .ok_or_else(|| Failure::other("There is no message to answer."))?,
        };
        let (chat, at, before) = (row.chat, self.now(), self.stores.chat(row.chat)?.leaf);
        let (view, again) = self.stores.of(chat).transaction(|store| {
            let again = branches::add_answer(store, chat, asked, thinking, at)?;
            if let Some(length) = length {
                store.messages().set_length(again, length)?;
            }
            Ok::<_, Failure>((self.view(chat, Some(asked))?, again))
        })?;
        let added = Added {
            chat,
            first: again,
            last: again,
        };
        // Its question may have been counted with another length.
        self.context.forget();
        self.record_added(
            "regenerated an answer".to_owned(),
            added,
            before,
            Some(again),
        );
        Ok(self.queue_answer(view, again, AnswerStart::New))
    }

    pub(crate) fn continue_answer(&mut self, message: MessageId) -> Result<ChatView, Failure> {
        let chat = self.stores.message(message)?.chat;
        self.refuse_change(chat)?;
        let row = self.stores.message(message)?;
        if row.role != Role::Assistant {
            return Err(Failure::other("Only an answer can go on."));
        }
        let start = match row.state {
            MessageState::Done => AnswerStart::GoesOn,
            _ => AnswerStart::Resumed,
        };
        let view = self.stores.of(chat).transaction(|store| {
            store.messages().reopen(message)?;
            store.messages().show(message)?;
            self.view(chat, row.parent)
        })?;
        let revert = Revert::new(move |actor| actor.put_back(&row));
        self.record_in_branch("continued an answer", chat, Some(message), revert);
        Ok(self.queue_answer(view, message, start))
    }

    /// Restores the former content of an answer.
    fn put_back(&mut self, row: &MessageRow) -> Result<Revert, Failure> {
        self.refuse_change(row.chat)?;
        let now = self.stores.message(row.id)?;
        self.stores
            .of(row.chat)
            .transaction(|store| store.messages().put_back(row))?;
        self.context.forget();
        Ok(Revert::new(move |actor| actor.put_back(&now)))
    }

    pub(crate) fn edit_message(
        &mut self,
        message: MessageId,
        text: &str,
        answered: Option<bool>,
    ) -> Result<ChatView, Failure> {
        let text = message_text(text)?;
        let row = self.stores.message(message)?;
        self.refuse_change(row.chat)?;
        if answered.is_some() && row.role != Role::User {
            return Err(Failure::other("Only your own messages can be answered."));
        }
        let (chat, at, before) = (row.chat, self.now(), self.stores.chat(row.chat)?.leaf);
        let label = format!("edited {}", branches::described(&row));
        let (view, added, queued) = self.stores.of(chat).transaction(|store| {
            let (added, queued) = branches::add_version(store, &row, text, answered, at)?;
            Ok::<_, Failure>((self.view(chat, row.parent)?, added, queued))
        })?;
        self.record_added(label, added, before, queued);
        Ok(match queued {
            Some(answer) => self.queue_answer(view, answer, AnswerStart::Asked),
            None => view,
        })
    }

    pub(crate) fn show_sibling(&mut self, message: MessageId) -> Result<ChatView, Failure> {
        let row = self.stores.message(message)?;
        self.copies.refuse(row.chat)?;
        match self.stores.messages_with(message).show(message) {
            Ok(()) => self.answers.unsaved.forget_leaf(row.chat),
            Err(error) => {
                // It can be read all the same.
                tracing::warn!(%error, "which branch is shown was not saved");
                let leaf = self.stores.messages_with(message).leaf_below(message)?;
                self.answers.unsaved.hold_leaf(row.chat, leaf);
            }
        }
        self.view(row.chat, row.parent)
    }

    pub(crate) fn delete_message(&mut self, message: MessageId) -> Result<ChatView, Failure> {
        let row = self.stores.message(message)?;
        let revert = self.set_message_deleted(row.chat, message, true, None)?;
        let what = branches::described(&row);
        self.record_in_branch(format!("deleted {what}"), row.chat, None, revert);
        self.undo.set_removed(what);
        self.view(row.chat, row.parent)
    }

    /// Restores a deleted message with its descendants, and shows it. Returns the label for undo.
    pub(crate) fn restore_message(&mut self, message: MessageId) -> Result<String, Failure> {
        let chat = self
            .stores
            .messages_with(message)
            .chat_of_deleted(message)?;
        let revert = self.set_message_deleted(chat, message, false, Some(message))?;
        let row = self.stores.message(message)?;
        let label = format!("restored {}", branches::described(&row));
        self.record_in_branch(label.clone(), chat, None, revert);
        Ok(label)
    }

    fn set_message_deleted(
        &mut self,
        chat: ChatId,
        message: MessageId,
        deleted: bool,
        leaf: Option<MessageId>,
    ) -> Result<Revert, Failure> {
        let before = self.hide(chat, message, deleted, leaf)?;
        Ok(Revert::new(move |actor| {
            actor.set_message_deleted(chat, message, !deleted, before)
        }))
    }

    /// Hides a message with its descendants, or restores it; then shows the branch that ends with `leaf`. Returns the
    /// previous end of the branch.
    fn hide(
        &mut self,
        chat: ChatId,
        message: MessageId,
        hidden: bool,
        leaf: Option<MessageId>,
    ) -> Result<Option<MessageId>, Failure> {
        self.refuse_change(chat)?;
        let (at, before) = (self.deletion_date(), self.stores.chat(chat)?.leaf);
        let at = hidden.then_some(at);
        let store = self.stores.of(chat);
        store.transaction(|store| branches::hide(store, message, at, leaf))?;
        self.context.forget();
        Ok(before)
    }

    /// Records that messages were added where the branch ended with `before`. `answer`: the one among them that is
    /// being written.
    fn record_added(
        &mut self,
        label: String,
        added: Added,
        before: Option<MessageId>,
        answer: Option<MessageId>,
    ) {
        let revert = Revert::new(move |actor| actor.take_away(added, before));
        self.record_in_branch(label, added.chat, answer, revert);
    }

    /// Hides added messages. If the chat was continued after them, they stay, and the previous branch is shown.
    fn take_away(&mut self, added: Added, leaf: Option<MessageId>) -> Result<Revert, Failure> {
        let Added { chat, first, .. } = added;
        let goes_on = branches::goes_on(&self.stores.messages_with(first), added)?;
        if let Some(leaf) = leaf.filter(|_| goes_on) {
            return self.show_branch(chat, leaf);
        }
        let before = self.hide(chat, first, true, leaf)?;
        Ok(Revert::new(move |actor| actor.bring_back(added, before)))
    }

    fn bring_back(&mut self, added: Added, leaf: Option<MessageId>) -> Result<Revert, Failure> {
        let before = self.hide(added.chat, added.first, false, leaf)?;
        Ok(Revert::new(move |actor| actor.take_away(added, before)))
    }

    fn show_branch(&mut self, chat: ChatId, leaf: MessageId) -> Result<Revert, Failure> {
        self.refuse_change(chat)?;
        let before = self.stores.chat(chat)?.leaf.unwrap_or(leaf);
        self.stores.messages_with(leaf).show(leaf)?;
        Ok(Revert::new(move |actor| actor.show_branch(chat, before)))
    }

    /// Lets the next answer read the parts that this one left out.
    pub(crate) fn read_again(&mut self, answer: MessageId) -> Result<ChatView, Failure> {
        let row = self.stores.message(answer)?;
        self.refuse_change(row.chat)?;
        let revert = self.set_read_again(answer, true)?;
        let title = self.stores.of(row.chat).chats().get(row.chat)?.title;
        self.record(format!("read all of “{title}” again"), row.chat, revert);
        self.view(row.chat, row.parent)
    }

    fn set_read_again(&mut self, answer: MessageId, again: bool) -> Result<Revert, Failure> {
        self.stores
            .messages_with(answer)
            .set_read_again(answer, again)?;
        self.context.forget();
        Ok(Revert::new(move |actor| {
            actor.set_read_again(answer, !again)
        }))
    }
}

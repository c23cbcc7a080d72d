//! Undo and redo.
//!
//! A verb that changes something does so by a method that returns a [`Revert`], and records it with [`ChatActor::record`].

use std::time::Duration;

use store::{ChatId, MessageId};

use crate::actor::copying_chat::CopyingChat;
use crate::actor::daily::Daily;
use crate::actor::state::ChatActor;
use crate::actor::undo_stack::{self, Change, Direction};
use crate::failure::{Failure, FailureCode};
use crate::view::Undone;

/// Takes a change of the chats or the settings back.
pub(super) type Revert = undo_stack::Reversal<ChatActor>;

/// What came of undoing.
pub(crate) enum TakenBack {
    /// The change; `None`: there was none.
    Done(Option<Undone>),
    /// An answer of it was being written, and is stopped: once it has ended, the change can be taken back.
    Later,
    /// A chat is to be copied first.
    Copies(CopyingChat),
}

impl ChatActor {
    /// Keeps how a change is taken back. What was undone before cannot be redone any more.
    pub(super) fn record(
        &mut self,
        label: impl Into<String>,
        chat: impl Into<Option<ChatId>>,
        revert: Revert,
    ) {
        self.undo
            .record(Change::new(label.into(), chat.into(), revert));
    }

    /// As [`record`](Self::record), of a change of messages. `answer`: the one that it has the model write, which taking it
    /// back stops. While another is written, it cannot be taken back.
    pub(super) fn record_in_branch(
        &mut self,
        label: impl Into<String>,
        chat: ChatId,
        answer: Option<MessageId>,
        revert: Revert,
    ) {
        self.undo.record(Change {
            in_branch: true,
            answer,
            ..Change::new(label.into(), Some(chat), revert)
        });
    }

    /// As [`record`](Self::record), of what is changed in small steps, as by typing: what goes on with the last step soon
    /// after it is taken back with it. Without a chat it is a change of the next new one.
    pub(super) fn record_choice(
        &mut self,
        step: String,
        label: String,
        chat: Option<ChatId>,
        revert: Revert,
    ) {
        let change = Change {
            of_new_chat: chat.is_none(),
            ..Change::new(label, chat, revert)
        };
        self.undo.record_step(step, change);
    }

    /// The same, of what is no chat's.
    pub(super) fn record_step(&mut self, step: String, label: String, revert: Revert) {
        self.undo
            .record_step(step, Change::new(label, None, revert));
    }

    /// Takes the last change back, or makes the one again that was taken back last. `copying`: what was copied first.
    pub(crate) fn take_back_with(
        &mut self,
        direction: Direction,
        copying: Option<CopyingChat>,
    ) -> Result<TakenBack, Failure> {
        self.copied = copying.map(CopyingChat::whole);
        let taken = self.take_back(direction);
        if self.copied.take().is_some() {
            // Another change was the next one meanwhile.
            self.purging = Daily::after(Duration::ZERO);
        }
        taken
    }

    /// Begins the copy that the next change needs and that is not made; `None`: it needs none.
    fn begin_copy_before(&mut self, direction: Direction) -> Result<Option<CopyingChat>, Failure> {
        let next = self.undo.next(direction);
        let copied = next.map_or(Ok(None), |next| next.revert.copied_chat(self))?;
        let is_made = |chat: &ChatId| self.copied.as_ref().is_some_and(|(of, _)| of == chat);
        let missing = copied.filter(|chat| !is_made(chat));
        missing.map(|chat| self.begin_copying(chat)).transpose()
    }

    /// A change that can never be taken back, because what it was made to is gone, is dropped: it would stand in the way
    /// of those before it.
    fn take_back(&mut self, direction: Direction) -> Result<TakenBack, Failure> {
        if let Some(next) = self.undo.next(direction).filter(|next| next.in_branch)
            && let Some(chat) = next.chat
        {
            self.refuse_if_being_copied(chat)?;
            if let Some(writing) = self.answers.of_chat(chat) {
                if next.answer != Some(writing) {
                    return Err(Failure::busy());
                }
                self.stop(chat)?;
                return Ok(TakenBack::Later);
            }
        }
        let copies = self.begin_copy_before(direction);
        if let Ok(Some(copying)) = copies {
            return Ok(TakenBack::Copies(copying));
        }
        let Some(change) = self.undo.take(direction) else {
            return Ok(TakenBack::Done(None));
        };
        let label = change.label.clone();
        let restored = change
            .removed
            .clone()
            .filter(|_| direction == Direction::Undo);
        let before = self.settings.clone();
        let revert = match copies.and_then(|_| change.revert.run(self)) {
            Ok(revert) => revert,
            Err(failure) => {
                let what = match direction {
                    Direction::Undo => "undone",
                    Direction::Redo => "done again",
                };
                if failure.code != FailureCode::Other {
                    self.undo.put(direction, change);
                }
                return Err(Failure {
                    message: format!("This could not be {what}: {label}. {}", failure.message),
                    ..failure
                });
            }
        };
        let chat = revert.shows.or(change.chat);
        let change = Change {
            // The messages are in another chat from now on.
            chat: if change.in_branch { chat } else { change.chat },
            revert,
            ..change
        };
        self.undo.put(direction.back(), change);
        let settings = (self.settings != before).then(|| Box::new(self.settings.clone()));
        Ok(TakenBack::Done(Some(Undone {
            label,
            restored,
            chat,
            settings,
        })))
    }
}

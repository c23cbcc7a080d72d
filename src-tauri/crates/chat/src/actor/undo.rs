//! Undo and redo.
//!
//! A verb that changes something does so by a method that returns a [`Revert`], and records it with
//! [`ChatActor::record`].

use store::{ChatId, MessageId};

use crate::actor::state::ChatActor;
use crate::copies::CopyingChat;
use crate::failure::{Failure, FailureCode};
use crate::undo_stack::{self, Change, Direction};
use crate::view::Undone;

/// Reverts a change of the chats or the settings.
pub(super) type Revert = undo_stack::Reversal<ChatActor>;

/// Result of an undo or a redo.
pub(crate) enum TakenBack {
    /// The change; `None` if there was none.
    Done(Option<Undone>),
    /// An answer of it is being stopped: the change can be undone once that has ended.
    Later,
    /// A chat must be copied first.
    Copies(CopyingChat),
}

impl ChatActor {
    /// Records how to revert a change. Changes that were undone can no longer be redone.
    pub(super) fn record(
        &mut self,
        label: impl Into<String>,
        chat: impl Into<Option<ChatId>>,
        revert: Revert,
    ) {
        self.undo
            .record(Change::new(label.into(), chat.into(), revert));
    }

    /// Like [`record`](Self::record), for a change of messages. `answer`: the one that the change starts, which undo
    /// stops. While another is written, the change cannot be undone.
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

    /// Undoes or redoes a change. `copying`: the copy that it needed.
    pub(crate) fn take_back_with(
        &mut self,
        direction: Direction,
        copying: Option<CopyingChat>,
    ) -> Result<TakenBack, Failure> {
        self.copies.set_whole(copying);
        let taken = self.take_back(direction);
        if self.copies.set_whole(None) {
            // Another change has become the next one.
            self.upkeep.purge_soon();
        }
        taken
    }

    /// Begins the copy that the next change still needs; `None` if it needs none.
    fn begin_copy_before(&mut self, direction: Direction) -> Result<Option<CopyingChat>, Failure> {
        let next = self.undo.next(direction);
        let copied = next.map_or(Ok(None), |next| next.revert.copied_chat(self))?;
        let missing = copied.filter(|chat| !self.copies.is_whole(*chat));
        missing.map(|chat| self.begin_copying(chat)).transpose()
    }

    /// Reverts the next change. One that can never be reverted, because its target is gone, is dropped: it would block
    /// those before it.
    fn take_back(&mut self, direction: Direction) -> Result<TakenBack, Failure> {
        if let Some(next) = self.undo.next(direction).filter(|next| next.in_branch)
            && let Some(chat) = next.chat
        {
            self.copies.refuse(chat)?;
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
            // The messages are now in another chat.
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

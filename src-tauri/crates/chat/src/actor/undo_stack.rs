//! The changes that can be undone and redone, whatever it is that they change.
//!
//! Reverting returns the [`Reversal`] of the revert itself, so undo and redo are one mechanism. The stacks are in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{ChatId, MessageId};

use crate::failure::Failure;

/// Changes that can be undone.
const MOST: usize = 100;
/// What follows a small step within this time is undone with it.
const STEPS_WITHIN: Duration = Duration::from_secs(3);

/// Takes a change to an `A` back. What fails changes nothing, and can be tried again.
pub(crate) struct Reversal<A> {
    act: Arc<Reverting<A>>,
    /// The chat to be shown where this was returned; `None`: the one that the change concerns.
    pub(super) shows: Option<ChatId>,
    /// The chat that has to be copied into the other store before.
    copies: Option<Arc<CopiedBefore<A>>>,
}

type CopiedBefore<A> = dyn Fn(&A) -> Result<Option<ChatId>, Failure> + Send + Sync;
type Reverting<A> = dyn Fn(&mut A) -> Result<Reversal<A>, Failure> + Send + Sync;

impl<A: 'static> Reversal<A> {
    pub(super) fn new(
        act: impl Fn(&mut A) -> Result<Reversal<A>, Failure> + Send + Sync + 'static,
    ) -> Reversal<A> {
        Reversal {
            act: Arc::new(act),
            shows: None,
            copies: None,
        }
    }

    /// The same, where a chat may have to be copied into the other store before.
    pub(super) fn copying(
        self,
        chat: impl Fn(&A) -> Result<Option<ChatId>, Failure> + Send + Sync + 'static,
    ) -> Reversal<A> {
        Reversal {
            copies: Some(Arc::new(chat)),
            ..self
        }
    }

    /// The chat that has to be copied before this runs; `None`: none.
    pub(super) fn copied_chat(&self, of: &A) -> Result<Option<ChatId>, Failure> {
        self.copies.as_ref().map_or(Ok(None), |copies| copies(of))
    }

    /// The same, where another chat than that of the change is to be shown now.
    pub(super) fn showing(self, chat: ChatId) -> Reversal<A> {
        Reversal {
            shows: Some(chat),
            ..self
        }
    }

    /// Takes two changes back, the second one first; both or none.
    pub(super) fn both(first: Reversal<A>, second: Reversal<A>) -> Reversal<A> {
        Reversal::new(move |to| {
            let again = second.run(to)?;
            match first.run(to) {
                Ok(first_again) => Ok(Reversal::both(again, first_again)),
                Err(failure) => {
                    again.run(to)?;
                    Err(failure)
                }
            }
        })
    }

    /// Takes the change back, and returns what makes it again.
    pub(super) fn run(&self, to: &mut A) -> Result<Reversal<A>, Failure> {
        (self.act)(to)
    }
}

pub(crate) struct Change<A> {
    /// What was done, as it goes on behind "Undone:", such as `deleted “Title”`.
    pub(super) label: String,
    /// What it removed, such as `“Title”`: undo brings that back.
    pub(super) removed: Option<String>,
    /// The chat that it concerns.
    pub(super) chat: Option<ChatId>,
    /// Whether it concerns the chat that the next first message begins.
    pub(super) of_new_chat: bool,
    /// Whether it is one of the chat's messages, which wait for their answer to end.
    pub(super) in_branch: bool,
    /// The answer that it has the model write.
    pub(super) answer: Option<MessageId>,
    pub(super) revert: Reversal<A>,
    /// What is changed in small steps, and when it was last.
    pub(super) step: Option<(String, Instant)>,
}

impl<A> Change<A> {
    pub(super) fn new(label: String, chat: Option<ChatId>, revert: Reversal<A>) -> Change<A> {
        Change {
            label,
            removed: None,
            chat,
            of_new_chat: false,
            in_branch: false,
            answer: None,
            revert,
            step: None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Undo,
    Redo,
}

impl Direction {
    pub(super) fn back(self) -> Direction {
        match self {
            Direction::Undo => Direction::Redo,
            Direction::Redo => Direction::Undo,
        }
    }
}

/// What was changed and undone in this session, the latest last.
pub(crate) struct UndoStack<A> {
    done: Vec<Change<A>>,
    undone: Vec<Change<A>>,
}

impl<A> Default for UndoStack<A> {
    fn default() -> Self {
        UndoStack {
            done: Vec::new(),
            undone: Vec::new(),
        }
    }
}

impl<A> UndoStack<A> {
    /// Keeps a change that was made just now. What was undone before cannot be redone any more.
    pub(super) fn record(&mut self, change: Change<A>) {
        self.undone.clear();
        self.done.push(change);
        if self.done.len() > MOST {
            self.done.remove(0);
        }
    }

    /// As [`record`](Self::record), of one small step of several: `step` says of what. One that goes on with the last soon
    /// after it is taken back with it.
    pub(super) fn record_step(&mut self, step: String, change: Change<A>) {
        let now = Instant::now();
        let last = self.done.last_mut().filter(|_| self.undone.is_empty());
        if let Some((same, at)) = last.and_then(|last| last.step.as_mut())
            && *same == step
            && now.duration_since(*at) < STEPS_WITHIN
        {
            *at = now;
            return;
        }
        self.record(Change {
            step: Some((step, now)),
            ..change
        });
    }

    /// Says of the change that was recorded last what it removed.
    pub(super) fn set_removed(&mut self, what: String) {
        if let Some(last) = self.done.last_mut() {
            last.removed = Some(what);
        }
    }

    /// The change that goes next in this direction.
    pub(super) fn next(&self, direction: Direction) -> Option<&Change<A>> {
        match direction {
            Direction::Undo => self.done.last(),
            Direction::Redo => self.undone.last(),
        }
    }

    pub(super) fn take(&mut self, direction: Direction) -> Option<Change<A>> {
        self.stack(direction).pop()
    }

    /// Keeps the change that [`take`](Self::take) gave: for the other direction, now that it was taken back, or to be
    /// tried again.
    pub(super) fn put(&mut self, direction: Direction, change: Change<A>) {
        let change = Change {
            step: None,
            ..change
        };
        self.stack(direction).push(change);
    }

    fn stack(&mut self, direction: Direction) -> &mut Vec<Change<A>> {
        match direction {
            Direction::Undo => &mut self.done,
            Direction::Redo => &mut self.undone,
        }
    }

    /// Drops the changes to chats that are gone for good.
    pub(super) fn forget(&mut self, chats: &[ChatId]) {
        self.retain(|change| change.chat.is_none_or(|chat| !chats.contains(&chat)));
    }

    /// Drops the changes to the new chat, which has begun: the next one is another.
    pub(super) fn forget_new_chat(&mut self) {
        self.retain(|change| !change.of_new_chat);
    }

    fn retain(&mut self, stays: impl Fn(&Change<A>) -> bool) {
        self.done.retain(&stays);
        self.undone.retain(&stays);
    }
}

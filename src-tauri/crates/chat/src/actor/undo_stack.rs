//! Stacks of changes for undo and redo, independent of the target.
//!
//! Reverting returns the [`Reversal`] of the revert itself, so undo and redo are one mechanism. The stacks are in
//! memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{ChatId, MessageId};

use crate::failure::Failure;

/// Maximum changes that can be undone.
const MOST: usize = 100;
/// Time within which small steps are merged into one change.
const STEPS_WITHIN: Duration = Duration::from_secs(3);

/// Reverts a change to an `A`. A failure changes nothing, and can be retried.
pub(crate) struct Reversal<A> {
    act: Arc<Reverting<A>>,
    /// Chat to show after the call that returned this; `None`: that of the change.
    pub(super) shows: Option<ChatId>,
    /// Chat that must be copied into the other store first.
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

    /// Returns this with a chat that may have to be copied into the other store first.
    pub(super) fn copying(
        self,
        chat: impl Fn(&A) -> Result<Option<ChatId>, Failure> + Send + Sync + 'static,
    ) -> Reversal<A> {
        Reversal {
            copies: Some(Arc::new(chat)),
            ..self
        }
    }

    /// Returns the chat that must be copied before this runs; `None` if there is none.
    pub(super) fn copied_chat(&self, of: &A) -> Result<Option<ChatId>, Failure> {
        self.copies.as_ref().map_or(Ok(None), |copies| copies(of))
    }

    /// Returns this with another chat to show than that of the change.
    pub(super) fn showing(self, chat: ChatId) -> Reversal<A> {
        Reversal {
            shows: Some(chat),
            ..self
        }
    }

    /// Combines two changes into one that reverts both or none, the second first.
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

    /// Reverts the change, and returns how to make it again.
    pub(super) fn run(&self, to: &mut A) -> Result<Reversal<A>, Failure> {
        (self.act)(to)
    }
}

pub(crate) struct Change<A> {
    /// Label after "Undone:", such as `deleted “Title”`.
    pub(super) label: String,
    /// Removed item, such as `“Title”`, which undo restores.
    pub(super) removed: Option<String>,
    /// The chat that it concerns.
    pub(super) chat: Option<ChatId>,
    /// True if it concerns the chat that the next first message begins.
    pub(super) of_new_chat: bool,
    /// True for a change of the chat's messages, which waits for their answer to end.
    pub(super) in_branch: bool,
    /// Answer that it starts.
    pub(super) answer: Option<MessageId>,
    pub(super) revert: Reversal<A>,
    /// Name of a change in small steps, and the time of the last one.
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

/// Undo and redo stacks of this session, the latest change last.
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
    /// Records a change that was made just now. Changes that were undone can no longer be redone.
    pub(super) fn record(&mut self, change: Change<A>) {
        self.undone.clear();
        self.done.push(change);
        if self.done.len() > MOST {
            self.done.remove(0);
        }
    }

    /// Like [`record`](Self::record), for one small step of several: a step with the same `step` soon after the last is
    /// undone with it.
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

    /// Sets the removed item of the change that was recorded last.
    pub(super) fn set_removed(&mut self, what: String) {
        if let Some(last) = self.done.last_mut() {
            last.removed = Some(what);
        }
    }

    /// Returns the next change in this direction.
    pub(super) fn next(&self, direction: Direction) -> Option<&Change<A>> {
        match direction {
            Direction::Undo => self.done.last(),
            Direction::Redo => self.undone.last(),
        }
    }

    pub(super) fn take(&mut self, direction: Direction) -> Option<Change<A>> {
        self.stack(direction).pop()
    }

    /// Puts back the change that [`take`](Self::take) returned: for the other direction after it was reverted, or for a
    /// retry.
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

    /// Drops the changes to chats that were purged.
    pub(super) fn forget(&mut self, chats: &[ChatId]) {
        self.retain(|change| change.chat.is_none_or(|chat| !chats.contains(&chat)));
    }

    /// Drops the changes to the new chat, which has begun.
    pub(super) fn forget_new_chat(&mut self) {
        self.retain(|change| !change.of_new_chat);
    }

    fn retain(&mut self, stays: impl Fn(&Change<A>) -> bool) {
        self.done.retain(&stays);
        self.undone.retain(&stays);
    }
}

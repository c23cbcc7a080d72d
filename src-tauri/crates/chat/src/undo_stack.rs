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
    pub shows: Option<ChatId>,
    /// Chat that must be copied into the other store first.
    copies: Option<Arc<CopiedBefore<A>>>,
}

type CopiedBefore<A> = dyn Fn(&A) -> Result<Option<ChatId>, Failure> + Send + Sync;
type Reverting<A> = dyn Fn(&mut A) -> Result<Reversal<A>, Failure> + Send + Sync;

impl<A: 'static> Reversal<A> {
    pub fn new(
        act: impl Fn(&mut A) -> Result<Reversal<A>, Failure> + Send + Sync + 'static,
    ) -> Reversal<A> {
        Reversal {
            act: Arc::new(act),
            shows: None,
            copies: None,
        }
    }

    /// Returns this with a chat that may have to be copied into the other store first.
    pub fn copying(
        self,
        chat: impl Fn(&A) -> Result<Option<ChatId>, Failure> + Send + Sync + 'static,
    ) -> Reversal<A> {
        Reversal {
            copies: Some(Arc::new(chat)),
            ..self
        }
    }

    /// Returns the chat that must be copied before this runs; `None` if there is none.
    pub fn copied_chat(&self, of: &A) -> Result<Option<ChatId>, Failure> {
        self.copies.as_ref().map_or(Ok(None), |copies| copies(of))
    }

    /// Returns this with another chat to show than that of the change.
    pub fn showing(self, chat: ChatId) -> Reversal<A> {
        Reversal {
            shows: Some(chat),
            ..self
        }
    }

    /// Combines two changes into one that reverts both or none, the second first.
    pub fn both(first: Reversal<A>, second: Reversal<A>) -> Reversal<A> {
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
    pub fn run(&self, to: &mut A) -> Result<Reversal<A>, Failure> {
        (self.act)(to)
    }
}

pub(crate) struct Change<A> {
    /// Label after "Undone:", such as `deleted “Title”`.
    pub label: String,
    /// Removed item, such as `“Title”`, which undo restores.
    pub removed: Option<String>,
    /// The chat that it concerns.
    pub chat: Option<ChatId>,
    /// True if it concerns the chat that the next first message begins.
    pub of_new_chat: bool,
    /// True for a change of the chat's messages, which waits for their answer to end.
    pub in_branch: bool,
    /// Answer that it starts.
    pub answer: Option<MessageId>,
    pub revert: Reversal<A>,
    /// Name of a change in small steps, and the time of the last one.
    pub step: Option<(String, Instant)>,
}

impl<A> Change<A> {
    pub fn new(label: String, chat: Option<ChatId>, revert: Reversal<A>) -> Change<A> {
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
    pub fn back(self) -> Direction {
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
    pub fn record(&mut self, change: Change<A>) {
        self.undone.clear();
        self.done.push(change);
        if self.done.len() > MOST {
            self.done.remove(0);
        }
    }

    /// Like [`record`](Self::record), for one small step of several, such as typing: a step with the same `step` soon
    /// after the last is undone with it.
    pub fn record_step(&mut self, step: String, change: Change<A>) {
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
    pub fn set_removed(&mut self, what: String) {
        if let Some(last) = self.done.last_mut() {
            last.removed = Some(what);
        }
    }

    /// Returns the next change in this direction.
    pub fn next(&self, direction: Direction) -> Option<&Change<A>> {
        match direction {
            Direction::Undo => self.done.last(),
            Direction::Redo => self.undone.last(),
        }
    }

    pub fn take(&mut self, direction: Direction) -> Option<Change<A>> {
        self.stack(direction).pop()
    }

    /// Puts back the change that [`take`](Self::take) returned: for the other direction after it was reverted, or for a
    /// retry.
    pub fn put(&mut self, direction: Direction, change: Change<A>) {
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
    pub fn forget(&mut self, chats: &[ChatId]) {
        self.retain(|change| change.chat.is_none_or(|chat| !chats.contains(&chat)));
    }

    /// Drops the changes to the new chat, which has begun.
    pub fn forget_new_chat(&mut self) {
        self.retain(|change| !change.of_new_chat);
    }

    fn retain(&mut self, stays: impl Fn(&Change<A>) -> bool) {
        self.done.retain(&stays);
        self.undone.retain(&stays);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends a number to a list, or fails below 0.
    fn push(number: i32) -> Reversal<Vec<i32>> {
        Reversal::new(move |list: &mut Vec<i32>| {
            if number < 0 {
                return Err(Failure::other("below 0"));
            }
            list.push(number);
            Ok(pop())
        })
    }

    fn pop() -> Reversal<Vec<i32>> {
        Reversal::new(|list: &mut Vec<i32>| {
            let number = list.pop().ok_or_else(|| Failure::other("empty"))?;
            Ok(push(number))
        })
    }

    fn change(label: &str, chat: i64) -> Change<Vec<i32>> {
        Change::new(label.to_owned(), Some(ChatId(chat)), pop())
    }

    fn labels(stack: &UndoStack<Vec<i32>>) -> Vec<&str> {
        stack.done.iter().map(|change| &*change.label).collect()
    }

    /// Reverts the next change, as the actor does.
    fn take_back(
        stack: &mut UndoStack<Vec<i32>>,
        direction: Direction,
        list: &mut Vec<i32>,
    ) -> Result<(), Failure> {
        let change = stack.take(direction).expect("a change");
        let revert = change.revert.run(list)?;
        stack.put(direction.back(), Change { revert, ..change });
        Ok(())
    }

    #[test]
    fn a_change_is_undone_and_made_again_until_another_is_made() -> Result<(), Failure> {
        let (mut stack, mut list) = (UndoStack::default(), vec![1, 2]);
        stack.record(change("one", 1));
        stack.record(change("two", 1));
        take_back(&mut stack, Direction::Undo, &mut list)?;
        assert_eq!((labels(&stack), &*list), (vec!["one"], &[1][..]));
        take_back(&mut stack, Direction::Redo, &mut list)?;
        assert_eq!((labels(&stack), &*list), (vec!["one", "two"], &[1, 2][..]));
        take_back(&mut stack, Direction::Undo, &mut list)?;
        stack.record(change("three", 1));
        assert!(stack.next(Direction::Redo).is_none());
        assert_eq!(labels(&stack), ["one", "three"]);
        Ok(())
    }

    #[test]
    fn two_changes_are_reverted_both_or_none() -> Result<(), Failure> {
        let mut list = vec![1, 2];
        assert!(Reversal::both(push(-1), pop()).run(&mut list).is_err());
        assert_eq!(list, [1, 2], "the second is made again");
        let again = Reversal::both(push(3), pop()).run(&mut list)?;
        assert_eq!(list, [1, 3]);
        again.run(&mut list)?;
        assert_eq!(list, [1, 2]);
        Ok(())
    }

    #[test]
    fn small_steps_are_one_change_until_it_is_undone() -> Result<(), Failure> {
        let (mut stack, mut list) = (UndoStack::default(), vec![1]);
        for step in ["zoom", "zoom", "theme", "zoom"] {
            stack.record_step(step.to_owned(), change(step, 1));
        }
        assert_eq!(labels(&stack), ["zoom", "theme", "zoom"]);
        take_back(&mut stack, Direction::Undo, &mut list)?;
        take_back(&mut stack, Direction::Redo, &mut list)?;
        stack.record_step("zoom".to_owned(), change("zoom", 1));
        assert_eq!(labels(&stack).len(), 4);
        Ok(())
    }

    #[test]
    fn changes_of_purged_chats_are_dropped() {
        let mut stack = UndoStack::default();
        for chat in [1, 2] {
            stack.record(change("it", chat));
        }
        stack.record(Change {
            of_new_chat: true,
            ..Change::new("new".to_owned(), None, pop())
        });
        stack.forget(&[ChatId(1)]);
        assert_eq!(labels(&stack), ["it", "new"]);
        stack.forget_new_chat();
        assert_eq!(labels(&stack), ["it"]);
    }
}

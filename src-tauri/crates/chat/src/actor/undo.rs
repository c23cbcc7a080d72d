//! Undo and redo.
//!
//! A verb that changes something does so by a method that returns a [`Revert`], and records it with [`ChatActor::record`].
//! Reverting returns the [`Revert`] of the revert itself, so undo and redo are one mechanism. The stacks are in memory.

use std::time::{Duration, Instant};

use store::{ChatId, MessageId};

use crate::actor::state::ChatActor;
use crate::failure::Failure;
use crate::view::Undone;

/// Changes that can be undone.
const MOST: usize = 100;
/// What follows a small step within this time is undone with it.
const STEPS_WITHIN: Duration = Duration::from_secs(3);

/// Takes a change back.
pub(crate) struct Revert(Box<Reverting>);

type Reverting = dyn FnOnce(&mut ChatActor) -> Result<Revert, Failure> + Send;

impl Revert {
    pub(super) fn new(
        act: impl FnOnce(&mut ChatActor) -> Result<Revert, Failure> + Send + 'static,
    ) -> Revert {
        Revert(Box::new(act))
    }

    /// Takes two changes back, the second one first.
    pub(super) fn both(first: Revert, second: Revert) -> Revert {
        Revert::new(|actor| {
            let again = (second.0)(actor)?;
            Ok(Revert::both(again, (first.0)(actor)?))
        })
    }
}

/// What came of undoing.
pub(crate) enum TakenBack {
    /// The change; `None`: there was none.
    Done(Option<Undone>),
    /// An answer of it was being written, and is stopped: once it has ended, the change can be taken back.
    Later,
}

struct Change {
    /// What was done, as it goes on behind "Undone:", such as `deleted “Title”`.
    label: String,
    /// The chat that it concerns.
    chat: Option<ChatId>,
    /// Whether it is one of the chat's messages, which wait for their answer to end.
    in_branch: bool,
    /// The answer that it has the model write.
    answer: Option<MessageId>,
    revert: Revert,
    /// What is changed in small steps, and when it was last.
    step: Option<(String, Instant)>,
}

/// What was changed and undone in this session, the latest last.
#[derive(Default)]
pub(crate) struct UndoStack {
    done: Vec<Change>,
    undone: Vec<Change>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Undo,
    Redo,
}

impl UndoStack {
    /// Drops the changes to chats that are gone for good.
    pub(super) fn forget(&mut self, chats: &[ChatId]) {
        for stack in [&mut self.done, &mut self.undone] {
            stack.retain(|change| change.chat.is_none_or(|chat| !chats.contains(&chat)));
        }
    }
}

impl ChatActor {
    /// Keeps how a change is taken back. What was undone before cannot be redone any more.
    pub(super) fn record(
        &mut self,
        label: impl Into<String>,
        chat: impl Into<Option<ChatId>>,
        revert: Revert,
    ) {
        self.undo.undone.clear();
        self.undo.done.push(Change {
            label: label.into(),
            chat: chat.into(),
            in_branch: false,
            answer: None,
            revert,
            step: None,
        });
        if self.undo.done.len() > MOST {
            self.undo.done.remove(0);
        }
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
        self.record(label, chat, revert);
        if let Some(last) = self.undo.done.last_mut() {
            (last.in_branch, last.answer) = (true, answer);
        }
    }

    /// As [`record`](Self::record), of what is changed in small steps, as by typing: what goes on with the last step soon
    /// after it is taken back with it.
    pub(super) fn record_step(
        &mut self,
        step: String,
        label: String,
        chat: Option<ChatId>,
        revert: Revert,
    ) {
        let now = Instant::now();
        let last = self
            .undo
            .done
            .last_mut()
            .filter(|_| self.undo.undone.is_empty());
        if let Some((same, at)) = last.and_then(|last| last.step.as_mut())
            && *same == step
            && now.duration_since(*at) < STEPS_WITHIN
        {
            *at = now;
            return;
        }
        self.record(label, chat, revert);
        if let Some(last) = self.undo.done.last_mut() {
            last.step = Some((step, now));
        }
    }

    /// Takes the last change back.
    pub(crate) fn undo(&mut self) -> Result<TakenBack, Failure> {
        self.take_back(Direction::Undo)
    }

    /// Makes the change again that was taken back last.
    pub(crate) fn redo(&mut self) -> Result<TakenBack, Failure> {
        self.take_back(Direction::Redo)
    }

    /// A change that cannot be taken back now, because a chat is busy or the disk is full, is dropped: it would stand in
    /// the way of those before it.
    fn take_back(&mut self, direction: Direction) -> Result<TakenBack, Failure> {
        let from = match direction {
            Direction::Undo => &mut self.undo.done,
            Direction::Redo => &mut self.undo.undone,
        };
        if let Some(last) = from.last().filter(|last| last.in_branch)
            && let Some(chat) = last.chat
            && let Some(writing) = self.answers.of_chat(chat)
        {
            if last.answer != Some(writing) {
                return Err(Failure::busy());
            }
            self.stop(chat)?;
            return Ok(TakenBack::Later);
        }
        let Some(Change {
            label,
            chat,
            in_branch,
            answer,
            revert,
            ..
        }) = from.pop()
        else {
            return Ok(TakenBack::Done(None));
        };
        let before = self.settings.clone();
        let revert = (revert.0)(self).map_err(|failure| {
            let what = match direction {
                Direction::Undo => "undone",
                Direction::Redo => "done again",
            };
            Failure {
                message: format!("This could not be {what}: {label}. {}", failure.message),
                ..failure
            }
        })?;
        let to = match direction {
            Direction::Undo => &mut self.undo.undone,
            Direction::Redo => &mut self.undo.done,
        };
        to.push(Change {
            label: label.clone(),
            chat,
            in_branch,
            answer,
            revert,
            step: None,
        });
        let settings = (self.settings != before).then(|| Box::new(self.settings.clone()));
        Ok(TakenBack::Done(Some(Undone {
            label,
            chat,
            settings,
        })))
    }
}

//! The tokens of a branch, message by message.

use std::cell::OnceCell;
use std::collections::HashMap;

use inference::{MessageFrame, PromptFrame, Role, Turn};
use store::MessageId;

use crate::counting::request::{CountRequest, CountedPlace};
use crate::failure::Failure;
use crate::fit::cut::{Cut, CutTurn};
use crate::view::Omitted;

/// The messages of a branch that were counted.
#[derive(Default)]
pub(super) struct Branch {
    of: Option<(CountedPlace, PromptFrame)>,
    /// Instructions and date of the frame.
    header: (Option<String>, String),
    messages: Vec<BranchMessage>,
    /// Indices of the messages that are in the prompt.
    shown: Vec<usize>,
}

struct BranchMessage {
    id: MessageId,
    /// `None` if it is not in the prompt.
    turn: Option<CountedTurn>,
}

struct CountedTurn {
    role: Role,
    /// Bytes of text, thinking and ids: an answer grows.
    size: [usize; 3],
    ids: Vec<u32>,
    /// Number of thinking tokens among them.
    thinking: usize,
    /// Text without the thinking, if it has some.
    text: Option<String>,
    without_thinking: OnceCell<Vec<u32>>,
}

/// Token counts by kind.
#[derive(Default)]
pub(super) struct Parts {
    pub chat: usize,
    pub thinking: usize,
}

impl Branch {
    /// Applies the request's messages to the branch, and counts the new ones. If they follow a message that is not
    /// here, there is no frame afterwards.
    pub fn extend(&mut self, request: &CountRequest) -> Result<(), Failure> {
        let CountRequest {
            counter,
            place,
            conversation,
            after,
            messages,
            ..
        } = request;
        let header = (
            conversation.instructions.clone(),
            conversation.today.to_string(),
        );
        let before = self.of.take();
        let frame = match &before {
            Some((of, frame))
                if of.model == place.model
                    && of.thinking == place.thinking
                    && self.header == header =>
            {
                frame.clone()
            }
            _ => counter.frame(conversation)?,
        };
        self.header = header;
        let at = |after| self.messages.iter().rposition(|it| it.id == after);
        let kept = match after.map(at) {
            None => 0,
            Some(Some(at)) => at + 1,
            Some(None) => return Ok(()),
        };
        let old = self.messages.split_off(kept);
        let mut old: HashMap<_, _> = old
            .into_iter()
            .filter_map(|it| it.turn.map(|turn| (it.id, turn)))
            .collect();
        let reusable = |role: Role| {
            before.as_ref().is_some_and(|(of, was)| {
                let same = around(was, role) == around(&frame, role);
                same && of.model == place.model
                    && (role == Role::User || of.thinking == place.thinking)
            })
        };
        let reusable = [reusable(Role::User), reusable(Role::Assistant)];
        for (id, turn) in messages {
            let turn = turn.as_ref().map(|turn| {
                let is_answer = turn.role == Role::Assistant;
                old.remove(id)
                    .filter(|old| reusable[usize::from(is_answer)] && old.size == size_of(turn))
                    .unwrap_or_else(|| {
                        let encoded = counter.message(&frame, turn);
                        CountedTurn {
                            role: turn.role,
                            size: size_of(turn),
                            ids: encoded.ids,
                            thinking: encoded.thinking,
                            text: turn.thinking.is_some().then(|| turn.text.clone()),
                            without_thinking: OnceCell::new(),
                        }
                    })
            });
            self.messages.push(BranchMessage { id: *id, turn });
        }
        let shown = self.messages.iter().enumerate();
        self.shown = shown
            .filter_map(|(at, it)| it.turn.as_ref().map(|_| at))
            .collect();
        self.of = Some((place.clone(), frame));
        Ok(())
    }

    pub fn frame(&self) -> Option<&PromptFrame> {
        self.of.as_ref().map(|(_, frame)| frame)
    }

    /// Returns whether some of it remains after this cut.
    pub fn is_in(&self, cut: Cut) -> bool {
        cut.messages < self.shown.len()
    }

    /// Returns the ids of the messages that are in the prompt.
    pub fn ids(&self) -> Vec<MessageId> {
        self.shown.iter().map(|at| self.messages[*at].id).collect()
    }

    pub fn turns(&self) -> impl Iterator<Item = CutTurn> {
        self.counted().map(|turn| CutTurn {
            role: turn.role,
            thinks: turn.text.is_some(),
        })
    }

    fn counted(&self) -> impl Iterator<Item = &CountedTurn> {
        let turns = self.shown.iter().map(|at| self.messages[*at].turn.as_ref());
        turns.flatten()
    }

    /// Returns the token counts after this cut.
    pub fn parts(&self, cut: Cut, request: &CountRequest) -> Parts {
        let mut parts = Parts::default();
        let Some(frame) = self.frame() else {
            return parts;
        };
        for (at, turn) in self.counted().enumerate().skip(cut.messages) {
            let without = at < cut.thinking && turn.text.is_some();
            if at > cut.messages {
                parts.chat += around(frame, turn.role).opening.len();
            }
            if without {
                parts.chat += turn.without_thinking(frame, request).len();
            } else {
                parts.chat += turn.ids.len() - turn.thinking;
                parts.thinking += turn.thinking;
            }
        }
        parts
    }

    /// Appends the ids that remain after this cut.
    pub fn append(&self, cut: Cut, request: &CountRequest, ids: &mut Vec<u32>) {
        let Some(frame) = self.frame() else {
            return;
        };
        for (at, turn) in self.counted().enumerate().skip(cut.messages) {
            if at > cut.messages {
                ids.extend(&around(frame, turn.role).opening);
            }
            if at < cut.thinking && turn.text.is_some() {
                ids.extend(turn.without_thinking(frame, request));
            } else {
                ids.extend(&turn.ids);
            }
        }
    }

    pub fn omitted(&self, cut: Cut) -> Omitted {
        let thought = |turn: &&CountedTurn| turn.text.is_some();
        let kept = self.counted().take(cut.thinking).skip(cut.messages);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Omitted {
            messages: count(cut.messages),
            thinking: count(kept.filter(thought).count()),
        }
    }
}

impl CountedTurn {
    fn without_thinking(&self, frame: &PromptFrame, request: &CountRequest) -> &[u32] {
        self.without_thinking.get_or_init(|| {
            let text = self.text.clone().unwrap_or_default();
            let turn = Turn::new(self.role, text);
            request.counter.message(frame, &turn).ids
        })
    }
}

fn around(frame: &PromptFrame, role: Role) -> &MessageFrame {
    match role {
        Role::Assistant => &frame.answer,
        _ => &frame.user,
    }
}

fn size_of(turn: &Turn) -> [usize; 3] {
    let thinking = turn.thinking.as_ref().map_or(0, String::len);
    [
        turn.text.len(),
        thinking,
        turn.ids.as_ref().map_or(0, Vec::len),
    ]
}

//! The tokens of a branch, message by message.

use std::cell::OnceCell;
use std::sync::Arc;

use inference::{EncodedMessage, PromptFrame, Role, Turn};
use store::MessageId;

use crate::counting::request::CountRequest;
use crate::failure::Failure;
use crate::fit::cut::{Cut, CutTurn};
use crate::view::Omitted;

/// The messages of a branch that were counted.
#[derive(Default)]
pub(super) struct Branch {
    frame: Option<Arc<PromptFrame>>,
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
    encoded: Arc<EncodedMessage>,
    /// The message without its thinking, if it has some.
    unthinking: Option<Turn>,
    without_thinking: OnceCell<Arc<EncodedMessage>>,
}

/// Token counts by kind.
#[derive(Default)]
pub(super) struct PartTokens {
    pub chat: usize,
    pub thinking: usize,
}

impl Branch {
    /// Applies the request's messages to the branch, and counts the new ones. If they follow a message that is not
    /// here, there is no frame afterwards.
    pub fn extend(&mut self, request: &CountRequest) -> Result<(), Failure> {
        let CountRequest {
            counter,
            conversation,
            after,
            messages,
            ..
        } = request;
        self.frame = None;
        let frame = counter.frame(conversation)?;
        let at = |after| self.messages.iter().rposition(|it| it.id == after);
        let kept = match after.map(at) {
            None => 0,
            Some(Some(at)) => at + 1,
            Some(None) => return Ok(()),
        };
        self.messages.truncate(kept);
        for (id, turn) in messages {
            let turn = turn.as_ref().map(|turn| CountedTurn {
                role: turn.role,
                encoded: counter.message(&frame, turn),
                unthinking: turn.thinking.is_some().then(|| turn.without_thinking()),
                without_thinking: OnceCell::new(),
            });
            self.messages.push(BranchMessage { id: *id, turn });
        }
        let shown = self.messages.iter().enumerate();
        self.shown = shown
            .filter_map(|(at, it)| it.turn.as_ref().map(|_| at))
            .collect();
        self.frame = Some(frame);
        Ok(())
    }

    pub fn frame(&self) -> Option<&PromptFrame> {
        self.frame.as_deref()
    }

    /// Returns the ids of the messages that are in the prompt.
    pub fn ids(&self) -> Vec<MessageId> {
        self.shown.iter().map(|at| self.messages[*at].id).collect()
    }

    pub fn turns(&self) -> impl Iterator<Item = CutTurn> {
        self.counted().map(|turn| CutTurn {
            role: turn.role,
            thinks: turn.unthinking.is_some(),
        })
    }

    fn counted(&self) -> impl Iterator<Item = &CountedTurn> {
        let turns = self.shown.iter().map(|at| self.messages[*at].turn.as_ref());
        turns.flatten()
    }

    /// Returns the token counts after this cut.
    pub fn parts(&self, cut: Cut, request: &CountRequest) -> PartTokens {
        let mut parts = PartTokens::default();
        for message in self.encoded(cut, request) {
            parts.chat += message.ids.len() - message.thinking;
            parts.thinking += message.thinking;
        }
        parts
    }

    /// Appends the ids that remain after this cut.
    pub fn append(&self, cut: Cut, request: &CountRequest, ids: &mut Vec<u32>) {
        for message in self.encoded(cut, request) {
            ids.extend(&message.ids);
        }
    }

    /// Returns the messages that remain after this cut.
    fn encoded<'a>(
        &'a self,
        cut: Cut,
        request: &'a CountRequest,
    ) -> impl Iterator<Item = &'a EncodedMessage> {
        let turns = self.counted().enumerate().skip(cut.messages);
        turns.filter_map(move |(at, turn)| {
            let thinks = at >= cut.thinking || turn.unthinking.is_none();
            Some(if thinks {
                &*turn.encoded
            } else {
                turn.without_thinking(self.frame()?, request)
            })
        })
    }

    pub fn omitted(&self, cut: Cut) -> Omitted {
        let thought = |turn: &&CountedTurn| turn.unthinking.is_some();
        let kept = self.counted().take(cut.thinking).skip(cut.messages);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Omitted {
            messages: count(cut.messages),
            thinking: count(kept.filter(thought).count()),
        }
    }
}

impl CountedTurn {
    fn without_thinking(&self, frame: &PromptFrame, request: &CountRequest) -> &EncodedMessage {
        self.without_thinking
            .get_or_init(|| match &self.unthinking {
                Some(turn) => request.counter.message(frame, turn),
                None => Arc::clone(&self.encoded),
            })
    }
}

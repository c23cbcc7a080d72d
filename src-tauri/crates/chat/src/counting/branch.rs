//! The tokens of a branch, message by message.

use std::cell::OnceCell;
use std::sync::Arc;

use inference::{Conversation, EncodedMessage, PromptFrame, Role, Turn};
use store::MessageId;

use crate::counting::request::CountRequest;
use crate::failure::Failure;
use crate::fit::cut::{Cut, CutTurn};
use crate::view::Omitted;

/// The messages of a branch that were counted.
#[derive(Default)]
pub(super) struct Branch {
    frame: Option<Arc<PromptFrame>>,
    /// The frame without the definitions of tools.
    toolless: Option<Arc<PromptFrame>>,
    messages: Vec<BranchMessage>,
}

struct BranchMessage {
    id: MessageId,
    /// Its turns in the prompt.
    turns: Vec<CountedTurn>,
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
    /// Results of tools.
    pub results: usize,
}

impl PartTokens {
    pub fn all(&self) -> usize {
        self.chat + self.thinking + self.results
    }
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
        self.toolless = if conversation.tools.is_empty() {
            None
        } else {
            let tools = Arc::default();
            let conversation = conversation.clone();
            Some(counter.frame(&Conversation {
                tools,
                ..conversation
            })?)
        };
        let at = |after| self.messages.iter().rposition(|it| it.id == after);
        let kept = match after.map(at) {
            None => 0,
            Some(Some(at)) => at + 1,
            Some(None) => return Ok(()),
        };
        self.messages.truncate(kept);
        for (id, turns) in messages {
            let turns = turns.iter().map(|turn| CountedTurn {
                role: turn.role,
                encoded: counter.message(&frame, turn),
                unthinking: turn.thinking.is_some().then(|| turn.without_thinking()),
                without_thinking: OnceCell::new(),
            });
            let turns = turns.collect();
            self.messages.push(BranchMessage { id: *id, turns });
        }
        self.frame = Some(frame);
        Ok(())
    }

    pub fn frame(&self) -> Option<&PromptFrame> {
        self.frame.as_deref()
    }

    /// Returns the tokens of the definitions of tools.
    pub fn definitions(&self) -> usize {
        let toolless = self.toolless.as_ref().map(|frame| frame.head.len());
        let head = self.frame.as_ref().map(|frame| frame.head.len());
        toolless
            .zip(head)
            .map_or(0, |(without, with)| with.saturating_sub(without))
    }

    /// Returns the message of each turn.
    pub fn ids(&self) -> Vec<MessageId> {
        let messages = self.messages.iter();
        let ids = messages.flat_map(|it| it.turns.iter().map(|_| it.id));
        ids.collect()
    }

    pub fn turns(&self) -> impl Iterator<Item = CutTurn> {
        self.counted().map(|turn| CutTurn {
            role: turn.role,
            thinks: turn.unthinking.is_some(),
        })
    }

    fn counted(&self) -> impl Iterator<Item = &CountedTurn> {
        self.messages.iter().flat_map(|message| &message.turns)
    }

    /// Returns the token counts after this cut.
    pub fn parts(&self, cut: Cut, request: &CountRequest) -> PartTokens {
        let mut parts = PartTokens::default();
        for (role, message) in self.encoded(cut, request) {
            let tokens = message.ids.len() - message.thinking;
            parts.thinking += message.thinking;
            match role {
                Role::Tool => parts.results += tokens,
                Role::System | Role::User | Role::Assistant => parts.chat += tokens,
            }
        }
        parts
    }

    /// Appends the ids that remain after this cut.
    pub fn append(&self, cut: Cut, request: &CountRequest, ids: &mut Vec<u32>) {
        for (_, message) in self.encoded(cut, request) {
            ids.extend(&message.ids);
        }
    }

    /// Returns the messages that remain after this cut.
    fn encoded<'a>(
        &'a self,
        cut: Cut,
        request: &'a CountRequest,
    ) -> impl Iterator<Item = (Role, &'a EncodedMessage)> {
        let turns = self.counted().enumerate().skip(cut.messages);
        turns.filter_map(move |(at, turn)| {
            let thinks = at >= cut.thinking || turn.unthinking.is_none();
            let encoded = if thinks {
                &*turn.encoded
            } else {
                turn.without_thinking(self.frame()?, request)
            };
            Some((turn.role, encoded))
        })
    }

    pub fn omitted(&self, cut: Cut) -> Omitted {
        let thought = |turn: &&CountedTurn| turn.unthinking.is_some();
        let kept = self.counted().take(cut.thinking).skip(cut.messages);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut messages = self.ids();
        messages.truncate(cut.messages);
        messages.dedup();
        Omitted {
            messages: count(messages.len()),
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

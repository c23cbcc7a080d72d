//! What each generated token belongs to: the thinking, the answer, or the structure around them.

use crate::tokenizer::Tokenizer;

/// What a token belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The reasoning before an answer.
    Thinking,
    /// The answer.
    Answer,
    /// Tags and control tokens, which nobody reads.
    Control,
}

/// Follows the think tags through a generated answer. Missing, unclosed and repeated tags are all right.
pub struct PartTracker<'a> {
    tokenizer: &'a Tokenizer,
    open: Option<u32>,
    close: Option<u32>,
    now: Part,
}

impl<'a> PartTracker<'a> {
    /// A tracker for tokens that begin inside of `starts_in`.
    pub fn new(tokenizer: &'a Tokenizer, starts_in: Part) -> Self {
        let (open, close) = (tokenizer.special("<think>"), tokenizer.special("</think>"));
        PartTracker {
            tokenizer,
            open,
            close,
            now: starts_in,
        }
    }

    /// What the next token belongs to.
    pub fn part(&mut self, id: u32) -> Part {
        if Some(id) == self.open {
            self.now = Part::Thinking;
        } else if Some(id) == self.close {
            self.now = Part::Answer;
        } else if !self.tokenizer.is_control(id) {
            return self.now;
        }
        Part::Control
    }
}

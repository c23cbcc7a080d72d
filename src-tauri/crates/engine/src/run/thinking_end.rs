//! Ending the thinking of an answer before the model does: the tokens that end it are generated without asking the model.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use inference::ThinkingCut;

use crate::text::think::{self, PartTracker};
use crate::text::tokenizer::Tokenizer;

/// Decides when the thinking ends, and with which tokens.
pub(crate) struct ThinkingEnd<'a> {
    tokenizer: &'a Tokenizer,
    budget: usize,
    answer_now: &'a AtomicBool,
    /// Tokens that are generated next.
    forced: VecDeque<u32>,
    cut: Option<ThinkingCut>,
}

impl<'a> ThinkingEnd<'a> {
    pub fn new(
        tokenizer: &'a Tokenizer,
        budget: Option<usize>,
        answer_now: &'a AtomicBool,
    ) -> ThinkingEnd<'a> {
        ThinkingEnd {
            tokenizer,
            budget: budget.unwrap_or(usize::MAX),
            answer_now,
            forced: VecDeque::new(),
            cut: None,
        }
    }

    /// Why the thinking was ended.
    pub fn cut(&self) -> Option<ThinkingCut> {
        self.cut
    }

    /// Whether the thinking ends now, after this number of tokens of it, of which `last` is the last. Then [`ThinkingEnd::next`]
    /// has its end.
    pub fn begins(&mut self, parts: &PartTracker<'_>, tokens: usize, last: Option<u32>) -> bool {
        if !parts.is_thinking() || !self.forced.is_empty() {
            return false;
        }
        let cut = if self.answer_now.load(Ordering::Relaxed) {
            ThinkingCut::AnswerNow
        } else if tokens >= self.budget {
            ThinkingCut::Budget
        } else {
            return false;
        };
        let Some(close) = self.tokenizer.special(think::CLOSE) else {
            return false;
        };
        // As the template writes it: each tag on a line of its own.
        let newline = self.tokenizer.encode("\n", false);
        let ends_line = |id| self.tokenizer.piece(id).ends_with(b"\n");
        if !last.is_some_and(ends_line) {
            self.forced.extend(&newline);
        }
        self.forced.push_back(close);
        self.forced.extend(&newline);
        self.cut = Some(cut);
        true
    }

    /// The next token, where it is not the model's to choose.
    pub fn next(&mut self) -> Option<u32> {
        self.forced.pop_front()
    }

    /// Whether [`ThinkingEnd::next`] has one.
    pub fn is_under_way(&self) -> bool {
        !self.forced.is_empty()
    }
}

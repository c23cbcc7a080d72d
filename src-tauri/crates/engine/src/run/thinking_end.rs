//! Early end of an answer's thinking: its closing tokens are forced, not sampled.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use inference::ThinkingCut;

use crate::text::think::PartTracker;
use crate::text::tokenizer::Tokenizer;

/// Decides when the thinking ends, and with which tokens.
pub(crate) struct ThinkingEnd {
    budget: usize,
    answer_now: Arc<AtomicBool>,
    /// Forced tokens that come next.
    forced: VecDeque<u32>,
    cut: Option<ThinkingCut>,
}

impl ThinkingEnd {
    pub fn new(budget: Option<usize>, answer_now: Arc<AtomicBool>) -> ThinkingEnd {
        ThinkingEnd {
            budget: budget.unwrap_or(usize::MAX),
            answer_now,
            forced: VecDeque::new(),
            cut: None,
        }
    }

    /// Reason that the thinking was ended.
    pub fn cut(&self) -> Option<ThinkingCut> {
        self.cut
    }

    /// Decides if the thinking ends now, after `tokens` tokens, the last of which is `last`. Returns true if so;
    /// [`ThinkingEnd::next`] then returns the closing tokens.
    pub fn begins(
        &mut self,
        tokenizer: &Tokenizer,
        parts: &PartTracker,
        tokens: usize,
        last: Option<u32>,
    ) -> bool {
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
        let [_, Some(close)] = tokenizer.think_tags() else {
            return false;
        };
        // Each tag is on a line of its own, as in the template.
        let newline = tokenizer.encode("\n", false);
        let ends_line = |id| tokenizer.piece(id).ends_with(b"\n");
        if !last.is_some_and(ends_line) {
            self.forced.extend(&newline);
        }
        self.forced.push_back(close);
        self.forced.extend(&newline);
        self.cut = Some(cut);
        true
    }

    /// Returns the next forced token, if there is one.
    pub fn next(&mut self) -> Option<u32> {
        self.forced.pop_front()
    }

    /// Returns true while [`ThinkingEnd::next`] has tokens.
    pub fn is_under_way(&self) -> bool {
        !self.forced.is_empty()
    }
}

//! The template and the tokenizer of a model's prompts.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use inference::TokenKind;

use super::guard::Guard;
use crate::text::template::{ChatTemplate, TemplateError};
use crate::text::tokenizer::Tokenizer;

/// Error of encoding a prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The conversation has no messages.
    #[error("the conversation is empty")]
    Empty,
    /// The template rejects the conversation or fails.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// Cancelled.
    #[error("stopped")]
    Cancelled,
    /// The template does not write the messages one after the other, each between special tokens.
    #[error("this model's chat template cannot write single messages")]
    Indivisible,
}

/// Cancels nothing.
pub(super) static NEVER: AtomicBool = AtomicBool::new(false);

/// The template and the tokenizer of a model's prompts.
pub(super) struct PromptFormat {
    pub template: Arc<ChatTemplate>,
    pub tokenizer: Arc<Tokenizer>,
}

impl PromptFormat {
    pub fn guard(&self) -> Guard<'_> {
        Guard::new(self.tokenizer.specials())
    }

    /// Returns the part that the first token after these ids of the template belongs to.
    pub fn part_after(&self, ids: &[u32]) -> TokenKind {
        let [open, close] = self.tokenizer.think_tags();
        let last = ids.iter().rev().find_map(|id| match Some(*id) {
            tag if tag == open => Some(TokenKind::Thinking),
            tag if tag == close => Some(TokenKind::Answer),
            _ => None,
        });
        last.unwrap_or(TokenKind::Answer)
    }
}

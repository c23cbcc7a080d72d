//! Prompts as token ids.

/// Kind of a generated token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// The reasoning before an answer.
    Thinking,
    /// The answer.
    Answer,
    /// A call of a tool, tags included.
    Call,
    /// Tags and control tokens, whose text is not shown.
    Control,
}

/// A conversation as token ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The token ids.
    pub ids: Vec<u32>,
    /// Kind of the first generated token: thinking if the prompt ends inside it.
    pub starts_in: TokenKind,
    /// True if there are words of that kind already, as in a continued answer: a tag that would open thinking is then text.
    pub begun: bool,
}

impl Prompt {
    /// Makes a prompt of these ids, after which an answer begins.
    #[must_use]
    pub fn of_ids(ids: Vec<u32>) -> Self {
        Prompt {
            ids,
            starts_in: TokenKind::Answer,
            begun: false,
        }
    }
}

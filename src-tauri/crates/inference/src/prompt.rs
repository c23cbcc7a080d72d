//! Prompts as token ids.

/// Part of the output that a token belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The reasoning before an answer.
    Thinking,
    /// The answer.
    Answer,
    /// Tags and control tokens, whose text is not shown.
    Control,
}

/// A conversation as token ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The token ids.
    pub ids: Vec<u32>,
    /// Part that the first generated token belongs to: thinking if the prompt ends inside it.
    pub starts_in: Part,
    /// True if that part already has words, as in a continued answer: a tag that would open thinking is then text.
    pub begun: bool,
}

impl Prompt {
    /// Makes a prompt of these ids, after which an answer begins.
    #[must_use]
    pub fn of_ids(ids: Vec<u32>) -> Self {
        Prompt {
            ids,
            starts_in: Part::Answer,
            begun: false,
        }
    }
}

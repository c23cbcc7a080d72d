//! What a model reads.

/// What a token belongs to.
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
    /// Number of leading ids that are of the conversation before its last question, and were there before it was asked; 0
    /// where there are none.
    pub settled: usize,
    /// What the first generated token belongs to: thinking where the prompt ends inside of it.
    pub starts_in: Part,
    /// True if that part has words already, as in an answer that is continued: then a tag that would open a thinking is
    /// text.
    pub begun: bool,
}

impl Prompt {
    /// A prompt of these ids, behind which an answer begins.
    #[must_use]
    pub fn of_ids(ids: Vec<u32>) -> Self {
        Prompt {
            ids,
            settled: 0,
            starts_in: Part::Answer,
            begun: false,
        }
    }
}

//! The description of a chat format.

use inference::Sampling;

/// A chat format. Its template writes system text, turns and the beginning of the answer; the vocabulary determines the
/// tokens that end a turn.
#[derive(Debug)]
pub struct Protocol {
    /// Display name.
    pub name: &'static str,
    /// Goldcrest's own template.
    pub(crate) template: &'static str,
    /// Special tokens that it requires.
    pub(super) tokens: &'static [&'static str],
    /// Control tokens that end a turn, if the vocabulary has them.
    pub(crate) ends: &'static [&'static str],
    /// Text that only its templates have, among those with the same tokens.
    pub(super) mark: &'static str,
    /// Thinking before an answer, which the prompt can suppress; `None` if its models do not think.
    pub(crate) thinking: Option<Thinking>,
    /// Calls of tools in answers.
    pub(crate) calls: CallFormat,
    /// Sampling for files that name none, by number of parameters, with thinking and without.
    pub(super) sampling: fn(parameters: u64, thinking: bool) -> Sampling,
}

/// Format of the thinking before an answer.
#[derive(Debug)]
pub(crate) struct Thinking {
    /// True if earlier thinking stays in the prompt. Otherwise only the answer that is being written has any.
    pub kept: bool,
    /// Text between its end and the answer.
    pub after: &'static str,
}

/// Format of a call of a tool: a JSON object with the name and the arguments.
#[derive(Debug)]
pub(crate) struct CallFormat {
    /// Text before it.
    pub before: &'static str,
    /// Text behind it.
    pub after: &'static str,
    /// Key of the arguments.
    pub arguments: &'static str,
}

/// Calls within tags, of SmolLM3 and Qwen.
pub(super) const TAGGED_CALLS: CallFormat = CallFormat {
    before: "<tool_call>\n",
    after: "\n</tool_call>",
    arguments: "arguments",
};

/// Tags before and after the thinking, in all formats. Models think in them whose format names none, too.
pub(crate) const THINK_TAGS: [&str; 2] = ["<think>", "</think>"];

impl Protocol {
    /// Returns the sampling for files that name none, for a model with this number of parameters.
    pub(crate) fn sampling_of(&self, parameters: u64, thinking: bool) -> Sampling {
        (self.sampling)(parameters, thinking)
    }
}

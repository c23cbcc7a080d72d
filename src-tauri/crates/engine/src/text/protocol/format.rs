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
    /// Variables of its templates that list tools; `None` if its models were not trained on any.
    pub(crate) tools: Option<ToolVariables>,
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
    /// Tags around it; `None` if an answer with a call is that object alone.
    pub tags: Option<[&'static str; 2]>,
    /// Key of the arguments.
    pub arguments: &'static str,
    /// Format of a call of the code tool, if it differs.
    pub code: Option<CodeFormat>,
}

impl CallFormat {
    /// Returns the tags of all calls.
    pub(crate) fn all_tags(&self) -> impl Iterator<Item = &'static str> {
        let code = self.code.as_ref();
        let code = code.into_iter().flat_map(|it| [Some(it.open), it.close]);
        self.tags.into_iter().flatten().chain(code.flatten())
    }

    /// Returns the text that opens a call in JSON.
    pub(crate) fn opening(&self) -> &'static str {
        self.tags.map_or("{\"name\"", |[open, _]| open)
    }

    /// Returns true if programs end with a tag.
    pub(crate) fn has_close(&self) -> bool {
        self.code.as_ref().is_some_and(|it| it.close.is_some())
    }
}

/// Format of a call whose argument is a program, without JSON.
#[derive(Debug)]
pub(crate) struct CodeFormat {
    /// Tag before the program.
    pub open: &'static str,
    /// Tag behind it; `None` if it goes on to the end of the turn.
    pub close: Option<&'static str>,
}

/// Variables of templates that list tools.
#[derive(Debug)]
pub(crate) struct ToolVariables {
    /// The tools, as JSON.
    pub tools: &'static str,
    /// Functions that programs may call, as Python; the code tool is in no other list.
    pub signatures: Option<&'static str>,
    /// Variable that is false, so that the tools stand in the system message.
    pub unset: Option<&'static str>,
}

/// Tags around a call, of SmolLM3 and Qwen.
pub(super) const CALL_TAGS: [&str; 2] = ["<tool_call>", "</tool_call>"];

/// Calls within tags, of Qwen.
pub(super) const TAGGED_CALLS: CallFormat = CallFormat {
    tags: Some(CALL_TAGS),
    arguments: "arguments",
    code: None,
};

/// The variable of Qwen's templates.
pub(super) const TOOLS: ToolVariables = ToolVariables {
    tools: "tools",
    signatures: None,
    unset: None,
};

/// Tags before and after the thinking, in all formats. Models think in them whose format names none, too.
pub(crate) const THINK_TAGS: [&str; 2] = ["<think>", "</think>"];

impl Protocol {
    /// Returns the sampling for files that name none, for a model with this number of parameters.
    pub(crate) fn sampling_of(&self, parameters: u64, thinking: bool) -> Sampling {
        (self.sampling)(parameters, thinking)
    }
}

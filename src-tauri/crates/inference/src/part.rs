//! Parts of a message.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::conversation::ToolCall;

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Part {
    /// Text, as Markdown.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning of the model, without its tags.
    Thinking {
        /// The reasoning.
        text: String,
    },
    /// A tool that the model calls.
    ToolCall {
        /// Id of the call, unique within a chat.
        id: String,
        /// Name of the tool.
        name: String,
        /// Its arguments, as the model wrote them: JSON, if it made no mistake.
        arguments: String,
    },
    /// The result of a call.
    ToolResult {
        /// Id of the call.
        id: String,
        /// The result, or the reason why there is none.
        text: String,
        /// The end of the call.
        #[serde(default, skip_serializing_if = "ToolOutcome::is_done")]
        outcome: ToolOutcome,
        /// Name of the MCP server that gave it; `None` for a built-in tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
    },
}

/// Ends of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum ToolOutcome {
    /// The tool returned a result.
    #[default]
    Done,
    /// The tool failed, or the call was wrong.
    Failed,
    /// The user did not allow it.
    Denied,
    /// The answer was stopped before.
    NotRun,
}

impl ToolOutcome {
    /// Returns the name in the store and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ToolOutcome::Done => "done",
            ToolOutcome::Failed => "failed",
            ToolOutcome::Denied => "denied",
            ToolOutcome::NotRun => "not-run",
        }
    }

    /// Returns the outcome of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<ToolOutcome> {
        use ToolOutcome::{Denied, Done, Failed, NotRun};
        [Done, Failed, Denied, NotRun]
            .into_iter()
            .find(|outcome| outcome.name() == name)
    }

    /// Returns true for [`ToolOutcome::Done`].
    #[must_use]
    pub fn is_done(&self) -> bool {
        *self == ToolOutcome::Done
    }
}

impl Part {
    /// Returns true for [`Part::Text`].
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self, Part::Text { .. })
    }

    /// Returns its text, arguments or result, to be changed.
    #[must_use]
    pub fn content_mut(&mut self) -> &mut String {
        match self {
            Part::Text { text } | Part::Thinking { text } | Part::ToolResult { text, .. } => text,
            Part::ToolCall { arguments, .. } => arguments,
        }
    }

    /// Returns its text, arguments or result.
    #[must_use]
    pub fn content(&self) -> &str {
        match self {
            Part::Text { text } | Part::Thinking { text } | Part::ToolResult { text, .. } => text,
            Part::ToolCall { arguments, .. } => arguments,
        }
    }
}

/// The parts of a message, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(transparent)]
pub struct Parts(pub Vec<Part>);

impl Parts {
    /// Makes a text, or no part if it is empty.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> Parts {
        Parts::of_answer(None, text)
    }

    /// Makes thinking, followed by a text unless it is empty.
    #[must_use]
    pub fn of_answer(thinking: Option<String>, text: impl Into<String>) -> Parts {
        let text = Some(text.into()).filter(|text| !text.is_empty());
        let thinking = thinking.map(|text| Part::Thinking { text });
        let text = text.map(|text| Part::Text { text });
        Parts(thinking.into_iter().chain(text).collect())
    }

    /// Returns the text, with a blank line between texts of different parts; empty if there is none.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        let texts = self.0.iter().filter_map(|part| match part {
            Part::Text { text } => Some(&**text),
            _ => None,
        });
        joined(texts).unwrap_or_default()
    }

    /// Returns the thinking, with a blank line between that of different parts; `None` if there is none.
    #[must_use]
    pub fn thinking(&self) -> Option<Cow<'_, str>> {
        joined(self.0.iter().filter_map(|part| match part {
            Part::Thinking { text } => Some(&**text),
            _ => None,
        }))
    }

    /// Returns the results of tools, with a blank line between them; `None` if there is none.
    #[must_use]
    pub fn results(&self) -> Option<Cow<'_, str>> {
        joined(self.0.iter().filter_map(|part| match part {
            Part::ToolResult { text, .. } => Some(&**text),
            _ => None,
        }))
    }

    /// Returns the calls of tools, with their places in [`Parts::text`].
    #[must_use]
    pub fn calls(&self) -> Vec<ToolCall> {
        let mut calls = Vec::new();
        for (index, part) in self.0.iter().enumerate() {
            if let Part::ToolCall {
                name, arguments, ..
            } = part
            {
                let before = self.0[..index].iter().filter(|part| part.is_text());
                let texts = before.map(Part::content);
                calls.push(ToolCall {
                    at: joined(texts).map_or(0, |text| text.len()),
                    name: name.clone(),
                    arguments: arguments.clone(),
                });
            }
        }
        calls
    }

    /// Returns the calls and results with `text`, which stands where the first text was, else at the end.
    #[must_use]
    pub fn with_text(&self, text: &str) -> Parts {
        let is_tool =
            |part: &&Part| matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. });
        let first = self.0.iter().position(Part::is_text);
        let (before, after) = self.0.split_at(first.unwrap_or(self.0.len()));
        let kept = |parts: &[Part]| parts.iter().filter(is_tool).cloned().collect();
        let (mut parts, after): (Vec<Part>, Vec<Part>) = (kept(before), kept(after));
        parts.extend(Parts::of_text(text).0);
        parts.extend(after);
        Parts(parts)
    }

    /// Returns the bytes of all parts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|part| part.content().len()).sum()
    }

    /// Returns true if there is a text.
    #[must_use]
    pub fn has_text(&self) -> bool {
        self.0
            .iter()
            .any(|part| part.is_text() && !part.content().is_empty())
    }

    /// Appends to the text at the end, or begins one.
    pub fn push_text(&mut self, more: &str) {
        match self.0.last_mut() {
            Some(Part::Text { text }) => text.push_str(more),
            _ => self.0.push(Part::Text { text: more.into() }),
        }
    }

    /// Appends to the thinking at the end, or begins some.
    pub fn push_thinking(&mut self, more: &str) {
        match self.0.last_mut() {
            Some(Part::Thinking { text }) => text.push_str(more),
            _ => self.0.push(Part::Thinking { text: more.into() }),
        }
    }
}

/// Joins texts with blank lines; `None` if there are none.
fn joined<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<Cow<'a, str>> {
    let mut whole = Cow::Borrowed(texts.next()?);
    for text in texts {
        whole.to_mut().push_str("\n\n");
        whole.to_mut().push_str(text);
    }
    Some(whole)
}

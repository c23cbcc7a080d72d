//! Messages as they stand in a prompt.

use std::borrow::Cow;
use std::slice;
use std::sync::atomic::AtomicBool;

use inference::{Content, EncodedMessage, PromptFrame, Role, TokenKind, ToolCall, Turn};
use serde_json::Value;

use super::format::PromptFormat;
use super::frame::Unit;
use super::guard::{Guard, Segment};
use crate::text::protocol::{CodeFormat, THINK_TAGS};
use crate::text::think::{self, PartTracker};

/// Continuation of an answer: the part of the next token; true if there are words of it already.
type Continuation = (TokenKind, bool);

impl PromptFormat {
    /// Encodes complete messages; `None` if cancelled.
    pub(super) fn encode(&self, unit: Unit<'_>, cancel: &AtomicBool) -> Option<EncodedMessage> {
        let answers = unit.turns.iter().map(|turn| self.answer_ids(unit, turn));
        let answers: Vec<_> = answers.collect();
        let contents = unit.turns.iter().zip(&answers).enumerate();
        let contents: Vec<_> = contents
            .map(|(at, (turn, ids))| match ids {
                Some(_) => Guard::placeholder(at),
                None => self.content(unit, turn, false),
            })
            .collect();
        let contents = contents.join(unit.around.joint.as_deref().unwrap_or_default());
        let text = [&unit.around.before, &contents, &unit.around.after].map(String::as_str);
        let (mut message, _) = self.encode_text(unit, &text.concat(), &answers, cancel)?;
        message.ids.extend(&unit.around.closing);
        Some(message)
    }

    /// Encodes an answer that goes on, and the position at its end; `None` if cancelled.
    pub(super) fn encode_open(
        &self,
        frame: &PromptFrame,
        turn: &Turn,
        cancel: &AtomicBool,
    ) -> Option<(EncodedMessage, Continuation)> {
        let unit = Unit {
            around: &frame.continued,
            thinking: frame.thinking,
            code: frame.code.as_ref(),
            turns: slice::from_ref(turn),
        };
        let ids = self.answer_ids(unit, turn);
        let content = match ids {
            Some(_) => Guard::placeholder(0),
            None => self.content(unit, turn, true),
        };
        let text = [unit.around.before.as_str(), &content].concat();
        let is_text = ids.is_none();
        let (message, mut position) = self.encode_text(unit, &text, &[ids], cancel)?;
        if is_text {
            let written = match position.0 {
                TokenKind::Thinking => turn.thinking.as_deref().unwrap_or_default(),
                TokenKind::Answer | TokenKind::Call | TokenKind::Control => &turn.text,
            };
            position.1 = !written.trim().is_empty();
        }
        Some((message, position))
    }

    /// Encodes the opening and the text of messages, with ids in place of the placeholders.
    fn encode_text(
        &self,
        unit: Unit<'_>,
        text: &str,
        answers: &[Option<Vec<u32>>],
        cancel: &AtomicBool,
    ) -> Option<(EncodedMessage, Continuation)> {
        let [open, close] = self.tokenizer.think_tags();
        let mut ids = unit.around.opening.clone();
        let mut thinking = 0;
        let mut position = (self.part_after(&ids), false);
        for segment in self.guard().segments(text, cancel)? {
            let before = ids.len();
            match segment {
                Segment::Text(text) => {
                    if !self.tokenizer.encode_cancellable(&text, &mut ids, cancel) {
                        return None;
                    }
                    if position.0 == TokenKind::Thinking {
                        thinking += ids.len() - before;
                    }
                }
                // The only special tokens of a message are the tags of its thinking and its calls.
                Segment::Special(id) => {
                    ids.push(id);
                    if Some(id) == open {
                        position.0 = TokenKind::Thinking;
                    } else if Some(id) == close {
                        position.0 = TokenKind::Answer;
                    }
                    thinking += usize::from([open, close].contains(&Some(id)));
                }
                Segment::Placeholder(at) => {
                    let answer = answers.get(at).and_then(Option::as_deref);
                    let mut parts = PartTracker::new(&self.tokenizer, position.0, false);
                    for id in answer.unwrap_or_default() {
                        thinking +=
                            usize::from(parts.kind(&self.tokenizer, *id) != TokenKind::Answer);
                        ids.push(*id);
                    }
                    position = parts.position();
                }
            }
        }
        Some((EncodedMessage { ids, thinking }, position))
    }

    /// Generated ids of an answer, if the prompt repeats them.
    pub(super) fn answer_ids(&self, unit: Unit<'_>, turn: &Turn) -> Option<Vec<u32>> {
        let ids = turn.ids.as_deref();
        let ids = ids.filter(|_| turn.role == Role::Assistant)?;
        // The template adds the end of the turn.
        let ends = self.tokenizer.turn_ends();
        let kept = ids
            .iter()
            .rposition(|id| !ends.contains(id))
            .map_or(0, |last| last + 1);
        let ids = &ids[..kept];
        // Suppressed tokens are no longer generated, but answers of earlier versions may have them, and a stored
        // answer may have any number.
        let suppressed = self.tokenizer.suppressed();
        let is_tag = |id: u32| self.call_tags().any(|tag| tag == id);
        let is_no_text = |id: &u32| {
            ends.contains(id)
                || suppressed.binary_search(id).is_ok() && !is_tag(*id)
                || *id as usize >= self.tokenizer.vocabulary_size()
        };
        if ids.iter().any(is_no_text) {
            return None;
        }
        let starts_in = self.answer_starts_in(unit, turn, ids);
        if !self.shows_thinking(unit, turn) {
            return think::without_thinking(&self.tokenizer, ids, starts_in);
        }
        let opened = if starts_in == TokenKind::Thinking {
            let [open, _] = THINK_TAGS;
            self.tokenizer.encode(&format!("{open}\n"), true)
        } else {
            Vec::new()
        };
        Some([&opened, ids].concat())
    }

    /// The tags of calls that are tokens.
    fn call_tags(&self) -> impl Iterator<Item = u32> {
        let tags = self.template.protocol().calls.all_tags();
        tags.filter_map(|tag| self.tokenizer.special(tag))
    }

    /// Returns true if the thinking of an answer is in the prompt.
    fn shows_thinking(&self, unit: Unit<'_>, turn: &Turn) -> bool {
        let thinking = &self.template.protocol().thinking;
        unit.thinking
            && self.template.capabilities().thinking
            && thinking.as_ref().is_some_and(|it| it.kept || turn.open)
    }

    /// The part that the first token of an answer belongs to: thinking if its prompt had opened it.
    fn answer_starts_in(&self, unit: Unit<'_>, turn: &Turn, ids: &[u32]) -> TokenKind {
        let tag = think::first_tag(&self.tokenizer, ids);
        let words = self
            .tokenizer
            .decode(&ids[..tag.map_or(ids.len(), |(at, _)| at)]);
        let words = words.trim();
        let begins = |text: &str| text.trim_start().starts_with(words);
        let has_thought = turn.thinking.as_deref().is_some_and(begins);
        let may_have_thought = turn.thinking.is_some() || (turn.text.is_empty() && unit.thinking);
        let is_thinking = match tag {
            // Words before a tag belong to an answer that mentions it, or to thinking that the prompt had opened.
            Some(_) if !words.is_empty() => has_thought || !begins(&turn.text) && may_have_thought,
            Some((_, closes)) => closes,
            None => {
                let says_nothing = turn.text.is_empty() && turn.calls.is_empty();
                !ids.is_empty() && says_nothing && may_have_thought
            }
        };
        if is_thinking {
            TokenKind::Thinking
        } else {
            TokenKind::Answer
        }
    }

    /// Returns the content of a message as the template writes it, with marks.
    pub(super) fn content(&self, unit: Unit<'_>, turn: &Turn, goes_on: bool) -> String {
        let guard = self.guard();
        let written = |text: &str| guard.content(&written(unit.around.content, text, goes_on));
        if turn.role != Role::Assistant {
            return written(&turn.text);
        }
        let text = self.with_calls(unit, turn, written);
        let thinking = turn.thinking.as_deref().map(|it| it.trim_matches('\n'));
        let thinking = thinking.filter(|_| self.shows_thinking(unit, turn));
        let Some(thinking) = thinking else {
            return text;
        };
        let after = self.template.protocol().thinking.as_ref();
        let after = after.map_or("", |it| it.after);
        let [open, close] = THINK_TAGS;
        let begins = goes_on && text.is_empty();
        match guard.content(thinking) {
            // An empty thinking opens the answer.
            thinking if thinking.is_empty() && begins => format!("{open}\n\n{close}{after}"),
            thinking if thinking.is_empty() => text,
            thinking if begins => format!("{open}\n{thinking}"),
            thinking => format!("{open}\n{thinking}\n{close}{after}{text}"),
        }
    }

    /// Returns the text of an answer, as `written` writes it, with its calls in their places.
    fn with_calls(&self, unit: Unit<'_>, turn: &Turn, written: impl Fn(&str) -> String) -> String {
        let (mut lines, mut done) = (Vec::new(), 0);
        let piece = |from, to| written(turn.text[from..to].trim_start_matches('\n'));
        for call in &turn.calls {
            let at = turn.text.floor_char_boundary(call.at).max(done);
            lines.push(piece(done, at));
            done = at;
            lines.push(self.call(unit, call));
        }
        lines.push(piece(done, turn.text.len()));
        lines.retain(|line| !line.is_empty());
        lines.join("\n")
    }

    /// Returns a call as an answer has it.
    fn call(&self, unit: Unit<'_>, call: &ToolCall) -> String {
        let format = &self.template.protocol().calls;
        let tagged = |open: &str, content: &str, close: &str| {
            let content = self.guard().content(content);
            format!("{open}\n{content}\n{close}")
        };
        if let Some(tool) = unit.code.filter(|tool| tool.name == call.name)
            && let Some(CodeFormat {
                open,
                close: Some(close),
            }) = format.code
            && let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments)
            && let Some(program) = arguments[&tool.argument].as_str()
        {
            return tagged(open, program, close);
        }
        let name = Value::from(&*call.name);
        let arguments = match call.arguments.trim() {
            "" => "{}",
            arguments => arguments,
        };
        let json = format!(
            "{{\"name\": {name}, \"{}\": {arguments}}}",
            format.arguments
        );
        match format.tags {
            Some([open, close]) => tagged(open, &json, close),
            None => self.guard().content(&json),
        }
    }
}

fn written(content: Content, text: &str, goes_on: bool) -> Cow<'_, str> {
    match content {
        Content::Verbatim => text.into(),
        Content::Trimmed if goes_on => text.trim_start().into(),
        Content::Trimmed => text.trim().into(),
        Content::Json => {
            let json = Value::from(text).to_string();
            json[1..json.len() - 1].to_owned().into()
        }
    }
}

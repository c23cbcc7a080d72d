//! Encoding of a conversation as a prompt: chat template, injection guard, tokenizer.

mod guard;
pub mod messages;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use inference::{Conversation, Part, Prompt, Role, Turn};
use serde_json::{Value, json};

use crate::text::template::{ChatTemplate, TemplateError};
use crate::text::think::{self, PartTracker};
use crate::text::tokenizer::Tokenizer;
use guard::{Guard, Segment};

/// The end of a prompt whose template opens the thinking.
const THINKING_OPENED: &str = "<think>\n";

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
    /// The template omits or changes the answer to continue.
    #[error("this model's chat template cannot continue an answer")]
    Continue,
}

/// Encodes the prompt of `conversation`, polling `cancel` while the rendered text is split and encoded.
///
/// # Errors
/// Fails if there are no messages, the template rejects them, or `cancel` was set.
pub fn encode_prompt(
    conversation: &Conversation,
    template: &ChatTemplate,
    tokenizer: &Tokenizer,
    cancel: &AtomicBool,
) -> Result<Prompt, PromptError> {
    if conversation.messages.is_empty() {
        return Err(PromptError::Empty);
    }
    let draft = PromptDraft {
        conversation,
        template,
        guard: Guard::new(tokenizer.specials()),
        tokenizer,
        cancel,
    };
    let answers = draft.answer_ids();
    let verbatim: BTreeSet<usize> = answers
        .iter()
        .enumerate()
        .filter_map(|(i, ids)| ids.as_ref().map(|_| i))
        .collect();
    let mut segments = draft.segments(&verbatim)?;
    // A template that parses answers may drop or repeat a placeholder: then all answers are rendered as text.
    if placeholders(&segments) != verbatim.into_iter().collect::<Vec<_>>() {
        segments = draft.segments(&BTreeSet::new())?;
    }
    if draft.open_answer().is_some() {
        let end = segments
            .iter()
            .position(|segment| *segment == Segment::AnswerEnd);
        segments.truncate(end.ok_or(PromptError::Continue)?);
    }
    draft
        .assemble(&segments, &answers)
        .ok_or(PromptError::Cancelled)
}

/// The turns that have a placeholder in a rendered prompt, in order.
fn placeholders(segments: &[Segment]) -> Vec<usize> {
    let index = |segment: &Segment| match segment {
        Segment::Placeholder(index) => Some(*index),
        _ => None,
    };
    segments.iter().filter_map(index).collect()
}

/// A prompt under construction.
struct PromptDraft<'a> {
    conversation: &'a Conversation,
    template: &'a ChatTemplate,
    tokenizer: &'a Tokenizer,
    guard: Guard<'a>,
    cancel: &'a AtomicBool,
}

impl PromptDraft<'_> {
    /// Index of the answer to continue.
    fn open_answer(&self) -> Option<usize> {
        let last = self.conversation.messages.len().checked_sub(1)?;
        let turn = &self.conversation.messages[last];
        (turn.open && turn.role == Role::Assistant).then_some(last)
    }

    /// Generated ids of each turn that the prompt repeats verbatim, if there are any.
    fn answer_ids(&self) -> Vec<Option<Vec<u32>>> {
        let turns = self.conversation.messages.iter();
        turns
            .map(|turn| {
                let ids = turn
                    .ids
                    .as_deref()
                    .filter(|_| turn.role == Role::Assistant)?;
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
                let is_no_text = |id: &u32| {
                    ends.contains(id)
                        || suppressed.binary_search(id).is_ok()
                        || *id as usize >= self.tokenizer.vocabulary_size()
                };
                if ids.iter().any(is_no_text) {
                    return None;
                }
                let starts_in = self.answer_starts_in(turn, ids);
                if !self.shows_thinking(turn) {
                    return think::without_thinking(self.tokenizer, ids, starts_in);
                }
                let opened = if starts_in == Part::Thinking {
                    self.tokenizer.encode(THINKING_OPENED, true)
                } else {
                    Vec::new()
                };
                Some([&opened, ids].concat())
            })
            .collect()
    }

    /// Returns true if the thinking of an answer is in the prompt.
    fn shows_thinking(&self, turn: &Turn) -> bool {
        let protocol = self.template.protocol();
        self.conversation.thinking
            && self.template.capabilities().thinking
            && (protocol.keeps_thinking || turn.open)
    }

    /// The part that the first token of an answer belongs to: thinking if its prompt had opened it.
    fn answer_starts_in(&self, turn: &Turn, ids: &[u32]) -> Part {
        let tag = think::first_tag(self.tokenizer, ids);
        let words = self
            .tokenizer
            .decode(&ids[..tag.map_or(ids.len(), |(at, _)| at)]);
        let words = words.trim();
        let begins = |text: &str| text.trim_start().starts_with(words);
        let has_thought = turn.thinking.as_deref().is_some_and(begins);
        let is_thinking = match tag {
            // Words before a tag belong to an answer that mentions it, or to thinking that the prompt had opened.
            Some(_) if !words.is_empty() => {
                has_thought || !begins(&turn.text) && self.may_have_thought(turn)
            }
            Some((_, closes)) => closes,
            None => !ids.is_empty() && turn.text.is_empty() && self.may_have_thought(turn),
        };
        if is_thinking {
            Part::Thinking
        } else {
            Part::Answer
        }
    }

    /// Returns true if there may be thinking in the ids of an answer.
    fn may_have_thought(&self, turn: &Turn) -> bool {
        turn.thinking.is_some() || (turn.text.is_empty() && self.conversation.thinking)
    }

    /// Renders the conversation, with placeholders for the turns in `verbatim`.
    fn segments(&self, verbatim: &BTreeSet<usize>) -> Result<Vec<Segment>, PromptError> {
        let context = self.context(verbatim);
        let render = self.template.render(&context, self.conversation.today)?;
        self.guard
            .segments(&render, self.cancel)
            .ok_or(PromptError::Cancelled)
    }

    fn context(&self, verbatim: &BTreeSet<usize>) -> Value {
        let Conversation {
            messages, thinking, ..
        } = self.conversation;
        let mut rendered: Vec<Value> = messages
            .iter()
            .enumerate()
            .map(|(index, turn)| {
                json!({"role": turn.role.name(), "content": self.content(index, turn, verbatim)})
            })
            .collect();
        let [begin, end] = self.tokenizer.boundary_texts();
        let mut context = json!({
            "add_generation_prompt": self.open_answer().is_none(),
            "bos_token": begin,
            "eos_token": end,
        });
        if self.template.capabilities().thinking {
            context["enable_thinking"] = (*thinking).into();
        }
        let instructions = self.conversation.instructions.as_deref().map(str::trim_end);
        if let Some(text) = instructions.filter(|text| !text.is_empty()) {
            let text = self.guard.instructions(text);
            if messages[0].role == Role::System {
                let own = rendered[0]["content"].as_str().unwrap_or_default();
                rendered[0]["content"] = format!("{text}\n\n{own}").into();
            } else if self.template.capabilities().instructions {
                context["custom_instructions"] = text.into();
            } else {
                rendered.insert(0, json!({"role": "system", "content": text}));
            }
        }
        context["messages"] = rendered.into();
        context
    }

    fn content(&self, index: usize, turn: &Turn, verbatim: &BTreeSet<usize>) -> String {
        match turn.role {
            Role::System => self.guard.protocol(&turn.text),
            Role::User | Role::Tool => self.guard.content(&turn.text),
            Role::Assistant => self.answer_content(index, turn, verbatim),
        }
    }

    /// The content of an answer: a placeholder for its ids, or its thinking in tags and its text.
    fn answer_content(&self, index: usize, turn: &Turn, verbatim: &BTreeSet<usize>) -> String {
        let open = self.open_answer() == Some(index);
        let mut content = if verbatim.contains(&index) {
            Guard::placeholder(index)
        } else {
            let text = self.guard.content(turn.text.trim_start_matches('\n'));
            let thinking = turn
                .thinking
                .as_deref()
                .map(|thinking| thinking.trim_matches('\n'));
            let after = self.template.protocol().after_thinking;
            match thinking.filter(|_| self.shows_thinking(turn)) {
                // An empty thinking opens it, so that the answer continues.
                Some("") if open && text.is_empty() => {
                    format!("{}\n\n{}{after}", think::OPEN, think::CLOSE)
                }
                Some("") | None => text,
                Some(thinking) if open && text.is_empty() => {
                    format!("{}\n{}", think::OPEN, self.guard.content(thinking))
                }
                Some(thinking) => {
                    let thinking = self.guard.content(thinking);
                    format!("{}\n{thinking}\n{}{after}{text}", think::OPEN, think::CLOSE)
                }
            }
        };
        if open {
            content.push_str(guard::ANSWER_END);
        }
        content
    }

    /// The prompt of these segments; `None` if cancelled.
    fn assemble(&self, segments: &[Segment], answers: &[Option<Vec<u32>>]) -> Option<Prompt> {
        let mut ids = self.encoded(segments, answers)?;
        if let Some(start) = self.tokenizer.prompt_start()
            && ids.first() != Some(&start)
        {
            ids.insert(0, start);
        }
        let (starts_in, begun) = self.start(segments, answers);
        Some(Prompt {
            ids,
            starts_in,
            begun,
        })
    }

    /// See [`Prompt::starts_in`] and [`Prompt::begun`]. Only tags of the template count, and those of the answer to
    /// continue as they counted when they were generated.
    fn start(&self, segments: &[Segment], answers: &[Option<Vec<u32>>]) -> (Part, bool) {
        let open_answer = self.open_answer();
        let [open, close] = [think::OPEN, think::CLOSE].map(|tag| self.tokenizer.special(tag));
        let mut part = Part::Answer;
        for segment in segments {
            match segment {
                Segment::Special(id) if Some(*id) == open => part = Part::Thinking,
                Segment::Special(id)
                    if Some(*id) == close || self.tokenizer.turn_ends().contains(id) =>
                {
                    part = Part::Answer;
                }
                Segment::Placeholder(index) if open_answer == Some(*index) => {
                    let ids = answers.get(*index).and_then(Option::as_deref);
                    let mut parts = PartTracker::new(self.tokenizer, part, false);
                    for id in ids.unwrap_or_default() {
                        parts.part(*id);
                    }
                    return parts.position();
                }
                Segment::Placeholder(_) => part = Part::Answer,
                Segment::Special(_) | Segment::Text(_) | Segment::AnswerEnd => {}
            }
        }
        let written = open_answer.map(|index| &self.conversation.messages[index]);
        let begun = written.is_some_and(|turn| {
            let text = match part {
                Part::Thinking => turn.thinking.as_deref().unwrap_or_default(),
                Part::Answer | Part::Control => &turn.text,
            };
            !text.trim().is_empty()
        });
        (part, begun)
    }

    /// The ids of these segments; `None` if cancelled.
    fn encoded(&self, segments: &[Segment], answers: &[Option<Vec<u32>>]) -> Option<Vec<u32>> {
        let mut ids = Vec::new();
        for segment in segments {
            match segment {
                Segment::Text(piece) => {
                    if !self
                        .tokenizer
                        .encode_cancellable(piece, &mut ids, self.cancel)
                    {
                        return None;
                    }
                }
                Segment::Special(id) => ids.push(*id),
                Segment::Placeholder(index) => {
                    let answer = answers
                        .get(*index)
                        .and_then(Option::as_deref)
                        .unwrap_or_default();
                    ids.extend_from_slice(answer);
                }
                Segment::AnswerEnd => {}
            }
        }
        Some(ids)
    }
}

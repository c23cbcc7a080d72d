//! Conversations to prompts: through the chat template, with structure and content kept apart.

mod guard;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use jiff::civil::Date;
use serde_json::{Value, json};

use crate::text::template::{ChatTemplate, TemplateError};
use crate::text::think::{self, Part};
use crate::text::tokenizer::Tokenizer;
use guard::{Guard, Segment};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A system message of the protocol, `/think` and `/system_override` included. What a user
    /// sets as instructions belongs in [`Conversation::instructions`].
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// One message of a conversation.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Who speaks.
    pub role: Role,
    /// What was said, without thinking.
    pub text: String,
    /// What the model thought before, without tags.
    pub thinking: Option<String>,
    /// The ids exactly as this model generated them, thinking included: they go into the prompt
    /// as they are, so that the cache of the last answer goes on.
    pub ids: Option<Vec<u32>>,
    /// A partial answer at the end of the conversation, to be continued.
    pub open: bool,
}

impl Turn {
    /// A complete message.
    #[must_use]
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            text: text.into(),
            thinking: None,
            ids: None,
            open: false,
        }
    }
}

/// Which earlier thinking stays in the prompt while thinking is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepThinking {
    /// All of it: every prompt extends the one before.
    #[default]
    All,
    /// That of the last answer, to save room.
    LastTurn,
}

/// A conversation as the model is to see it.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// The messages, oldest first.
    pub messages: Vec<Turn>,
    /// The user's own instructions, in place of the template's.
    pub instructions: Option<String>,
    /// Whether the model is to think first. Without, earlier thinking is left out.
    pub thinking: bool,
    /// The date that the template writes; the same for a whole chat.
    pub today: Date,
    /// Function schemas on offer.
    pub tools: Vec<Value>,
    /// Which earlier thinking stays.
    pub keep_thinking: KeepThinking,
}

/// How a template that opens the thinking itself ends a prompt.
const THINKING_OPENED: &str = "<think>\n";

/// What the model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Token ids.
    pub ids: Vec<u32>,
    /// The same as text, for people.
    pub text: String,
    /// What the first generated token belongs to: thinking where the prompt ends inside of it.
    pub starts_in: Part,
}

/// Why there is no prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// Nothing was said yet.
    #[error("the conversation is empty")]
    Empty,
    /// The template gave up.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// `cancel` was set.
    #[error("stopped")]
    Cancelled,
    /// The template leaves out or changes the answer that is to be continued.
    #[error("this model's chat template cannot continue an answer")]
    Continue,
}

impl Prompt {
    /// The prompt for the model's next words.
    ///
    /// # Errors
    /// When there are no messages, or the template refuses them.
    pub fn new(
        conversation: &Conversation,
        template: &ChatTemplate,
        tokenizer: &Tokenizer,
    ) -> Result<Self, PromptError> {
        Prompt::unless(conversation, template, tokenizer, &AtomicBool::new(false))
    }

    /// As [`Prompt::new`], looking at `cancel` while the render is split and encoded.
    ///
    /// # Errors
    /// As [`Prompt::new`], and when `cancel` was set.
    pub fn unless(
        conversation: &Conversation,
        template: &ChatTemplate,
        tokenizer: &Tokenizer,
        cancel: &AtomicBool,
    ) -> Result<Self, PromptError> {
        if conversation.messages.is_empty() {
            return Err(PromptError::Empty);
        }
        let draft = Draft {
            conversation,
            template,
            guard: Guard::new(tokenizer.specials()),
            tokenizer,
            cancel,
        };
        let answers = draft.answers();
        let offered: BTreeSet<usize> = answers
            .iter()
            .enumerate()
            .filter_map(|(i, ids)| ids.as_ref().map(|_| i))
            .collect();
        let mut segments = draft.segments(&offered)?;
        // A template that looks into answers may drop or repeat a place: then all go as text.
        if places(&segments) != offered.into_iter().collect::<Vec<_>>() {
            segments = draft.segments(&BTreeSet::new())?;
        }
        if draft.open().is_some() {
            let cut = segments.iter().position(|segment| *segment == Segment::Cut);
            segments.truncate(cut.ok_or(PromptError::Continue)?);
        }
        draft
            .assemble(&segments, &answers)
            .ok_or(PromptError::Cancelled)
    }
}

/// The answers that a render has places for, in order.
fn places(segments: &[Segment]) -> Vec<usize> {
    let place = |segment: &Segment| match segment {
        Segment::Place(index) => Some(*index),
        _ => None,
    };
    segments.iter().filter_map(place).collect()
}

/// A prompt in the making.
struct Draft<'a> {
    conversation: &'a Conversation,
    template: &'a ChatTemplate,
    tokenizer: &'a Tokenizer,
    guard: Guard<'a>,
    cancel: &'a AtomicBool,
}

impl Draft<'_> {
    /// Position of the answer to be continued.
    fn open(&self) -> Option<usize> {
        let last = self.conversation.messages.len().checked_sub(1)?;
        let turn = &self.conversation.messages[last];
        (turn.open && turn.role == Role::Assistant).then_some(last)
    }

    /// Whether the thinking of the answer at `index` stays.
    fn keeps_thinking(&self, index: usize) -> bool {
        let later = &self.conversation.messages[index + 1..];
        self.conversation.thinking
            && (self.conversation.keep_thinking == KeepThinking::All
                || later.iter().all(|turn| turn.role != Role::Assistant))
    }

    /// For each turn the ids that stand for it verbatim, where there are any.
    fn answers(&self) -> Vec<Option<Vec<u32>>> {
        let turns = self.conversation.messages.iter().enumerate();
        turns
            .map(|(index, turn)| {
                let ids = turn
                    .ids
                    .as_deref()
                    .filter(|_| turn.role == Role::Assistant)?;
                // The template writes the end of the turn itself.
                let ends = self.tokenizer.turn_ends();
                let kept = ids
                    .iter()
                    .rposition(|id| !ends.contains(id))
                    .map_or(0, |last| last + 1);
                let ids = &ids[..kept];
                // Such tokens are not generated any more, but older answers may hold them.
                let suppressed = self.tokenizer.suppressed();
                if ids
                    .iter()
                    .any(|id| ends.contains(id) || suppressed.binary_search(id).is_ok())
                {
                    return None;
                }
                let starts_in = self.started_in(turn, ids);
                if !self.keeps_thinking(index) {
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

    /// What the first token of an answer belongs to: thinking, where its prompt had opened that already.
    fn started_in(&self, turn: &Turn, ids: &[u32]) -> Part {
        let untagged = !ids.is_empty()
            && turn.text.is_empty()
            && (turn.thinking.is_some() || self.conversation.thinking);
        if think::closes_first(self.tokenizer, ids).unwrap_or(untagged) {
            Part::Thinking
        } else {
            Part::Answer
        }
    }

    /// Renders the conversation; the turns in `verbatim` leave a place for their ids.
    fn segments(&self, verbatim: &BTreeSet<usize>) -> Result<Vec<Segment>, PromptError> {
        let context = self.context(verbatim);
        let render = self.template.render(&context, self.conversation.today)?;
        self.guard
            .segments(&render, self.cancel)
            .ok_or(PromptError::Cancelled)
    }

    fn context(&self, verbatim: &BTreeSet<usize>) -> Value {
        let Conversation {
            messages,
            thinking,
            tools,
            ..
        } = self.conversation;
        let mut rendered: Vec<Value> = messages
            .iter()
            .enumerate()
            .map(|(index, turn)| {
                let (role, content) = match turn.role {
                    Role::System => ("system", self.guard.protocol(&turn.text)),
                    Role::User => ("user", self.guard.content(&turn.text)),
                    Role::Tool => ("tool", self.guard.content(&turn.text)),
                    Role::Assistant => ("assistant", self.answer(index, turn, verbatim)),
                };
                json!({"role": role, "content": content})
            })
            .collect();
        let [begin, end] = self.tokenizer.boundary_texts();
        let mut context = json!({
            "add_generation_prompt": self.open().is_none(),
            "enable_thinking": thinking,
            "bos_token": begin,
            "eos_token": end,
        });
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
        if !tools.is_empty() {
            let tools: Vec<Value> = tools.iter().map(|tool| self.guard.json(tool)).collect();
            context["xml_tools"] = tools.clone().into();
            context["tools"] = tools.into();
        }
        context["messages"] = rendered.into();
        context
    }

    /// The content of an answer: a place for its ids, or its thinking in tags and its text.
    fn answer(&self, index: usize, turn: &Turn, verbatim: &BTreeSet<usize>) -> String {
        let open = self.open() == Some(index);
        let mut content = if verbatim.contains(&index) {
            Guard::place(index)
        } else {
            let text = self.guard.content(turn.text.trim_start_matches('\n'));
            let thinking = turn
                .thinking
                .as_deref()
                .map(|thinking| thinking.trim_matches('\n'));
            match thinking.filter(|thinking| !thinking.is_empty() && self.keeps_thinking(index)) {
                Some(thinking) if open && text.is_empty() => {
                    format!("{}\n{}", think::OPEN, self.guard.content(thinking))
                }
                Some(thinking) => {
                    let thinking = self.guard.content(thinking);
                    format!("{}\n{thinking}\n{}\n{text}", think::OPEN, think::CLOSE)
                }
                None => text,
            }
        };
        if open {
            content.push_str(guard::CUT);
        }
        content
    }

    /// The prompt of these segments; `None` when `cancel` was set.
    fn assemble(&self, segments: &[Segment], answers: &[Option<Vec<u32>>]) -> Option<Prompt> {
        let (mut ids, mut text) = (Vec::new(), String::new());
        for segment in segments {
            match segment {
                Segment::Text(piece) => {
                    if !self.tokenizer.encode_unless(piece, &mut ids, self.cancel) {
                        return None;
                    }
                    text.push_str(piece);
                }
                Segment::Special(id) => {
                    ids.push(*id);
                    text.push_str(&self.tokenizer.decode(&[*id]));
                }
                Segment::Place(index) => {
                    let answer = answers
                        .get(*index)
                        .and_then(Option::as_deref)
                        .unwrap_or_default();
                    ids.extend_from_slice(answer);
                    text.push_str(&self.tokenizer.decode(answer));
                }
                Segment::Cut => {}
            }
        }
        if let Some(start) = self.tokenizer.prompt_start()
            && ids.first() != Some(&start)
        {
            ids.insert(0, start);
        }
        let starts_in = think::part_after(self.tokenizer, &ids);
        Some(Prompt {
            ids,
            text,
            starts_in,
        })
    }
}

//! Structure that the template writes around the messages of a prompt.

use std::sync::Arc;

use inference::{
    CodeTool, Content, Conversation, MessageFrame, PromptFrame, Role, ToolDefinition, Turn,
};
use jiff::civil::Date;
use serde_json::{Value, json};

use super::format::{NEVER, PromptError, PromptFormat};
use super::guard::{Guard, Segment};
use super::tools;
use crate::text::template::ChatTemplate;

/// Everything that determines a frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FrameKey {
    instructions: Option<String>,
    /// Text of a system message at the beginning.
    system: Option<String>,
    thinking: bool,
    today: Date,
    tools: Arc<[ToolDefinition]>,
}

impl FrameKey {
    pub fn of(conversation: &Conversation) -> FrameKey {
        let instructions = conversation.instructions.as_deref().map(str::trim_end);
        let first = conversation.messages.first();
        let system = first.filter(|turn| turn.role == Role::System);
        FrameKey {
            instructions: instructions
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
            system: system.map(|turn| turn.text.clone()),
            thinking: conversation.thinking,
            today: conversation.today,
            tools: Arc::clone(&conversation.tools),
        }
    }
}

/// Returns the messages after a system message at the beginning.
pub(super) fn after_system(messages: &[Turn]) -> &[Turn] {
    match messages {
        [first, rest @ ..] if first.role == Role::System => rest,
        all => all,
    }
}

/// Messages that are encoded together: one, or several of a role whose messages the template joins.
#[derive(Clone, Copy)]
pub(super) struct Unit<'a> {
    pub around: &'a MessageFrame,
    pub thinking: bool,
    pub code: Option<&'a CodeTool>,
    pub turns: &'a [Turn],
}

/// Divides messages into units, without those that the template leaves out.
pub(super) fn units<'a>(
    frame: &'a PromptFrame,
    turns: &'a [Turn],
) -> impl Iterator<Item = Unit<'a>> {
    let is_joined = |a: &Turn, b: &Turn| {
        let around = frame.around(a.role);
        a.role == b.role && around.is_some_and(|around| around.joint.is_some())
    };
    turns.chunk_by(is_joined).filter_map(|turns| {
        let around = frame.around(turns[0].role)?;
        Some(Unit {
            around,
            thinking: frame.thinking,
            code: frame.code.as_ref(),
            turns,
        })
    })
}

/// White space around a placeholder. It shows if the template trims or escapes content.
const PADDING: [&str; 2] = [" \n", "\n "];
const ESCAPED_PADDING: [&str; 2] = [" \\n", "\\n "];

/// A run of segments without placeholders.
type Run = Vec<Segment>;

fn divisible<T>(part: Option<T>) -> Result<T, PromptError> {
    part.ok_or(PromptError::Indivisible)
}

impl PromptFormat {
    pub(super) fn render_frame(&self, key: &FrameKey) -> Result<PromptFrame, PromptError> {
        use Role::{Assistant, System, Tool, User};
        let whole = divisible(self.runs(key, &[User], true)?)?;
        // Instructions and tools change only the head.
        let short = FrameKey {
            instructions: None,
            tools: Arc::default(),
            ..key.clone()
        };
        let users = divisible(self.runs(&short, &[User, User], false)?)?;
        let closing = &users[2];
        let opening = divisible(users[1].strip_prefix(closing.as_slice()))?;
        let head = divisible(whole[0].strip_suffix(opening))?;
        let tail = divisible(whole[1].strip_prefix(closing.as_slice()))?;
        let around = |roles: &[Role], joined: bool| {
            let Some(runs) = self.runs(&short, roles, false)? else {
                return Ok(None);
            };
            let before = divisible(runs[1].strip_prefix(closing.as_slice()))?;
            let mut after = runs[2 + usize::from(joined)].as_slice();
            if roles.ends_with(&[User]) {
                after = divisible(after.strip_suffix(opening))?;
            }
            let between = runs[2].as_slice();
            let joint = Some(between).filter(|_| joined && between != [after, before].concat());
            let joint = joint.map(|run| self.text(run));
            divisible(self.around(before, joint, after)).map(Some)
        };
        let mut head = self.ids(head);
        if let Some(start) = self.tokenizer.prompt_start()
            && head.first() != Some(&start)
        {
            head.insert(0, start);
        }
        Ok(PromptFrame {
            thinking: key.thinking,
            head,
            tail: self.ids(tail),
            user: divisible(around(&[User, User, User], false)?)?,
            answer: divisible(around(&[User, Assistant, User], false)?)?,
            continued: divisible(around(&[User, Assistant], false)?)?,
            system: around(&[User, System, User], false)?,
            tool: around(&[User, Tool, Tool, User], true)?,
            code: self.code_tool(&key.tools),
        })
    }

    /// Returns the frame of a message between these runs. `joint` is the text between two messages of its role.
    fn around(
        &self,
        before: &[Segment],
        joint: Option<String>,
        after: &[Segment],
    ) -> Option<MessageFrame> {
        let (before, opening) = match before {
            [special @ .., Segment::Text(text)] => (text.as_str(), special),
            special => ("", special),
        };
        let (after, closing) = match after {
            [Segment::Text(text), special @ ..] => (text.as_str(), special),
            special => ("", special),
        };
        let forms = [
            (Content::Verbatim, PADDING),
            (Content::Json, ESCAPED_PADDING),
            (Content::Trimmed, [""; 2]),
        ];
        forms.into_iter().find_map(|(content, [start, end])| {
            let before = before.strip_suffix(start)?;
            let after = after.strip_prefix(end)?;
            let joint = joint.as_deref();
            let joint = joint.and_then(|text| text.strip_prefix(end)?.strip_suffix(start));
            Some(MessageFrame {
                opening: self.ids(opening),
                before: before.to_owned(),
                after: after.to_owned(),
                closing: self.ids(closing),
                content,
                joint: joint.map(str::to_owned),
            })
        })
    }

    /// Returns the tool whose calls are programs without JSON.
    pub(super) fn code_tool(&self, tools: &[ToolDefinition]) -> Option<CodeTool> {
        let template = self.template.listing_tools();
        let runs_code = template.runs_code(tools);
        let tool = tools.iter().find(|tool| runs_code && tool.code.is_some())?;
        Some(CodeTool {
            name: tool.name.clone(),
            argument: tool.code.clone()?,
        })
    }

    /// Returns the text of structure.
    fn text(&self, run: &[Segment]) -> String {
        let texts = run.iter().map(|segment| match segment {
            Segment::Text(text) => text.clone(),
            Segment::Special(id) => self.tokenizer.decode(&[*id]),
            Segment::Placeholder(_) => String::new(),
        });
        texts.collect()
    }

    /// Returns the ids of structure.
    fn ids(&self, run: &[Segment]) -> Vec<u32> {
        let mut ids = Vec::new();
        for segment in run {
            match segment {
                Segment::Text(text) => self.tokenizer.encode_ordinary(text, &mut ids),
                Segment::Special(id) => ids.push(*id),
                Segment::Placeholder(_) => {}
            }
        }
        ids
    }

    /// Renders placeholders as messages of these roles, with the beginning of an answer if `answers`. Returns the runs
    /// before, between and behind them; `None` if the template leaves one out.
    fn runs(
        &self,
        key: &FrameKey,
        roles: &[Role],
        answers: bool,
    ) -> Result<Option<Vec<Run>>, PromptError> {
        let messages = roles.iter().enumerate().map(|(at, role)| {
            let content = [PADDING[0], &Guard::placeholder(at), PADDING[1]].concat();
            json!({"role": role.name(), "content": content})
        });
        let context = self.context(key, messages.collect(), answers);
        let render = self.template_of(key).render(&context, key.today)?;
        let segments = self.guard().segments(&render, &NEVER);
        let mut found = Vec::new();
        let mut runs = vec![Run::new()];
        for segment in segments.unwrap_or_default() {
            if let Segment::Placeholder(at) = segment {
                found.push(at);
                runs.push(Run::new());
            } else if let Some(run) = runs.last_mut() {
                run.push(segment);
            }
        }
        let is_whole = found.into_iter().eq(0..roles.len());
        Ok(is_whole.then_some(runs))
    }

    /// Returns the template of a conversation.
    pub(super) fn template_of(&self, key: &FrameKey) -> &ChatTemplate {
        if key.tools.is_empty() {
            &self.template
        } else {
            self.template.listing_tools()
        }
    }

    /// Returns the variables of the template for these messages. Instructions stand before a system message.
    pub(super) fn context(&self, key: &FrameKey, mut messages: Vec<Value>, answers: bool) -> Value {
        let [begin, end] = self.tokenizer.boundary_texts();
        let template = self.template_of(key);
        let capabilities = template.capabilities();
        let mut context = json!({
            "add_generation_prompt": answers,
            "bos_token": begin,
            "eos_token": end,
        });
        if capabilities.thinking {
            context["enable_thinking"] = key.thinking.into();
        }
        let guard = self.guard();
        let instructions = key.instructions.as_deref();
        let instructions = instructions.map(|text| guard.instructions(text));
        let system = key.system.as_deref().map(|text| guard.protocol(text));
        let system = match (instructions, system) {
            (Some(instructions), Some(system)) => Some(format!("{instructions}\n\n{system}")),
            (Some(instructions), None) if capabilities.instructions => {
                context["custom_instructions"] = instructions.into();
                None
            }
            (instructions, system) => instructions.or(system),
        };
        if let Some(system) = system {
            messages.insert(0, json!({"role": "system", "content": system}));
        }
        context["messages"] = messages.into();
        if !key.tools.is_empty() {
            tools::insert(&mut context, &key.tools, template, &guard);
        }
        context
    }
}

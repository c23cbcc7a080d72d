//! Encoding of a prompt message by message, so that one more message does not encode all others again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use inference::{Conversation, EncodedMessage, MessageFrame, Part, PromptFrame, Role, Turn};

use super::guard::{Guard, Segment};
use super::{PromptDraft, PromptError};
use crate::text::template::ChatTemplate;
use crate::text::think::{self, PartTracker};
use crate::text::tokenizer::Tokenizer;

/// Encodes messages as they appear in a prompt. Clones share the tokenizer, and any thread may use one.
#[derive(Clone)]
pub struct MessageEncoder {
    template: Arc<ChatTemplate>,
    tokenizer: Arc<Tokenizer>,
}

impl MessageEncoder {
    /// Makes an encoder with the template and the tokenizer of a model.
    #[must_use]
    pub fn new(template: Arc<ChatTemplate>, tokenizer: Arc<Tokenizer>) -> Self {
        Self {
            template,
            tokenizer,
        }
    }

    /// Returns the text that the template writes around the messages of `conversation`, whatever their content. Renders
    /// one short prompt.
    ///
    /// # Errors
    /// Fails if the template rejects it, or leaves a message out.
    pub fn frame(&self, conversation: &Conversation) -> Result<PromptFrame, PromptError> {
        const ROLES: [Role; 3] = [Role::User, Role::Assistant, Role::User];
        let probe = Conversation {
            messages: ROLES.map(|role| Turn::new(role, "x")).to_vec(),
            ..conversation.clone()
        };
        let draft = self.draft(&probe);
        let mut context = draft.context(&BTreeSet::new());
        if let Some(messages) = context["messages"].as_array_mut() {
            // The instructions may come before them.
            let first = messages.len() - ROLES.len();
            for (at, message) in messages[first..].iter_mut().enumerate() {
                message["content"] = Guard::placeholder(at).into();
            }
        }
        let render = self.template.render(&context, probe.today)?;
        let segments = draft.guard.segments(&render, &NEVER).unwrap_or_default();
        let mut around = segments.split(|segment| matches!(segment, Segment::Placeholder(_)));
        let parts = [(); 4].map(|()| around.next().unwrap_or_default());
        if super::placeholders(&segments) != [0, 1, 2] {
            return Err(PromptError::Continue);
        }
        let [head, to_answer, to_user, tail] = parts;
        let (_, head, before) = split(head, false);
        let (after_user, to_answer, before_answer) = split(to_answer, true);
        let (after_answer, to_user, _) = split(to_user, true);
        let (_, tail, rest) = split(tail, true);
        let ids = |segments: &[Segment]| draft.encoded(segments, &[]).unwrap_or_default();
        let mut tail = ids(tail);
        self.tokenizer.encode_ordinary(&rest, &mut tail);
        let mut head = ids(head);
        if let Some(start) = self.tokenizer.prompt_start()
            && head.first() != Some(&start)
        {
            head.insert(0, start);
        }
        Ok(PromptFrame {
            thinking: conversation.thinking,
            head,
            tail,
            user: MessageFrame {
                opening: ids(to_user),
                before,
                after: after_user,
            },
            answer: MessageFrame {
                opening: ids(to_answer),
                before: before_answer,
                after: after_answer,
            },
        })
    }

    /// A message in a prompt of this frame, without its opening.
    #[must_use]
    pub fn message(&self, frame: &PromptFrame, turn: &Turn) -> EncodedMessage {
        let around = match turn.role {
            Role::Assistant => &frame.answer,
            _ => &frame.user,
        };
        let alone = Conversation {
            messages: vec![turn.clone()],
            instructions: None,
            thinking: frame.thinking,
            today: jiff::civil::Date::MIN,
        };
        let draft = self.draft(&alone);
        let answers = draft.answer_ids();
        let verbatim = answers.iter().flatten().map(|_| 0).collect();
        let content = draft.content(0, turn, &verbatim);
        let text = [&around.before, &content, &around.after].map(String::as_str);
        let segments = draft.guard.segments(&text.concat(), &NEVER);
        let mut message = EncodedMessage::default();
        let mut is_thinking = false;
        for segment in segments.unwrap_or_default() {
            let ids = draft.encoded(std::slice::from_ref(&segment), &answers);
            let ids = ids.unwrap_or_default();
            message.thinking += match segment {
                Segment::Placeholder(_) => self.thinking_of(&ids),
                Segment::Special(id) => {
                    is_thinking = Some(id) == self.tokenizer.special(think::OPEN);
                    1
                }
                Segment::Text(_) if is_thinking => ids.len(),
                Segment::Text(_) | Segment::AnswerEnd => 0,
            };
            message.ids.extend(ids);
        }
        message
    }

    /// Number of the ids of a generated answer that are thinking, tags included.
    fn thinking_of(&self, ids: &[u32]) -> usize {
        let mut parts = PartTracker::new(&self.tokenizer, Part::Answer, false);
        let parts = ids.iter().map(|id| parts.part(*id));
        // The only control tokens of an answer are the tags.
        parts.filter(|part| *part != Part::Answer).count()
    }

    /// The number of tokens of a text.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.tokenizer.encode(text, false).len()
    }

    fn draft<'a>(&'a self, conversation: &'a Conversation) -> PromptDraft<'a> {
        PromptDraft {
            conversation,
            template: &self.template,
            guard: Guard::new(self.tokenizer.specials()),
            tokenizer: &self.tokenizer,
            cancel: &NEVER,
        }
    }
}

static NEVER: AtomicBool = AtomicBool::new(false);

/// Splits the structure between two messages: text that is encoded with the first one, if there is one, special tokens,
/// and text that is encoded with the second.
fn split(segments: &[Segment], behind_message: bool) -> (String, &[Segment], String) {
    let mut rest = segments;
    let mut after = String::new();
    if behind_message
        && let [Segment::Text(text), more @ ..] = rest
        && !more.is_empty()
    {
        (after, rest) = (text.clone(), more);
    }
    match rest {
        [between @ .., Segment::Text(text)] => (after, between, text.clone()),
        between => (after, between, String::new()),
    }
}

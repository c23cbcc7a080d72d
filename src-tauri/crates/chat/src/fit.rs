//! How a conversation that is too long for the context is cut.
//!
//! Everything that is cut makes the model read again from there on, so cutting is rare and goes
//! deep: past [`THINKING_SHARE`] of the context, the thinking of all answers but the last one goes
//! at once; past the context less room for an answer, the oldest turns go until the rest takes
//! [`KEPT_SHARE`]. What was cut for one answer stays cut for the next, as long as the whole is too
//! long.

use std::borrow::Cow;

use figures::{count, tokens};
use inference::{Conversation, GenerateParams, Prompt, Role, Turn};
use store::{MessageId, OmittedRow};

use crate::failure::{Failure, FailureCode};
use crate::model_host::ModelInfo;

/// The share of the context, in percent, from which on earlier thinking is left out.
const THINKING_SHARE: usize = 70;
/// The share that is left when turns are left out.
const KEPT_SHARE: usize = 60;
/// Tokens kept free for an answer whose length has no limit; at most a quarter of the context.
const RESERVED_TOKENS: usize = 1024;
/// Of these, what a continued answer gets at least, even when it has used them: this share of the
/// context, and no more than [`TOKENS_TO_CONTINUE`].
const SHARE_TO_CONTINUE: usize = 64;
const TOKENS_TO_CONTINUE: usize = 64;
/// A long history of more bytes a token than this is taken for too long without being counted.
const USUAL_TOKEN: usize = 16;

/// What a model can take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Tokens of context.
    pub context: usize,
    /// Bytes of the longest token.
    pub longest_token: usize,
    /// What helps where this is not enough.
    pub remedy: Remedy,
}

/// What a person can do about a context that is too short, beside asking for less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    LargerModel,
    LongerContext,
    Nothing,
}

impl Limits {
    pub fn of(info: &ModelInfo) -> Limits {
        Limits {
            context: info.context_length,
            longest_token: info.longest_token.max(1),
            remedy: if info.demo_model {
                Remedy::LargerModel
            } else if info.context_can_grow {
                Remedy::LongerContext
            } else {
                Remedy::Nothing
            },
        }
    }
}

/// What an answer is to be generated from: the whole conversation, and how.
pub(crate) struct TurnRequest {
    pub conversation: Conversation,
    pub params: GenerateParams,
    /// The id of each message of the conversation.
    pub ids: Vec<MessageId>,
    /// What the answer before this one left out.
    pub before: OmittedRow,
}

impl TurnRequest {
    /// Whether the last message is a partial answer to be continued.
    fn resumes(&self) -> bool {
        self.conversation
            .messages
            .last()
            .is_some_and(|turn| turn.open)
    }
}

/// What was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Truncation(pub OmittedRow);

/// Where the history begins, and where its thinking begins: indices into the whole history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cut {
    messages: usize,
    thinking: usize,
}

/// Prompts of one conversation after different cuts, each of which is made once.
struct Prompts<'a> {
    conversation: &'a Conversation,
    limits: Limits,
    make: &'a mut dyn FnMut(&Conversation) -> Result<Prompt, Failure>,
    made: Vec<(Cut, Prompt)>,
}

impl Prompts<'_> {
    /// Tokens of the prompt after this cut, or a lower bound where even that exceeds the context: to
    /// tokenize so much would take long.
    fn tokens(&mut self, cut: Cut) -> Result<usize, Failure> {
        if let Some((_, prompt)) = self.made.iter().find(|(of, _)| *of == cut) {
            return Ok(prompt.ids.len());
        }
        let conversation = apply(self.conversation, cut);
        let least = least_tokens(&conversation, self.limits);
        if least > self.limits.context {
            return Ok(least);
        }
        let prompt = (self.make)(&conversation)?;
        let tokens = prompt.ids.len();
        self.made.push((cut, prompt));
        Ok(tokens)
    }

    /// Tokens of the answer that is continued.
    fn tokens_of_partial(&mut self) -> Result<usize, Failure> {
        let Some((partial, before)) = self.conversation.messages.split_last() else {
            return Ok(0);
        };
        if let Some(ids) = &partial.ids {
            return Ok(ids.len());
        }
        let without = Conversation {
            messages: before.to_vec(),
            ..without_messages(self.conversation)
        };
        let whole = self.tokens(Cut::default())?;
        let before = match least_tokens(&without, self.limits) {
            least if least > self.limits.context => least,
            _ => (self.make)(&without)?.ids.len(),
        };
        Ok(whole.saturating_sub(before))
    }

    /// The prompt after this cut.
    fn take(mut self, cut: Cut) -> Result<Prompt, Failure> {
        match self.made.iter().position(|(of, _)| *of == cut) {
            Some(at) => Ok(self.made.swap_remove(at).1),
            None => (self.make)(&apply(self.conversation, cut)),
        }
    }
}

/// The prompt of a request whose conversation is cut as little as the context allows. `make` is called once for each
/// cut that is tried, and not again for the one that fits.
pub(crate) fn fit(
    request: &TurnRequest,
    limits: Limits,
    make: &mut dyn FnMut(&Conversation) -> Result<Prompt, Failure>,
) -> Result<(Prompt, Truncation), Failure> {
    let TurnRequest {
        conversation,
        ids,
        before,
        ..
    } = request;
    let mut prompts = Prompts {
        conversation,
        limits,
        make,
        made: Vec::new(),
    };
    let context = limits.context;
    let limit = context - reserved(request, context, &mut prompts)?;
    let comfortable = (context * THINKING_SHARE / 100).min(limit);
    let history = &conversation.messages;

    let mut cut = Cut::default();
    let mut tokens = if history.len() > 2 && bytes(conversation) > context * USUAL_TOKEN {
        usize::MAX
    } else {
        prompts.tokens(cut)?
    };
    if tokens > comfortable {
        let index = |id: Option<MessageId>| {
            id.and_then(|id| ids.iter().position(|other| *other == id))
                .unwrap_or(0)
        };
        cut = Cut {
            messages: index(before.kept_from),
            thinking: index(before.thinking_from),
        };
        if cut != Cut::default() {
            tokens = prompts.tokens(cut)?;
        }
    }
    if tokens > comfortable {
        let last_answer = history
            .iter()
            .rposition(|message| message.role == Role::Assistant)
            .unwrap_or(0);
        let thinks = |message: &Turn| message.thinking.is_some();
        if history[cut.thinking.min(last_answer)..last_answer]
            .iter()
            .any(thinks)
        {
            cut.thinking = last_answer;
            tokens = prompts.tokens(cut)?;
        }
    }
    if tokens > limit {
        cut.messages = oldest_kept(history, cut, context * KEPT_SHARE / 100, &mut prompts)?;
        tokens = prompts.tokens(cut)?;
    }
    if tokens > limit {
        return Err(if request.resumes() {
            answer_full(limits)
        } else {
            let counted = least_tokens(&apply(conversation, cut), limits) <= context;
            too_long(tokens, counted, limit, limits.remedy)
        });
    }
    let truncation = Truncation(omitted(request, cut));
    Ok((prompts.take(cut)?, truncation))
}

/// The tokens kept free for what is to be written. An answer that is continued has used some.
fn reserved(
    request: &TurnRequest,
    context: usize,
    prompts: &mut Prompts<'_>,
) -> Result<usize, Failure> {
    let most = request.params.max_tokens.unwrap_or(RESERVED_TOKENS);
    let reserved = most.min(context / 4);
    if !request.resumes() {
        return Ok(reserved);
    }
    let written = prompts.tokens_of_partial()?;
    let least = (context / SHARE_TO_CONTINUE).clamp(1, TOKENS_TO_CONTINUE);
    Ok(reserved.saturating_sub(written).max(least.min(reserved)))
}

/// The first turn from which on all the rest has at most `target` tokens, or else the last turn.
fn oldest_kept(
    history: &[Turn],
    cut: Cut,
    target: usize,
    prompts: &mut Prompts<'_>,
) -> Result<usize, Failure> {
    let users = history
        .iter()
        .enumerate()
        .skip(cut.messages)
        .filter(|(_, message)| message.role == Role::User);
    let starts: Vec<usize> = users.map(|(at, _)| at).collect();
    let (mut low, mut high) = (0, starts.len().saturating_sub(1));
    while low < high {
        let middle = (low + high) / 2;
        let messages = starts[middle];
        if prompts.tokens(Cut { messages, ..cut })? <= target {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(starts.get(low).copied().unwrap_or(cut.messages))
}

/// No text has fewer tokens than this.
fn least_tokens(conversation: &Conversation, limits: Limits) -> usize {
    bytes(conversation) / limits.longest_token
}

fn bytes(conversation: &Conversation) -> usize {
    let bytes =
        |message: &Turn| message.text.len() + message.thinking.as_ref().map_or(0, String::len);
    let instructions = conversation.instructions.as_ref().map_or(0, String::len);
    instructions + conversation.messages.iter().map(bytes).sum::<usize>()
}

/// The conversation after this cut: the same one where nothing is cut, else a copy of what is kept.
fn apply(conversation: &Conversation, cut: Cut) -> Cow<'_, Conversation> {
    if cut == Cut::default() {
        return Cow::Borrowed(conversation);
    }
    let kept = conversation.messages.iter().enumerate().skip(cut.messages);
    let messages = kept.map(|(at, turn)| match &turn.thinking {
        Some(_) if at < cut.thinking => Turn {
            // The ids hold the thinking too.
            ids: None,
            thinking: None,
            text: turn.text.clone(),
            ..*turn
        },
        _ => turn.clone(),
    });
    Cow::Owned(Conversation {
        messages: messages.collect(),
        ..without_messages(conversation)
    })
}

fn without_messages(conversation: &Conversation) -> Conversation {
    Conversation {
        messages: Vec::new(),
        instructions: conversation.instructions.clone(),
        thinking: conversation.thinking,
        today: conversation.today,
        tools: conversation.tools.clone(),
    }
}

fn omitted(request: &TurnRequest, cut: Cut) -> OmittedRow {
    let history = &request.conversation.messages;
    let without = history.get(cut.messages..cut.thinking).unwrap_or_default();
    let id = |at: usize| {
        if at == 0 {
            None
        } else {
            request.ids.get(at).copied()
        }
    };
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    OmittedRow {
        kept_from: id(cut.messages),
        thinking_from: id(cut.thinking),
        messages: count(cut.messages),
        thinking: count(
            without
                .iter()
                .filter(|message| message.thinking.is_some())
                .count(),
        ),
    }
}

fn too_long(needed: usize, counted: bool, limit: usize, remedy: Remedy) -> Failure {
    let needed = match needed {
        _ if !counted => format!("at least {}", tokens(needed)),
        0..10_000 => tokens(needed),
        _ => format!("about {}", tokens((needed + 500) / 1000 * 1000)),
    };
    let advice = match remedy {
        Remedy::LargerModel => "Shorten it, or open a larger model.",
        Remedy::LongerContext => "Shorten it, or choose a larger context in the settings.",
        Remedy::Nothing => "Shorten it.",
    };
    Failure::new(
        FailureCode::TooLong,
        format!(
            "This message is too long: {needed}, and this model has room for {}. {advice}",
            count(limit)
        ),
    )
}

fn answer_full(limits: Limits) -> Failure {
    let advice = match limits.remedy {
        Remedy::LargerModel => "Ask for a part of it, or open a larger model.",
        Remedy::LongerContext => {
            "Ask for a part of it, or choose a larger context in the settings."
        }
        Remedy::Nothing => "Ask for a part of it.",
    };
    Failure::new(
        FailureCode::AnswerFull,
        format!(
            "The question and this answer fill the model’s context of {}, so the answer cannot go on. {advice}",
            tokens(limits.context)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_message_too_long_names_what_helps() {
        let said = |needed, counted, remedy| too_long(needed, counted, 1_536, remedy).message;
        assert_eq!(
            said(259_166, true, Remedy::LargerModel),
            "This message is too long: about 259,000 tokens, and this model has room for 1,536. \
             Shorten it, or open a larger model."
        );
        assert_eq!(
            said(1_600, true, Remedy::LongerContext),
            "This message is too long: 1,600 tokens, and this model has room for 1,536. \
             Shorten it, or choose a larger context in the settings."
        );
        assert_eq!(
            said(40_000, false, Remedy::Nothing),
            "This message is too long: at least 40,000 tokens, and this model has room for 1,536. Shorten it."
        );
    }

    #[test]
    fn a_larger_context_is_advised_only_where_there_is_one() {
        let said = |remedy| {
            let limits = Limits {
                context: 32_768,
                longest_token: 8,
                remedy,
            };
            answer_full(limits).message
        };
        let full = "The question and this answer fill the model’s context of 32,768 tokens, so the answer cannot go on. Ask for a part of it";
        assert_eq!(said(Remedy::Nothing), format!("{full}."));
        assert_eq!(
            said(Remedy::LargerModel),
            format!("{full}, or open a larger model.")
        );
        assert_eq!(
            said(Remedy::LongerContext),
            format!("{full}, or choose a larger context in the settings.")
        );
    }
}

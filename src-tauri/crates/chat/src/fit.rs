//! Truncation of a conversation that is too long for the context.
//!
//! Every cut makes the model evaluate again from there on, so cuts are rare and deep: past 70 % of the context, the
//! thinking of all answers but the last goes at once; past the context less the tokens reserved for an answer, the
//! oldest turns go until the rest takes 60 % ([`cut`]). A cut that was made for one answer stays for the next, as long
//! as the whole is too long, or until the user asks for the whole.

pub(crate) mod cut;

use std::borrow::Cow;

use figures::{count, tokens};
use inference::{Conversation, GenerateParams, Prompt, Role, Turn};
use store::{MessageId, OmittedRow};

use crate::failure::{Failure, FailureCode};
use crate::model_host::ModelInfo;
use cut::{Cut, CutTurn, Room};

/// Tokens reserved for an answer of unlimited length; at most a quarter of the context.
const RESERVED_TOKENS: usize = 1024;
/// Reserve that a continued answer keeps even when it has used more: this share of the context, and no more than
/// [`TOKENS_TO_CONTINUE`].
const SHARE_TO_CONTINUE: usize = 64;
const TOKENS_TO_CONTINUE: usize = 64;
/// Bytes a token above which a long history counts as too long without being counted.
const USUAL_TOKEN: usize = 16;

/// Limits of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Tokens of context.
    pub context: usize,
    /// Bytes of the longest token.
    pub longest_token: usize,
    /// Remedy for a context that is too small.
    pub remedy: Remedy,
}

/// Remedies for a context that is too short, beside a shorter message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    LargerModel,
    LongerContext,
    Nothing,
}

impl Limits {
    pub(crate) fn of(info: &ModelInfo) -> Limits {
        Limits {
            context: info.context_length,
            longest_token: info.longest_token.max(1),
            remedy: if info.bundled_model {
                Remedy::LargerModel
            } else if info.context_can_grow {
                Remedy::LongerContext
            } else {
                Remedy::Nothing
            },
        }
    }
}

/// Input of an answer: the whole conversation, and its parameters.
pub(crate) struct TurnRequest {
    pub conversation: Conversation,
    pub params: GenerateParams,
    /// The id of each message of the conversation.
    pub ids: Vec<MessageId>,
    /// Messages and thinking that the answer before this one left out.
    pub before: OmittedRow,
    /// True if nothing is left out before it has to be.
    pub whole: bool,
    /// Number of leading messages that belong to a chat to be summarized.
    pub summed_up: usize,
}

impl TurnRequest {
    /// Returns whether the last message is a part of the answer: its beginning, or the result of its last call.
    fn is_within_answer(&self) -> bool {
        let last = self.conversation.messages.last();
        self.resumes() || last.is_some_and(|last| last.role == Role::Tool)
    }

    /// Returns whether the last message is a partial answer to be continued.
    fn resumes(&self) -> bool {
        let begun = |turn: &Turn| {
            let thought = turn.thinking.as_ref().is_some_and(|text| !text.is_empty());
            turn.open && (thought || !turn.text.is_empty() || !turn.calls.is_empty())
        };
        self.conversation.messages.last().is_some_and(begun)
    }
}

/// Messages and thinking that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Truncation(pub OmittedRow);

/// Prompts of one conversation after different cuts, each rendered once.
struct Prompts<'a> {
    conversation: &'a Conversation,
    limits: Limits,
    make: &'a mut dyn FnMut(&Conversation) -> Result<Prompt, Failure>,
    made: Vec<(Cut, Prompt)>,
}

impl Prompts<'_> {
    /// Returns the tokens of the prompt after this cut, or a lower bound if that already exceeds the context:
    /// tokenizing so much would take long.
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

    /// Returns the tokens of the answer that is continued.
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

    /// Returns the tokens of the prompt around a single message, or a lower bound if that already exceeds the context.
    fn tokens_of_frame(&mut self) -> Result<usize, Failure> {
        let frame = Conversation {
            messages: vec![Turn::new(Role::User, "")],
            ..without_messages(self.conversation)
        };
        match least_tokens(&frame, self.limits) {
            least if least > self.limits.context => Ok(least),
            _ => Ok((self.make)(&frame)?.ids.len()),
        }
    }

    /// Returns the prompt after this cut.
    fn take(mut self, cut: Cut) -> Result<Prompt, Failure> {
        match self.made.iter().position(|(of, _)| *of == cut) {
            Some(at) => Ok(self.made.swap_remove(at).1),
            None => (self.make)(&apply(self.conversation, cut)),
        }
    }
}

/// Fits a request into the context, cutting its conversation as little as possible. `make` is called once for each cut
/// that is tried, and not again for the one that fits.
pub(crate) fn fit(
    request: &TurnRequest,
    limits: Limits,
    make: &mut dyn FnMut(&Conversation) -> Result<Prompt, Failure>,
) -> Result<(Prompt, Truncation), Failure> {
    let conversation = &request.conversation;
    let mut prompts = Prompts {
        conversation,
        limits,
        make,
        made: Vec::new(),
    };
    let context = limits.context;
    let limit = context - reserved(request, context, &mut prompts)?;
    let history: Vec<CutTurn> = conversation.messages.iter().map(CutTurn::from).collect();
    let before = cut_of(&request.before, &request.ids);
    // The whole is then not counted before the rest was tried.
    let mut hopeless = history.len() > 2 && bytes(conversation) > context * USUAL_TOKEN;
    let room = Room {
        context,
        limit,
        whole: request.whole,
    };
    let (cut, tokens) = cut::choose(&history, before, room, &mut |cut| {
        if std::mem::take(&mut hopeless) {
            return Ok(usize::MAX);
        }
        prompts.tokens(cut)
    })?;
    if request.summed_up > 0 && cut.messages >= request.summed_up {
        return Err(nothing_summed_up(limits.remedy));
    }
    if tokens > limit {
        return Err(if request.is_within_answer() {
            answer_full(limits)
        } else {
            let counted = least_tokens(&apply(conversation, cut), limits) <= context;
            let frame = prompts.tokens_of_frame()?;
            let needed = counted.then(|| tokens.saturating_sub(frame));
            too_long(needed, limit.saturating_sub(frame), limits.remedy)
        });
    }
    let truncation = Truncation(omitted(request, cut));
    Ok((prompts.take(cut)?, truncation))
}

/// Returns the cut of the messages with these ids that left this out.
pub(crate) fn cut_of(omitted: &OmittedRow, ids: &[MessageId]) -> Cut {
    let index = |id: Option<MessageId>| {
        id.and_then(|id| ids.iter().position(|other| *other == id))
            .unwrap_or(0)
    };
    Cut {
        messages: index(omitted.kept_from),
        thinking: index(omitted.thinking_from),
    }
}

/// Returns the tokens reserved for a new answer.
pub(crate) fn reserved_for_answer(max_tokens: Option<usize>, context: usize) -> usize {
    max_tokens.unwrap_or(RESERVED_TOKENS).min(context / 4)
}

/// Returns the tokens reserved for the text to come. A continued answer has used some.
fn reserved(
    request: &TurnRequest,
    context: usize,
    prompts: &mut Prompts<'_>,
) -> Result<usize, Failure> {
    let reserved = reserved_for_answer(request.params.max_tokens, context);
    if request.summed_up > 0 {
        // The shorter the summary, the more of the chat it can cover.
        return Ok(reserved / 2);
    }
    if !request.resumes() {
        return Ok(reserved);
    }
    let written = prompts.tokens_of_partial()?;
    let least = (context / SHARE_TO_CONTINUE).clamp(1, TOKENS_TO_CONTINUE);
    Ok(reserved.saturating_sub(written).max(least.min(reserved)))
}

/// Returns a lower bound of the tokens of a conversation.
fn least_tokens(conversation: &Conversation, limits: Limits) -> usize {
    bytes(conversation) / limits.longest_token
}

fn bytes(conversation: &Conversation) -> usize {
    let bytes = |message: &Turn| {
        let calls = message.calls.iter().map(|call| call.arguments.len());
        let thinking = message.thinking.as_ref().map_or(0, String::len);
        message.text.len() + thinking + calls.sum::<usize>()
    };
    let instructions = conversation.instructions.as_ref().map_or(0, String::len);
    instructions + conversation.messages.iter().map(bytes).sum::<usize>()
}

/// Returns the conversation after this cut: borrowed if nothing is cut, else a copy of the rest.
fn apply(conversation: &Conversation, cut: Cut) -> Cow<'_, Conversation> {
    if cut == Cut::default() {
        return Cow::Borrowed(conversation);
    }
    let kept = conversation.messages.iter().enumerate().skip(cut.messages);
    let messages = kept.map(|(at, turn)| match &turn.thinking {
        Some(_) if at < cut.thinking => turn.without_thinking(),
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
        tools: conversation.tools.clone(),
        today: conversation.today,
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
    // An answer with calls is several turns.
    let mut messages = request.ids[..cut.messages.min(request.ids.len())].to_vec();
    messages.dedup();
    OmittedRow {
        kept_from: id(cut.messages),
        thinking_from: id(cut.thinking),
        messages: count(messages.len()),
        thinking: count(
            without
                .iter()
                .filter(|message| message.thinking.is_some())
                .count(),
        ),
    }
}

/// Makes the failure of a message that is too long, in the numbers of the page (`ContextUsage::message_room`). `needed`:
/// tokens of the message; `None` if they were not counted.
fn too_long(needed: Option<usize>, room: usize, remedy: Remedy) -> Failure {
    let numbers = match needed {
        Some(needed) => format!("{}, with room for {}", tokens(needed), count(room)),
        None => format!("this model has room for {}", tokens(room)),
    };
    let advice = match remedy {
        Remedy::LargerModel => "Shorten it, or open a larger model.",
        Remedy::LongerContext => "Shorten it, or choose a larger context.",
        Remedy::Nothing => "Shorten it.",
    };
    Failure::new(
        FailureCode::TooLong,
        format!("This message is too long: {numbers}. {advice}"),
    )
}

fn nothing_summed_up(remedy: Remedy) -> Failure {
    let advice = match remedy {
        Remedy::LargerModel => " Open a larger model first.",
        Remedy::LongerContext => " Choose a larger context first.",
        Remedy::Nothing => "",
    };
    Failure::new(
        FailureCode::Other,
        format!(
            "The last question of that chat and its answer are longer than this model can read, so it cannot sum \
             them up.{advice}"
        ),
    )
}

fn answer_full(limits: Limits) -> Failure {
    let advice = match limits.remedy {
        Remedy::LargerModel => "Ask for a part of it, or open a larger model.",
        Remedy::LongerContext => "Ask for a part of it, or choose a larger context.",
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
        let said = |needed, remedy| too_long(needed, 1_475, remedy).message;
        assert_eq!(
            said(Some(288_900), Remedy::LargerModel),
            "This message is too long: 288,900 tokens, with room for 1,475. Shorten it, or open a larger model."
        );
        assert_eq!(
            said(Some(1_600), Remedy::LongerContext),
            "This message is too long: 1,600 tokens, with room for 1,475. \
             Shorten it, or choose a larger context."
        );
        assert_eq!(
            said(None, Remedy::Nothing),
            "This message is too long: this model has room for 1,475 tokens. Shorten it."
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
            format!("{full}, or choose a larger context.")
        );
    }
}

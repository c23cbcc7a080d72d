//! Events and results of a generation.

use serde::{Deserialize, Serialize};

use crate::prompt::TokenKind;

/// Events of a generation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event<'a> {
    /// The prompt is being read.
    Prefill {
        /// Tokens in the cache.
        done: usize,
        /// Tokens in the prompt.
        total: usize,
        /// Tokens that were in the cache already.
        cached: usize,
    },
    /// The log-probability of the next token that is reported, if [`logprobs`](crate::GenerateParams::logprobs) are
    /// wanted. Several may come before their tokens, in the same order.
    Logprobs {
        /// Id of the token.
        id: u32,
        /// Natural logarithm of its probability, by the model alone.
        logprob: f32,
        /// The likeliest tokens, the likeliest first.
        top: &'a [(u32, f32)],
    },
    /// A token was generated. The token that ends the turn is not reported.
    Token {
        /// Its id.
        id: u32,
        /// The text that is complete with it: whole characters, sometimes none.
        piece: &'a str,
        /// Its kind.
        kind: TokenKind,
    },
    /// A call is complete with the last token.
    Call {
        /// Name of the tool.
        name: &'a str,
        /// Its arguments, as a JSON object.
        arguments: &'a str,
    },
}

/// Reasons for the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended its turn.
    EndOfTurn,
    /// [`max_tokens`](crate::GenerateParams::max_tokens) were generated.
    MaxTokens,
    /// The context is full.
    ContextFull,
    /// The answer repeated itself.
    Repetition,
    /// The cancel flag was set.
    Cancelled,
}

/// Reasons for ending the thinking of an answer before the model did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingCut {
    /// It had [`thinking_budget`](crate::GenerateParams::thinking_budget) tokens.
    Budget,
    /// [`answer_now`](crate::Signals::answer_now) was set.
    AnswerNow,
}

/// Figures of an answer; if it was continued, those of its last part.
///
/// Stored and sent in camel case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Tokens in the prompt.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub prompt_tokens: usize,
    /// Prompt tokens found in the cache.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub cached_tokens: usize,
    /// Tokens generated.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub tokens: usize,
    /// Generated tokens that are thinking.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub thinking_tokens: usize,
    /// Reason for ending the thinking early; `None` if the model ended it, or did not think.
    pub thinking_cut: Option<ThinkingCut>,
    /// True if it was stopped because it repeated itself.
    #[serde(default)]
    pub repeated: bool,
    /// True if other requests were evaluated in the same passes, which slows it down.
    #[serde(default)]
    pub shared: bool,
    /// Time from the start to the first token, in milliseconds.
    pub first_token_ms: f64,
    /// Tokens generated per second, the first one not counted.
    pub tokens_per_second: f64,
    /// Tokens of the prompt read per second, those in the cache not counted.
    pub read_per_second: f64,
    /// Tokens drafted by prompt lookup.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub drafted_tokens: usize,
    /// Drafted tokens that the model accepted.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub accepted_tokens: usize,
    /// Seed that reproduces this answer.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub seed: u64,
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Reason for the end.
    pub reason: StopReason,
    /// Its figures.
    pub stats: Stats,
}

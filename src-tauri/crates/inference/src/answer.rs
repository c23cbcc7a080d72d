//! What comes of a prompt.

use serde::{Deserialize, Serialize};

use crate::prompt::Part;

/// What happens while an answer is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// A token was generated. The token that ends the turn is not reported.
    Token {
        /// Its id.
        id: u32,
        /// The text that is complete with it: whole characters, sometimes none.
        piece: &'a str,
        /// What the token belongs to.
        part: Part,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended its turn.
    EndOfTurn,
    /// [`max_tokens`](crate::GenerateParams::max_tokens) were generated.
    MaxTokens,
    /// The context is full.
    ContextFull,
    /// The cancel flag was set.
    Cancelled,
}

/// Why the thinking of an answer was ended before the model ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingCut {
    /// It had [`thinking_budget`](crate::GenerateParams::thinking_budget) tokens.
    Budget,
    /// [`answer_now`](crate::Signals::answer_now) was set.
    AnswerNow,
}

/// The figures of an answer; of one that was continued, those of its last part.
///
/// Stored and sent in camel case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Tokens in the prompt.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub prompt_tokens: usize,
    /// Of these, tokens that were in the cache already.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub cached_tokens: usize,
    /// Tokens generated.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub tokens: usize,
    /// Of these, tokens of thinking.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub thinking_tokens: usize,
    /// Why the thinking was ended; `None`: the model ended it, or did not think.
    pub thinking_cut: Option<ThinkingCut>,
    /// Time from the start to the first token, in milliseconds.
    pub first_token_ms: f64,
    /// Tokens generated per second, the first one not counted.
    pub tokens_per_second: f64,
    /// Tokens of the prompt read per second, those in the cache not counted.
    pub read_per_second: f64,
    /// Tokens drafted by prompt lookup.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub drafted_tokens: usize,
    /// Of these, tokens that the model accepted.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub accepted_tokens: usize,
    /// The seed that gives this answer again.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub seed: u64,
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Why it ended.
    pub reason: StopReason,
    /// Its figures.
    pub stats: Stats,
}

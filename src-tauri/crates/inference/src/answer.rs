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

/// The figures of an answer; of one that was continued, those of its last part.
///
/// Stored and sent in camel case; earlier versions stored the names of the fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Tokens in the prompt.
    #[serde(alias = "prompt_tokens")]
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub prompt_tokens: usize,
    /// Of these, tokens that were in the cache already.
    #[serde(alias = "cached_tokens")]
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub cached_tokens: usize,
    /// Tokens generated.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub tokens: usize,
    /// Of these, tokens of thinking.
    #[serde(alias = "thinking_tokens")]
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub thinking_tokens: usize,
    /// Time from the start to the first token, in milliseconds.
    #[serde(alias = "first_token_ms")]
    pub first_token_ms: f64,
    /// Tokens generated per second, the first one not counted.
    #[serde(alias = "tokens_per_second")]
    pub tokens_per_second: f64,
    /// Tokens of the prompt read per second, those in the cache not counted.
    #[serde(alias = "read_per_second")]
    pub read_per_second: f64,
    /// Tokens drafted by prompt lookup.
    #[serde(default, alias = "drafted_tokens")]
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub drafted_tokens: usize,
    /// Of these, tokens that the model accepted.
    #[serde(default, alias = "accepted_tokens")]
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_that_an_earlier_version_stored_are_read() {
        let stored = json!({
            "prompt_tokens": 101, "cached_tokens": 40, "tokens": 23, "thinking_tokens": 7, "first_token_ms": 1235,
            "tokens_per_second": 16.25, "read_per_second": 84.5, "seed": 77, "model": "m", "device": "d",
        });
        let stats = Stats {
            prompt_tokens: 101,
            cached_tokens: 40,
            tokens: 23,
            thinking_tokens: 7,
            first_token_ms: 1235.0,
            tokens_per_second: 16.25,
            read_per_second: 84.5,
            drafted_tokens: 0,
            accepted_tokens: 0,
            seed: 77,
        };
        assert_eq!(
            serde_json::from_value::<Stats>(stored).expect("it is read"),
            stats
        );
        let written = serde_json::to_value(&stats).expect("plain data");
        assert_eq!(written["firstTokenMs"], 1235.0);
        assert_eq!(
            serde_json::from_value::<Stats>(written).expect("it is read"),
            stats
        );
    }
}

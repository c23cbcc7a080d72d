//! Parameters of an answer.

use serde::{Deserialize, Serialize};

use crate::MIN_TEMPERATURE;
use crate::tool::Constraint;

/// Sampling parameters. The defaults are those that SmolLM3's makers recommend, for models whose file gives none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Sampling {
    /// Flattens (above 1) or sharpens the distribution; 0, and all below [`MIN_TEMPERATURE`], always takes the likeliest
    /// token.
    pub temperature: f32,
    /// Keeps this many of the likeliest tokens; 0 keeps all.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub top_k: usize,
    /// Keeps the likeliest tokens that together have this probability; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this likely relative to the likeliest; 0 keeps all.
    pub min_p: f32,
    /// Divides the logits of recent tokens (multiplies negative ones); 1 for none.
    pub repeat_penalty: f32,
    /// Number of recent tokens that the penalty covers.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub repeat_last_n: usize,
    /// Seed that makes answers repeatable; `None` draws a new one for each answer.
    #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
    pub seed: Option<u64>,
}

/// Sampling that a model is used with where the user sets none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct SamplingDefaults {
    /// For answers that begin with a thinking.
    pub with_thinking: Sampling,
    /// For the others.
    pub without_thinking: Sampling,
}

impl SamplingDefaults {
    /// Returns the one for answers with thinking or without.
    #[must_use]
    pub fn of(&self, thinking: bool) -> &Sampling {
        if thinking {
            &self.with_thinking
        } else {
            &self.without_thinking
        }
    }
}

impl From<Sampling> for SamplingDefaults {
    /// Makes those of a model for which thinking does not matter.
    fn from(sampling: Sampling) -> Self {
        Self {
            with_thinking: sampling.clone(),
            without_thinking: sampling,
        }
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            temperature: 0.6,
            top_k: 0,
            top_p: 0.95,
            min_p: 0.0,
            repeat_penalty: 1.0,
            repeat_last_n: 64,
            seed: None,
        }
    }
}

impl Sampling {
    /// Returns whether the likeliest token is always taken.
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.temperature.is_nan() || self.temperature < MIN_TEMPERATURE
    }

    /// Returns whether recent tokens are made less likely.
    #[must_use]
    pub fn penalises(&self) -> bool {
        #[expect(clippy::float_cmp, reason = "exactly 1 means none")]
        let none = self.repeat_penalty == 1.0;
        !none && self.repeat_penalty > 0.0
    }
}

/// Storage types of keys and values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "snake_case")]
pub enum KvType {
    /// Exact, for measurements; not a setting.
    #[serde(skip)]
    F32,
    /// Half precision.
    #[default]
    F16,
    /// 8-bit integers, with an f16 scale for every 32 values: about half the memory.
    Q8_0,
}

impl KvType {
    /// Returns the name as ggml writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            KvType::F32 => "f32",
            KvType::F16 => "f16",
            KvType::Q8_0 => "q8_0",
        }
    }
}

/// Parameters of a generation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GenerateParams {
    /// Sampling parameters.
    pub sampling: Sampling,
    /// Maximum tokens to generate; `None` leaves it to the context.
    pub max_tokens: Option<usize>,
    /// Maximum tokens of thinking before the answer begins; `None` leaves it to the model.
    pub thinking_budget: Option<usize>,
    /// True if the first token may not end the turn: a complete answer is continued.
    pub goes_on: bool,
    /// Speculative decoding by prompt lookup: text that repeats the context is drafted from it and verified several
    /// tokens at once, where measurement shows a gain. The answer is the same either way.
    pub lookup: bool,
    /// True if an answer that repeats itself is stopped.
    pub stops_repetition: bool,
    /// Number of the likeliest tokens that are reported with the log-probability of each token; `None` reports nothing.
    pub logprobs: Option<usize>,
    /// Limit of the form; `None` if the answer is free, and calls in it are text.
    pub constraint: Option<Constraint>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_types_of_the_settings_are_written_as_ggml_writes_them() {
        for ty in [KvType::F16, KvType::Q8_0] {
            assert_eq!(serde_json::to_value(ty).expect("plain data"), ty.name());
        }
        assert!(serde_json::from_str::<KvType>("\"f32\"").is_err());
    }
}

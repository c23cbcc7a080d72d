//! Values of [`Sampling`](crate::Sampling) and [`GenerateParams`](crate::GenerateParams) that a person, a preset or a
//! model file may set: one table of names, ranges and hints for the window, the stored settings, preset files, the keys
//! of model files and the command line.

use serde::Serialize;

/// A value of an answer that can be set. The fields for the window are serialised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Parameter {
    /// Its key in the settings and in preset files.
    #[serde(skip)]
    pub key: &'static str,
    /// Its name in the window.
    #[serde(skip)]
    pub name: &'static str,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// Distance of neighbouring values in the window; 1 allows whole numbers only.
    pub step: f64,
    /// Value for models whose file gives none.
    #[serde(skip)]
    pub default: Option<f64>,
    /// Its flag on the command line, without the dashes.
    #[serde(skip)]
    pub flag: &'static str,
    /// Its key in a model file, as llama.cpp's converter writes it.
    #[serde(skip)]
    pub file_key: Option<&'static str>,
    /// Description in a sentence or two.
    pub hint: &'static str,
}

/// Lowest temperature: below it only the likeliest token is left, and 1/T exceeds the range of an f32.
pub const MIN_TEMPERATURE: f32 = 0.001;

/// The largest integer that all JSON readers agree on.
const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

/// See [`Sampling::temperature`](crate::Sampling::temperature).
pub const TEMPERATURE: Parameter = Parameter {
    key: "temperature",
    name: "Temperature",
    min: 0.0,
    max: 5.0,
    step: 0.05,
    default: Some(0.6),
    flag: "temperature",
    file_key: Some("general.sampling.temp"),
    hint: "0 always gives the same answer; higher values vary more.",
};

/// See [`Sampling::top_p`](crate::Sampling::top_p).
pub const TOP_P: Parameter = Parameter {
    key: "topP",
    name: "Top-p",
    min: 0.01,
    max: 1.0,
    step: 0.01,
    default: Some(0.95),
    flag: "top-p",
    file_key: Some("general.sampling.top_p"),
    hint: "Considers only the likeliest tokens that add up to this probability.",
};

/// See [`Sampling::top_k`](crate::Sampling::top_k).
pub const TOP_K: Parameter = Parameter {
    key: "topK",
    name: "Top-k",
    min: 0.0,
    max: 200_000.0,
    step: 1.0,
    default: Some(0.0),
    flag: "top-k",
    file_key: Some("general.sampling.top_k"),
    hint: "Considers only this many of the likeliest tokens; 0 considers all.",
};

/// See [`Sampling::min_p`](crate::Sampling::min_p).
pub const MIN_P: Parameter = Parameter {
    key: "minP",
    name: "Min-p",
    min: 0.0,
    max: 1.0,
    step: 0.01,
    default: Some(0.0),
    flag: "min-p",
    file_key: Some("general.sampling.min_p"),
    hint: "Ignores tokens less likely than this fraction of the top one.",
};

/// See [`Sampling::repeat_penalty`](crate::Sampling::repeat_penalty).
pub const REPEAT_PENALTY: Parameter = Parameter {
    key: "repeatPenalty",
    name: "Repeat penalty",
    min: 0.5,
    max: 3.0,
    step: 0.05,
    default: Some(1.0),
    flag: "repeat-penalty",
    file_key: Some("general.sampling.penalty_repeat"),
    hint: "Above 1 discourages repetition.",
};

/// See [`Sampling::seed`](crate::Sampling::seed).
pub const SEED: Parameter = Parameter {
    key: "seed",
    name: "Seed",
    min: 0.0,
    max: MAX_INTEGER,
    step: 1.0,
    default: None,
    flag: "seed",
    file_key: None,
    hint: "The same seed gives the same answer on the same device.",
};

/// See [`GenerateParams::max_tokens`](crate::GenerateParams::max_tokens).
pub const MAX_TOKENS: Parameter = Parameter {
    key: "maxTokens",
    name: "Maximum answer length",
    min: 1.0,
    max: 1_048_576.0,
    step: 1.0,
    default: None,
    flag: "max-tokens",
    file_key: None,
    hint: "In tokens, including thinking.",
};

/// See [`GenerateParams::thinking_budget`](crate::GenerateParams::thinking_budget).
pub const THINKING_BUDGET: Parameter = Parameter {
    key: "thinkingBudget",
    name: "Thinking budget",
    min: 1.0,
    max: 1_048_576.0,
    step: 1.0,
    default: None,
    flag: "thinking-budget",
    file_key: None,
    hint: "Most tokens to spend on thinking. Then the model answers.",
};

/// Sampling parameters, in the order of the window.
pub const SAMPLING_PARAMETERS: [Parameter; 6] =
    [TEMPERATURE, TOP_P, TOP_K, MIN_P, REPEAT_PENALTY, SEED];

/// All parameters.
pub const PARAMETERS: [Parameter; 8] = [
    TEMPERATURE,
    TOP_P,
    TOP_K,
    MIN_P,
    REPEAT_PENALTY,
    SEED,
    MAX_TOKENS,
    THINKING_BUDGET,
];

impl Parameter {
    /// Returns whether this value is allowed.
    #[must_use]
    pub fn allows(&self, value: f64) -> bool {
        (self.rounded(self.min)..=self.rounded(self.max)).contains(&self.rounded(value))
            && !(self.is_whole() && value.fract() != 0.0)
            && !self.is_too_cold(value)
    }

    /// Returns the allowed value that is nearest to this one; `None` for NaN.
    #[must_use]
    pub fn nearest(&self, value: f64) -> Option<f64> {
        let value = if self.is_whole() {
            value.round()
        } else {
            value
        };
        let value = if self.is_too_cold(value) { 0.0 } else { value };
        (!value.is_nan()).then(|| value.clamp(self.min, self.max))
    }

    /// Describes the allowed values in words.
    #[must_use]
    pub fn range(&self) -> String {
        let Parameter { min, max, .. } = self;
        match (self.is_whole(), *self == TEMPERATURE) {
            (true, _) => format!("a whole number from {min} to {max}"),
            (false, true) => format!("0, or a number from {MIN_TEMPERATURE} to {max}"),
            (false, false) => format!("a number from {min} to {max}"),
        }
    }

    fn is_whole(&self) -> bool {
        self.step >= 1.0
    }

    /// Returns whether a temperature is above 0 but has the same effect.
    fn is_too_cold(&self, value: f64) -> bool {
        *self == TEMPERATURE && value > 0.0 && self.rounded(value) < f64::from(MIN_TEMPERATURE)
    }

    /// Rounds to the stored precision: fractional values are f32, and the bounds of an f64 do not hold for them.
    fn rounded(&self, value: f64) -> f64 {
        if self.is_whole() {
            return value;
        }
        #[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
        let rounded = value as f32;
        f64::from(rounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sampling;

    #[test]
    fn the_defaults_are_those_of_the_table() {
        let usual = Sampling::default();
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let values = [
            Some(f64::from(usual.temperature)),
            Some(f64::from(usual.top_p)),
            Some(usual.top_k as f64),
            Some(f64::from(usual.min_p)),
            Some(f64::from(usual.repeat_penalty)),
            usual.seed.map(|seed| seed as f64),
        ];
        for (parameter, value) in SAMPLING_PARAMETERS.iter().zip(values) {
            let default = parameter.default.map(|value| parameter.rounded(value));
            assert_eq!(default, value, "{}", parameter.key);
        }
    }

    #[test]
    fn every_parameter_allows_its_bounds_and_its_default_and_nothing_beyond() {
        for parameter in PARAMETERS {
            let Parameter { key, min, max, .. } = parameter;
            for value in [Some(min), Some(max), parameter.default]
                .into_iter()
                .flatten()
            {
                assert!(parameter.allows(value), "{key}: {value}");
                // The precision of settings, presets and flags.
                assert!(parameter.allows(parameter.rounded(value)), "{key}: {value}");
                assert_eq!(parameter.nearest(value), Some(value), "{key}");
            }
            for value in [
                min - 0.1,
                min - 1.0,
                max + 0.1,
                max + 1.0,
                f64::INFINITY,
                -1e300,
            ] {
                // Beyond 2^53 there are no fractions.
                if value != max {
                    assert!(!parameter.allows(value), "{key}: {value}");
                }
                let nearest = parameter.nearest(value).expect("a number");
                assert!(parameter.allows(nearest), "{key}: {value} became {nearest}");
            }
            assert!(!parameter.allows(f64::NAN), "{key}");
            assert_eq!(parameter.nearest(f64::NAN), None, "{key}");
            if parameter.is_whole() {
                assert!(!parameter.allows(min + 0.5), "{key}");
                assert_eq!(parameter.nearest(min + 0.75), Some(min + 1.0), "{key}");
            }
        }
    }

    #[test]
    fn a_temperature_of_no_effect_is_none() {
        let least = f64::from(MIN_TEMPERATURE);
        assert!(TEMPERATURE.allows(least) && TEMPERATURE.allows(0.001));
        for value in [f64::from(f32::MIN_POSITIVE), 0.000_9] {
            assert!(!TEMPERATURE.allows(value), "{value}");
            assert_eq!(TEMPERATURE.nearest(value), Some(0.0));
        }
        assert!(MIN_P.allows(0.000_9));
        assert_eq!(TEMPERATURE.range(), "0, or a number from 0.001 to 5");
        assert_eq!(TOP_P.range(), "a number from 0.01 to 1");
        assert_eq!(TOP_K.range(), "a whole number from 0 to 200000");
    }

    #[test]
    fn no_two_parameters_share_a_key_a_name_or_a_flag() {
        for (at, one) in PARAMETERS.iter().enumerate() {
            for other in &PARAMETERS[..at] {
                assert_ne!(one.key, other.key);
                assert_ne!(one.name, other.name);
                assert_ne!(one.flag, other.flag);
            }
        }
        assert_eq!(PARAMETERS[..6], SAMPLING_PARAMETERS);
    }
}

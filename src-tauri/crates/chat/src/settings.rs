//! The user's settings: defaults, limits, and one stored row per key.
//!
//! A new setting also needs a name in [`names`] and an entry in the page's catalogue (`ui/src/settings/catalogue.ts`), from
//! which its pages, its search and its resets are made.

use std::ops::RangeInclusive;
use std::path::Path;

use inference::{
    DeviceRequest, KvType, MAX_TOKENS, MIN_P, Parameter, REPEAT_PENALTY, SEED, Sampling,
    TEMPERATURE, THINKING_BUDGET, TOP_K, TOP_P,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{PresetId, Store, StoreError};

use crate::failure::Failure;
use crate::model_host::ModelOptions;
use crate::settings::names::name_of;
use crate::text;

mod changes;
pub mod names;

/// All settings. A change of the [`ModelOptions`] reopens the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The colours.
    pub theme: Theme,
    /// `auto`, `cpu`, `gpu` or `gpu:ID`.
    pub device: String,
    /// Threads to compute with; `None`: chosen for the machine.
    pub threads: Option<u32>,
    /// Tokens of context; `None`: chosen for the model and the machine.
    pub context_length: Option<u32>,
    /// Storage type of the KV cache.
    pub kv_type: KvType,
    /// Idle minutes after which a model file is unloaded; `None`: never.
    pub unload_minutes: Option<u32>,
    /// Overrides of the sampling parameters.
    pub sampling_changes: SamplingSettings,
    /// Maximum tokens of an answer; `None`: until the context is full.
    pub max_tokens: Option<u32>,
    /// Maximum tokens of thinking before the answer begins; `None`: left to the model.
    pub thinking_budget: Option<u32>,
    /// Prompt-lookup speculative decoding.
    pub lookup: bool,
    /// True to prefill a message while it is being typed.
    pub read_ahead: bool,
    /// Instructions for every chat; empty: the model's own.
    pub instructions: String,
    /// True if new messages ask for thinking.
    pub thinking: bool,
    /// Preset of new chats; if `None` or deleted, these settings apply.
    pub default_preset: Option<PresetId>,
    /// The key that sends.
    pub send_with: SendWith,
    /// Zoom of the page, in percent.
    pub zoom: u32,
    /// True to show the line of figures under an answer.
    pub show_stats: bool,
    /// True to have the guide answer questions about the app, and point to it.
    pub guide_answers: bool,
    /// True to let the model title new chats in idle time.
    pub model_titles: bool,
    /// Folder for downloaded models; `None`: the cache of the Hugging Face hub.
    pub download_folder: Option<String>,
    /// Names of the tools that are on in new chats.
    pub tools: Vec<String>,
    /// Tools that run without asking.
    pub allowed_tools: Vec<AllowedTool>,
    /// Maximum rounds of calls in an answer.
    pub tool_rounds: u32,
    /// Seconds after which a call is ended.
    pub tool_seconds: u32,
    /// Characters of a result that the model is given.
    pub tool_result_characters: u32,
    /// Seconds in which a server has to start.
    pub server_seconds: u32,
}

/// A tool that runs without asking, as it was when the user allowed that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AllowedTool {
    /// Its name for the user.
    pub title: String,
    /// See [`tools::ToolInfo::fingerprint`].
    pub fingerprint: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            theme: Theme::System,
            device: "auto".into(),
            threads: None,
            context_length: None,
            kv_type: KvType::default(),
            unload_minutes: Some(10),
            sampling_changes: SamplingSettings::default(),
            max_tokens: None,
            thinking_budget: None,
            lookup: true,
            read_ahead: true,
            instructions: String::new(),
            thinking: true,
            default_preset: None,
            send_with: SendWith::Enter,
            zoom: 100,
            show_stats: false,
            guide_answers: true,
            model_titles: false,
            download_folder: None,
            tools: Vec::new(),
            allowed_tools: Vec::new(),
            tool_rounds: 8,
            tool_seconds: 60,
            tool_result_characters: 6000,
            server_seconds: 60,
        }
    }
}

/// The colours of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// Follows the system.
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

/// The key that sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum SendWith {
    /// Enter sends, Shift+Enter inserts a line break.
    Enter,
    /// Ctrl+Enter (Cmd+Enter) sends.
    CtrlEnter,
}

/// Overrides of the sampling parameters; `None`: the value from the model's file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SamplingSettings {
    /// See [`Sampling`].
    pub temperature: Option<f32>,
    /// See [`Sampling`].
    pub top_p: Option<f32>,
    /// See [`Sampling`].
    pub top_k: Option<u32>,
    /// See [`Sampling`].
    pub min_p: Option<f32>,
    /// See [`Sampling`].
    pub repeat_penalty: Option<f32>,
    /// Seed; `None`: a new one for each answer.
    #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
    pub seed: Option<u64>,
}

impl SamplingSettings {
    /// Returns the sampling parameters over the `defaults` of a model.
    pub fn over(&self, defaults: &Sampling) -> Sampling {
        Sampling {
            temperature: self.temperature.unwrap_or(defaults.temperature),
            top_p: self.top_p.unwrap_or(defaults.top_p),
            top_k: self.top_k.map_or(defaults.top_k, |k| k as usize),
            min_p: self.min_p.unwrap_or(defaults.min_p),
            repeat_penalty: self.repeat_penalty.unwrap_or(defaults.repeat_penalty),
            repeat_last_n: defaults.repeat_last_n,
            seed: self.seed,
        }
    }

    /// Returns these values, with those of `other` as defaults.
    pub(crate) fn or(self, other: SamplingSettings) -> SamplingSettings {
        SamplingSettings {
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            top_k: self.top_k.or(other.top_k),
            min_p: self.min_p.or(other.min_p),
            repeat_penalty: self.repeat_penalty.or(other.repeat_penalty),
            seed: self.seed.or(other.seed),
        }
    }

    /// Reads values that were stored or exported, by this version or another: a value out of range is clamped, and one
    /// that is not a number is absent.
    pub(crate) fn stored(values: &Value) -> SamplingSettings {
        let number = |parameter: Parameter| parameter.nearest(values.get(parameter.key)?.as_f64()?);
        let real = |parameter| number(parameter).map(|value| value as f32);
        SamplingSettings {
            temperature: real(TEMPERATURE),
            top_p: real(TOP_P),
            top_k: number(TOP_K).map(|value| value as u32),
            min_p: real(MIN_P),
            repeat_penalty: real(REPEAT_PENALTY),
            seed: number(SEED).map(|value| value as u64),
        }
    }

    /// Refuses values out of range, naming the value and its range.
    pub(crate) fn validate(&self) -> Result<(), Failure> {
        allowed(TEMPERATURE, self.temperature)?;
        allowed(TOP_P, self.top_p)?;
        allowed(TOP_K, self.top_k)?;
        allowed(MIN_P, self.min_p)?;
        allowed(REPEAT_PENALTY, self.repeat_penalty)?;
        // A seed that an f64 rounds is out of range.
        allowed(SEED, self.seed.map(|seed| seed as f64))
    }

    /// Removes values that equal the defaults that earlier versions had for all models.
    fn changed(self) -> SamplingSettings {
        let usual = Sampling::default();
        fn changed<T: PartialEq>(value: Option<T>, usual: T) -> Option<T> {
            value.filter(|value| *value != usual)
        }
        SamplingSettings {
            temperature: changed(self.temperature, usual.temperature),
            top_p: changed(self.top_p, usual.top_p),
            top_k: self.top_k.filter(|k| *k as usize != usual.top_k),
            min_p: changed(self.min_p, usual.min_p),
            repeat_penalty: changed(self.repeat_penalty, usual.repeat_penalty),
            seed: self.seed,
        }
    }
}

/// Prefix of the keys of the user's settings in the store.
const ROW: &str = "user.";
/// Key of the download folder.
pub(crate) const DOWNLOAD_FOLDER: &str = "user.downloadFolder";
/// Keys of the sampling parameters: all of them, as earlier versions stored them, and the overrides.
const WHOLE_SAMPLING: &str = "sampling";
const SAMPLING: &str = "samplingChanges";
/// One week.
const MAX_UNLOAD_MINUTES: u32 = 7 * 24 * 60;
pub(crate) const MAX_INSTRUCTIONS: usize = 20_000;
const MAX_TOOL_ROUNDS: u32 = 32;
const MAX_TOOL_SECONDS: u32 = 3600;
const MAX_RESULT_CHARACTERS: u32 = 100_000;
/// Tools that can be on at once: a small model confuses many.
const MAX_TOOLS: usize = 64;
/// Bytes of a path, as on Linux.
const MAX_PATH: usize = 4096;

/// Allowed lengths of the context, in tokens.
pub const CONTEXT_LENGTHS: RangeInclusive<u32> = 256..=1 << 20;

/// Returns the maximum sensible number of threads: twice the logical cores of this machine.
pub fn max_threads() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(2 * cores).unwrap_or(u32::MAX)
}

impl Settings {
    /// Returns the options with which a model is opened.
    pub fn load_options(&self) -> ModelOptions {
        ModelOptions {
            device: self.device.clone(),
            threads: self.threads,
            context_length: self.context_length,
            kv_type: self.kv_type,
        }
    }

    /// Refuses values out of range, naming the setting and its range.
    pub fn validate(&self) -> Result<(), Failure> {
        if let Err(error) = self.device.parse::<DeviceRequest>() {
            return Err(Failure::other(format!("{}: {error}.", name_of("device"))));
        }
        self.sampling_changes.validate()?;
        within("threads", self.threads.unwrap_or(1), 1, max_threads())?;
        within(
            "contextLength",
            self.context_length.unwrap_or(4096),
            *CONTEXT_LENGTHS.start(),
            *CONTEXT_LENGTHS.end(),
        )?;
        within(
            "unloadMinutes",
            self.unload_minutes.unwrap_or(1),
            1,
            MAX_UNLOAD_MINUTES,
        )?;
        allowed(MAX_TOKENS, self.max_tokens)?;
        allowed(THINKING_BUDGET, self.thinking_budget)?;
        within("zoom", self.zoom, 50, 300)?;
        within("toolRounds", self.tool_rounds, 1, MAX_TOOL_ROUNDS)?;
        within("toolSeconds", self.tool_seconds, 1, MAX_TOOL_SECONDS)?;
        within(
            "toolResultCharacters",
            self.tool_result_characters,
            200,
            MAX_RESULT_CHARACTERS,
        )?;
        within("serverSeconds", self.server_seconds, 1, MAX_TOOL_SECONDS)?;
        validate_tools(&self.tools)?;
        if let Some(folder) = &self.download_folder
            && !(Path::new(folder).is_absolute() && folder.len() <= MAX_PATH)
        {
            return Err(Failure::other(format!(
                "{}: “{}” is not the whole path of a folder.",
                name_of("downloadFolder"),
                text::cut(folder, 64)
            )));
        }
        validate_instructions(&self.instructions)
    }

    /// Reads them from the store.
    pub(crate) fn read(store: &Store) -> Result<Settings, StoreError> {
        let rows = store.settings().with_prefix(ROW)?;
        let key = |row: String| row.trim_start_matches(ROW).to_owned();
        Ok(Settings::from_rows(
            rows.into_iter()
                .map(|(row, value)| (key(row), value))
                .collect(),
        ))
    }

    /// Writes them to the store, in one transaction.
    pub(crate) fn write(&self, store: &Store) -> Result<(), StoreError> {
        store.transaction(|store| {
            for (key, value) in self.rows().unwrap_or_default() {
                store.settings().set(&format!("{ROW}{key}"), &value)?;
            }
            Ok(())
        })
    }

    /// Returns the keys whose values differ from `now`, with these values.
    pub(crate) fn changed_in(&self, now: &Settings) -> Map<String, Value> {
        let (before, now) = (
            self.rows().unwrap_or_default(),
            now.rows().unwrap_or_default(),
        );
        before
            .into_iter()
            .filter(|(key, value)| now.get(key) != Some(value))
            .collect()
    }

    /// Returns these settings with other values of some keys.
    pub(crate) fn with(&self, values: Map<String, Value>) -> Result<Settings, Failure> {
        let mut rows = self.rows().unwrap_or_default();
        rows.extend(values);
        serde_json::from_value(Value::Object(rows))
            .map_err(|error| Failure::other(error.to_string()))
    }

    /// Merges the stored rows with the defaults. An invalid value is replaced by its default.
    fn from_rows(mut rows: Map<String, Value>) -> Settings {
        let whole = rows.remove(WHOLE_SAMPLING);
        let whole = whole.map(|whole| SamplingSettings::stored(&whole).changed());
        let changes = rows.get(SAMPLING).map(SamplingSettings::stored).or(whole);
        if let Some(changes) = changes.and_then(|it| serde_json::to_value(it).ok()) {
            rows.insert(SAMPLING.to_owned(), changes);
        }
        let mut settings = Settings::default();
        for (key, value) in rows {
            let Some(mut merged) = settings.rows().filter(|known| known.contains_key(&key)) else {
                continue;
            };
            merged.insert(key.clone(), value);
            match serde_json::from_value::<Settings>(Value::Object(merged)) {
                Ok(read) if read.validate().is_ok() => settings = read,
                _ => tracing::warn!(key, "invalid stored setting; using the default"),
            }
        }
        settings
    }

    /// Returns one row per key.
    fn rows(&self) -> Option<Map<String, Value>> {
        match serde_json::to_value(self) {
            Ok(Value::Object(rows)) => Some(rows),
            _ => None,
        }
    }
}

pub(crate) fn validate_instructions(text: &str) -> Result<(), Failure> {
    let length = text.chars().count();
    if length <= MAX_INSTRUCTIONS {
        return Ok(());
    }
    Err(Failure::other(format!(
        "{}: they have at most {} characters; these have {}.",
        name_of("instructions"),
        figures::count(MAX_INSTRUCTIONS),
        figures::count(length)
    )))
}

pub(crate) fn validate_tools(tools: &[String]) -> Result<(), Failure> {
    if tools.len() <= MAX_TOOLS {
        return Ok(());
    }
    Err(Failure::other(format!(
        "{}: at most {MAX_TOOLS} can be on at once; these are {}.",
        name_of("tools"),
        tools.len()
    )))
}

/// Checks a value that was chosen, if it was.
fn allowed<T: Into<f64> + Copy + std::fmt::Display>(
    parameter: Parameter,
    value: Option<T>,
) -> Result<(), Failure> {
    match value.filter(|value| !parameter.allows((*value).into())) {
        None => Ok(()),
        Some(value) => Err(Failure::other(format!(
            "{}: {value} is out of range. It is {}.",
            parameter.name,
            parameter.range()
        ))),
    }
}

/// Checks a range; NaN is in none. `key`: that of the setting.
fn within<T: PartialOrd + std::fmt::Display>(
    key: &str,
    value: T,
    low: T,
    high: T,
) -> Result<(), Failure> {
    if low <= value && value <= high {
        return Ok(());
    }
    Err(Failure::other(format!(
        "{}: {value} is out of range. It goes from {low} to {high}.",
        name_of(key)
    )))
}

#[cfg(test)]
mod tests {
    use inference::SAMPLING_PARAMETERS;
    use serde_json::json;

    use super::*;

    fn of(key: &str, value: f64) -> SamplingSettings {
        SamplingSettings::stored(&json!({ key: value }))
    }

    #[test]
    fn settings_and_stored_values_have_the_ranges_of_the_table() {
        for parameter in SAMPLING_PARAMETERS {
            let Parameter { key, min, max, .. } = parameter;
            for bound in [min, max] {
                let sampling = of(key, bound);
                assert_ne!(sampling, SamplingSettings::default(), "{key} is read");
                assert!(sampling.validate().is_ok(), "{key}: {bound}");
            }
            assert_eq!(of(key, min - 0.7), of(key, min), "{key}");
            assert_eq!(of(key, max * 2.0), of(key, max), "{key}");
            for other in [json!(null), json!("1"), json!([1]), json!({}), json!(true)] {
                let absent = SamplingSettings::stored(&json!({ key: other }));
                assert_eq!(absent, SamplingSettings::default(), "{key}: {other}");
            }
            // Bounds in the form in which the window sends them.
            let beyond = match key {
                "topK" | "seed" => json!(max as u64 + 1),
                _ => json!(max + 0.5),
            };
            let sampling: SamplingSettings =
                serde_json::from_value(json!({ key: beyond })).expect("a number");
            let refused = sampling.validate().expect_err(key).message;
            assert!(refused.starts_with(parameter.name), "{refused}");
            assert!(refused.contains(&parameter.range()), "{refused}");
        }
    }

    #[test]
    fn lengths_have_the_ranges_of_the_table() {
        let with = |parameter: Parameter, value: f64| {
            let values = json!({ parameter.key: value as u32 });
            let Value::Object(values) = values else {
                unreachable!()
            };
            Settings::default()
                .with(values)
                .expect("a number")
                .validate()
        };
        for parameter in [MAX_TOKENS, THINKING_BUDGET] {
            for bound in [parameter.min, parameter.max] {
                assert!(with(parameter, bound).is_ok(), "{}: {bound}", parameter.key);
            }
            for beyond in [parameter.min - 1.0, parameter.max + 1.0] {
                let refused = with(parameter, beyond).expect_err(parameter.key).message;
                assert!(refused.contains(&parameter.range()), "{refused}");
            }
        }
    }

    #[test]
    fn a_row_that_an_earlier_version_had_is_left_out() {
        let rows = json!({ "ownTemplates": ["0123456789abcdef"], "theme": "dark" });
        let Value::Object(rows) = rows else {
            unreachable!()
        };
        let expected = Settings {
            theme: Theme::Dark,
            ..Settings::default()
        };
        assert_eq!(Settings::from_rows(rows), expected);
    }

    #[test]
    fn one_value_out_of_range_does_not_take_the_others() {
        let rows = json!({ "samplingChanges": {
            "temperature": 99, "topP": 0.5, "topK": -3, "minP": "low", "seed": 7, "ofALaterVersion": [],
        } });
        let Value::Object(rows) = rows else {
            unreachable!()
        };
        let expected = SamplingSettings {
            temperature: Some(5.0),
            top_p: Some(0.5),
            top_k: Some(0),
            seed: Some(7),
            ..SamplingSettings::default()
        };
        assert_eq!(Settings::from_rows(rows).sampling_changes, expected);
    }
}

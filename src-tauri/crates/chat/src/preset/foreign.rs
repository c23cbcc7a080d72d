//! Presets of LM Studio: `{"name": …, "operation": {"fields": [{"key": …, "value": …}]}, "load": {"fields": […]}}`.

use inference::{MIN_P, Parameter, REPEAT_PENALTY, TEMPERATURE, TOP_K, TOP_P};
use serde_json::{Map, Value};

use crate::preset::{PresetContent, ReadPresets};
use crate::settings::SamplingSettings;
use crate::text;

const PREFIX: &str = "llm.prediction.";

pub(super) fn is_lm_studio(fields: &Map<String, Value>) -> bool {
    ["operation", "load"].iter().any(|part| {
        let part = fields.get(*part);
        part.and_then(|part| part.get("fields"))
            .is_some_and(Value::is_array)
    })
}

/// Converts the fields that a preset can have. The rest is listed: it is about other programs and models.
pub(super) fn from_lm_studio(
    file: &Map<String, Value>,
    file_name: &str,
) -> Result<ReadPresets, String> {
    let name = file.get("name").and_then(Value::as_str);
    let mut preset = PresetContent {
        name: name.unwrap_or(file_name).to_owned(),
        instructions: String::new(),
        thinking: None,
        sampling: SamplingSettings::default(),
        tools: None,
    };
    let mut left_out = Vec::new();
    for part in ["operation", "load"] {
        let fields = file.get(part).and_then(|part| part.get("fields"));
        for field in fields.and_then(Value::as_array).into_iter().flatten() {
            let key = field.get("key").and_then(Value::as_str).unwrap_or_default();
            let value = field.get("value").unwrap_or(&Value::Null);
            if !take(
                &mut preset,
                key.strip_prefix(PREFIX).unwrap_or_default(),
                value,
            )? {
                left_out.push(text::cut(key, 60));
            }
        }
    }
    let preset = preset.validated().map_err(|failure| failure.message)?;
    Ok(ReadPresets {
        presets: vec![preset],
        left_out,
    })
}

/// Takes one field; false if it has no counterpart.
fn take(preset: &mut PresetContent, key: &str, value: &Value) -> Result<bool, String> {
    // Some can be switched off: {"checked": false, "value": 0.9}.
    let (is_on, value) = match value.get("checked") {
        Some(checked) => (
            checked.as_bool() == Some(true),
            value.get("value").unwrap_or(&Value::Null),
        ),
        None => (true, value),
    };
    let sampling = &mut preset.sampling;
    // Clamped to its range.
    let number = |parameter: Parameter| {
        let given = value.as_f64().and_then(|value| parameter.nearest(value));
        given.ok_or(format!("“{PREFIX}{key}” is not a number."))
    };
    match key {
        "systemPrompt" => {
            let text = value.as_str();
            preset.instructions = text
                .ok_or(format!("“{PREFIX}{key}” is not text."))?
                .to_owned();
        }
        "temperature" => sampling.temperature = Some(number(TEMPERATURE)? as f32),
        "topKSampling" => sampling.top_k = Some(number(TOP_K)? as u32),
        // Switched off, they change nothing.
        "topPSampling" => sampling.top_p = Some(if is_on { number(TOP_P)? as f32 } else { 1.0 }),
        "minPSampling" => sampling.min_p = Some(if is_on { number(MIN_P)? as f32 } else { 0.0 }),
        "repeatPenalty" => {
            sampling.repeat_penalty = Some(if is_on {
                number(REPEAT_PENALTY)? as f32
            } else {
                1.0
            });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<ReadPresets, String> {
        let Value::Object(fields) = value else {
            panic!("an object");
        };
        assert!(is_lm_studio(&fields));
        from_lm_studio(&fields, "file")
    }

    #[test]
    fn what_a_preset_of_ours_can_have_is_taken_and_the_rest_is_named() {
        let read = read(json!({
            "identifier": "@local:poet",
            "name": "Poet",
            "operation": { "fields": [
                { "key": "llm.prediction.systemPrompt", "value": "Answer in verse." },
                { "key": "llm.prediction.temperature", "value": 1.2 },
                { "key": "llm.prediction.topKSampling", "value": 50 },
                { "key": "llm.prediction.topPSampling", "value": { "checked": true, "value": 0.9 } },
                { "key": "llm.prediction.minPSampling", "value": { "checked": false, "value": 0.05 } },
                { "key": "llm.prediction.tools", "value": { "type": "none" } },
            ] },
            "load": { "fields": [{ "key": "llm.load.contextLength", "value": 8192 }] },
        }));
        let read = read.expect("it is a preset");
        assert_eq!(
            read.left_out,
            ["llm.prediction.tools", "llm.load.contextLength"]
        );
        let [preset] = &read.presets[..] else {
            panic!("one preset");
        };
        assert_eq!(
            (preset.name.as_str(), preset.instructions.as_str()),
            ("Poet", "Answer in verse.")
        );
        let sampling = SamplingSettings {
            temperature: Some(1.2),
            top_p: Some(0.9),
            top_k: Some(50),
            min_p: Some(0.0),
            ..SamplingSettings::default()
        };
        assert_eq!(preset.sampling, sampling);
    }

    #[test]
    fn a_value_that_makes_no_sense_is_named() {
        let wrong = |key: &str, value: Value| {
            let key = format!("{PREFIX}{key}");
            read(json!({ "operation": { "fields": [{ "key": key, "value": value }] } }))
                .expect_err(&key)
        };
        assert_eq!(
            wrong("systemPrompt", json!(7)),
            "“llm.prediction.systemPrompt” is not text."
        );
        assert_eq!(
            wrong("topKSampling", json!([])),
            "“llm.prediction.topKSampling” is not a number."
        );
        assert_eq!(
            wrong("temperature", json!("hot")),
            "“llm.prediction.temperature” is not a number."
        );
    }

    #[test]
    fn a_value_out_of_range_becomes_the_nearest_one_in_it() {
        let field =
            |key: &str, value: Value| json!({ "key": format!("{PREFIX}{key}"), "value": value });
        let on = |value: f64| json!({ "checked": true, "value": value });
        let read = read(json!({ "operation": { "fields": [
            field("temperature", json!(99)),
            field("topKSampling", json!(-1)),
            field("topPSampling", on(1.5)),
            field("minPSampling", on(-0.5)),
            field("repeatPenalty", on(0.1)),
        ] } }));
        let expected = SamplingSettings {
            temperature: Some(5.0),
            top_p: Some(1.0),
            top_k: Some(0),
            min_p: Some(0.0),
            repeat_penalty: Some(0.5),
            seed: None,
        };
        assert_eq!(read.expect("it is a preset").presets[0].sampling, expected);
    }
}

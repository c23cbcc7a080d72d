//! The chat template and the sampling parameters that a folder recommends.

use std::path::Path;

use engine::gguf::write::Field;
use serde_json::Value;

use super::json::{self, number};
use crate::error::QuantizeError;

const KEY: &str = "tokenizer.chat_template";

/// Reads the chat template: from `tokenizer_config.json`, else from `chat_template.jinja`, else from
/// `chat_template.json`.
pub(super) fn fields(folder: &Path) -> Result<Vec<(String, Field)>, QuantizeError> {
    let settings = json::read_optional(&folder.join("tokenizer_config.json"))?;
    let inside = settings
        .as_ref()
        .and_then(|settings| settings.get("chat_template"));
    match inside {
        Some(Value::String(text)) => {
            return Ok(vec![(KEY.to_owned(), Field::String(text.clone()))]);
        }
        Some(Value::Array(choices)) => return Ok(named(choices)),
        _ => {}
    }
    let jinja = folder.join("chat_template.jinja");
    let text = if jinja.try_exists().unwrap_or(true) {
        Some(json::read_text(&jinja, json::LONGEST)?)
    } else {
        let file = json::read_optional(&folder.join("chat_template.json"))?;
        let text = file.as_ref().and_then(|file| file.get("chat_template"));
        text.and_then(Value::as_str).map(str::to_owned)
    };
    Ok(text
        .map(|text| (KEY.to_owned(), Field::String(text)))
        .into_iter()
        .collect())
}

/// Returns several templates: the one called `default`, and the others under separate keys.
fn named(choices: &[Value]) -> Vec<(String, Field)> {
    let (mut fields, mut names, mut default) = (Vec::new(), Vec::new(), None);
    for choice in choices {
        let of = |key: &str| choice.get(key).and_then(Value::as_str);
        let (Some(name), Some(text)) = (of("name"), of("template")) else {
            continue;
        };
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = name.chars().map(plain).collect();
        if name == "default" {
            default = Some(text.to_owned());
        } else if !name.is_empty() && !names.contains(&name) {
            fields.push((format!("{KEY}.{name}"), Field::String(text.to_owned())));
            names.push(name);
        }
    }
    if !names.is_empty() {
        fields.push(("tokenizer.chat_templates".to_owned(), Field::Strings(names)));
    }
    fields.extend(default.map(|text| (KEY.to_owned(), Field::String(text))));
    fields
}

/// Returns the `general.sampling.*` metadata, from `generation_config.json`.
pub(super) fn sampling(folder: &Path) -> Result<Vec<(String, Field)>, QuantizeError> {
    let Some(file) = json::read_optional(&folder.join("generation_config.json"))? else {
        return Ok(Vec::new());
    };
    let key = |key: &str| format!("general.sampling.{key}");
    let mut fields = Vec::new();
    if let Some(top_k) = file.optional_count("top_k")? {
        let top_k = i32::try_from(top_k)
            .map_err(|_| file.fail("top_k", "is not a whole number of 31 bits"))?;
        fields.push((key("top_k"), Field::I32(top_k)));
    }
    for (json, gguf) in [
        ("top_p", "top_p"),
        ("min_p", "min_p"),
        ("temperature", "temp"),
        ("repetition_penalty", "penalty_repeat"),
    ] {
        if let Some(value) = file.get(json) {
            let value = number(value).ok_or_else(|| file.fail(json, "is not a number"))?;
            fields.push((key(gguf), Field::F32(value)));
        }
    }
    Ok(fields)
}

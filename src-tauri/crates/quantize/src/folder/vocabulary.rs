//! `tokenizer.json` and `tokenizer_config.json`: the tokens, their kinds, the merges and the special tokens.

use std::collections::HashMap;
use std::path::Path;

use engine::Tokenizer;
use engine::gguf::write::Field;
use engine::model::architecture::SMOLLM3;
use serde::Deserialize;
use serde_json::Value;

use super::config_json::ConfigJson;
use super::json::{self, JsonFile};
use crate::error::QuantizeError;

/// llama.cpp's kinds of token.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED: i32 = 5;

/// Far above every published vocabulary; the engine reads no more.
const MOST_TOKENS: usize = 1 << 20;

/// Special tokens by transformers' name and by GGUF's key, which has a misspelling.
const SPECIAL: [(&str, &str); 7] = [
    ("bos", "bos_token_id"),
    ("eos", "eos_token_id"),
    ("unk", "unknown_token_id"),
    ("sep", "seperator_token_id"),
    ("pad", "padding_token_id"),
    ("cls", "cls_token_id"),
    ("mask", "mask_token_id"),
];

/// The relevant parts of a `tokenizer.json`.
#[derive(Deserialize)]
struct TokenizerFile {
    #[serde(default)]
    added_tokens: Vec<AddedTokenJson>,
    #[serde(default)]
    post_processor: Value,
    model: BpeJson,
}

#[derive(Deserialize)]
struct AddedTokenJson {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct BpeJson {
    vocab: HashMap<String, u32>,
    merges: MergesJson,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MergesJson {
    Pairs(Vec<(String, String)>),
    Joined(Vec<String>),
}

/// Returns the `tokenizer.*` metadata except for the chat template.
pub(super) fn fields(
    folder: &Path,
    config: &ConfigJson,
) -> Result<Vec<(String, Field)>, QuantizeError> {
    let path = folder.join("tokenizer.json");
    let text = json::read_text(&path, json::LONGEST_VOCABULARY)?;
    // The engine's own check: byte-level BPE with a known split, every byte encodable.
    let tokenizer = Tokenizer::from_json(text.as_bytes())
        .map_err(|error| QuantizeError::input(&path, error))?;
    let split = match tokenizer.split_name() {
        // llama.cpp has another name for it in Llama's own files.
        "smaug-bpe" if config.architecture != &SMOLLM3 => "llama-bpe",
        name => name,
    };
    drop(tokenizer);
    let json: TokenizerFile = serde_json::from_str(&text).map_err(|error| {
        QuantizeError::input(&path, format!("not the JSON that is expected: {error}"))
    })?;
    drop(text);
    let settings = json::read_optional(&folder.join("tokenizer_config.json"))?;
    let size = config.vocab()?;
    if size > MOST_TOKENS {
        let problem = format!("is {size}, more tokens than the {MOST_TOKENS} that are read");
        return Err(config.file.fail("vocab_size", problem));
    }
    let (tokens, kinds) = tokens(&path, &json, size)?;
    let key = |key: &str| format!("tokenizer.ggml.{key}");
    let mut fields = vec![
        (key("model"), Field::String("gpt2".to_owned())),
        (key("pre"), Field::String(split.to_owned())),
        (key("tokens"), Field::Strings(tokens)),
        (key("token_type"), Field::I32s(kinds)),
    ];
    let special = special_ids(&json, settings.as_ref(), config)?;
    let added = added_flags(&json, settings.as_ref());
    let merges = match json.model.merges {
        MergesJson::Pairs(pairs) => pairs
            .iter()
            .map(|(left, right)| format!("{left} {right}"))
            .collect(),
        MergesJson::Joined(joined) => joined,
    };
    fields.push((key("merges"), Field::Strings(merges)));
    fields.extend(
        special
            .into_iter()
            .map(|(name, id)| (key(name), Field::U32(id))),
    );
    fields.extend(
        added
            .into_iter()
            .map(|(name, flag)| (key(&format!("add_{name}_token")), Field::Bool(flag))),
    );
    Ok(fields)
}

/// Returns every token's text and kind, with placeholders for unused ids.
fn tokens(
    path: &Path,
    json: &TokenizerFile,
    size: usize,
) -> Result<(Vec<String>, Vec<i32>), QuantizeError> {
    let listed = json
        .model
        .vocab
        .iter()
        .map(|(text, &id)| (text.as_str(), id));
    let added = json
        .added_tokens
        .iter()
        .map(|token| (token.content.as_str(), token.id));
    let most = listed.clone().chain(added).map(|(_, id)| id as usize).max();
    if let Some(most) = most.filter(|&most| most >= size) {
        let problem =
            format!("token {most} is beyond the {size} that config.json's `vocab_size` allows");
        return Err(QuantizeError::input(path, problem));
    }
    let mut tokens: Vec<Option<String>> = vec![None; size];
    let mut kinds = vec![UNUSED; size];
    for (text, id) in listed {
        tokens[id as usize] = Some(text.to_owned());
        kinds[id as usize] = NORMAL;
    }
    for token in &json.added_tokens {
        let is_control = token.special || looks_special(&token.content);
        let (kind, text) = if is_control {
            (CONTROL, token.content.clone())
        } else {
            (USER_DEFINED, token.content.replace('\u{2581}', " "))
        };
        tokens[token.id as usize] = Some(text);
        kinds[token.id as usize] = kind;
    }
    let named =
        |(id, token): (usize, Option<String>)| token.unwrap_or_else(|| format!("[PAD{id}]"));
    let tokens = tokens.into_iter().enumerate().map(named).collect();
    Ok((tokens, kinds))
}

/// Returns whether an added token is a control token, whatever its flag says; llama.cpp's rule.
fn looks_special(text: &str) -> bool {
    let within = |start: &str, end: &str| text.starts_with(start) && text.ends_with(end);
    matches!(text, "<pad>" | "<mask>" | "<2mass>" | "[@BOS@]")
        || within("<|", "|>")
        || within("<｜", "｜>")
        || within("<unused", ">")
}

/// Returns the ids of the special tokens: those that `tokenizer_config.json` names, else those of `config.json`.
fn special_ids(
    json: &TokenizerFile,
    settings: Option<&JsonFile>,
    config: &ConfigJson,
) -> Result<Vec<(&'static str, u32)>, QuantizeError> {
    let mut ids = Vec::new();
    for (name, key) in SPECIAL {
        let text = special_text(settings, name);
        let added =
            text.and_then(|text| json.added_tokens.iter().find(|token| token.content == text));
        let id = match added {
            Some(token) => Some(token.id),
            // A list of ids, which some models have for the end, is not one id.
            None => match config.file.get(&format!("{name}_token_id")) {
                Some(value) if value.is_u64() => {
                    config.file.optional_count(&format!("{name}_token_id"))?
                }
                _ => None,
            },
        };
        ids.extend(id.map(|id| (key, id)));
    }
    Ok(ids)
}

/// Returns the text of a special token in `tokenizer_config.json`: a string, or an object with its content.
fn special_text<'a>(settings: Option<&'a JsonFile>, name: &str) -> Option<&'a str> {
    let entry = settings?.get(&format!("{name}_token"))?;
    entry.as_str().or_else(|| entry.get("content")?.as_str())
}

/// Returns whether text gets a first or a last token: by the post-processor, else by `tokenizer_config.json`.
fn added_flags(json: &TokenizerFile, settings: Option<&JsonFile>) -> Vec<(&'static str, bool)> {
    let (mut begin, mut end) = (None, None);
    let several = json
        .post_processor
        .get("processors")
        .and_then(Value::as_array);
    let one = std::slice::from_ref(&json.post_processor);
    for processor in several.map_or(one, Vec::as_slice) {
        match processor.get("type").and_then(Value::as_str) {
            Some("ByteLevel") => {
                begin.get_or_insert(false);
                end.get_or_insert(false);
            }
            Some("TemplateProcessing") => {
                let single = processor.get("single").and_then(Value::as_array);
                let Some(single) = single.filter(|single| single.len() > 1) else {
                    continue;
                };
                let special = |piece: Option<&Value>| {
                    Some(piece?.get("SpecialToken")?.get("id")?.as_str()?.to_owned())
                };
                if special(single.first()).is_some() {
                    begin = Some(true);
                }
                if special(single.last()).is_some() {
                    end = Some(true);
                }
            }
            _ => {}
        }
    }
    let said = |name: &str| settings?.get(&format!("add_{name}_token"))?.as_bool();
    [
        ("bos", begin.or_else(|| said("bos"))),
        ("eos", end.or_else(|| said("eos"))),
    ]
    .into_iter()
    .filter_map(|(name, flag)| Some((name, flag?)))
    .collect()
}

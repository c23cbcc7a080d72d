//! Presets as a JSON file:
//!
//! ```json
//! {
//!   "format": "goldcrest-presets",
//!   "version": 1,
//!   "presets": [
//!     {
//!       "name": "Coder",
//!       "instructions": "Answer with code.",
//!       "thinking": true,
//!       "sampling": { "temperature": 0.3, "topP": 0.9 },
//!       "tools": ["calculator"]
//!     }
//!   ]
//! }
//! ```
//!
//! All but the name may be missing, and then is as the settings say; so is a sampling value that is missing, of those in
//! [`SAMPLING_PARAMETERS`]. One that is out of range becomes the nearest one in it. A file with anything else in it is
//! refused whole.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use inference::SAMPLING_PARAMETERS;
use json_text::JsonText;
use serde_json::{Map, Value, json};

use crate::failure::{Failure, FailureCode};
use crate::preset::{MOST, PresetContent, ReadPresets, foreign};
use crate::settings::SamplingSettings;
use crate::text;

const FORMAT: &str = "goldcrest-presets";
const VERSION: u64 = 1;
/// Maximum bytes of a file that is written or read: parsed, it takes many times the memory.
const MAX_BYTES: usize = 1 << 20;

/// Writes presets to a file atomically.
pub fn write(path: &Path, presets: &[PresetContent]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let code = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FailureCode::DiskFull,
            _ => FailureCode::Other,
        };
        Failure::new(
            code,
            format!("{} was not written: {error}.", path.display()),
        )
    };
    let json = to_json(presets);
    if json.len() > MAX_BYTES {
        return Err(Failure::other(
            "A preset file can hold at most 1 MB. Export fewer presets at a time.",
        ));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(json.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Reads presets of Goldcrest or one of LM Studio.
pub fn read(path: &Path) -> Result<ReadPresets, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let refused = |cause: String| Failure::other(format!("{name} was not imported. {cause}"));
    let failed = |error: std::io::Error| refused(format!("It could not be read: {error}."));
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(refused("It is not a file.".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    let read = file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(failed)?;
    if bytes.len() > MAX_BYTES {
        return Err(refused(
            "It is larger than 1 MB, the most that a preset file can hold.".to_owned(),
        ));
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    from_json(&bytes, stem.trim_end_matches(".preset")).map_err(refused)
}

fn to_json(presets: &[PresetContent]) -> String {
    let presets: Vec<Value> = presets.iter().map(preset_value).collect();
    let file = json!({ "format": FORMAT, "version": VERSION, "presets": presets });
    // Plain data is always JSON.
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

/// Returns a preset as JSON, without the values for which the settings apply.
fn preset_value(preset: &PresetContent) -> Value {
    let mut value = serde_json::to_value(preset).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        if let Some(Value::Object(sampling)) = fields.get_mut("sampling") {
            sampling.retain(|_, value| !value.is_null());
        }
        fields.retain(|_, value| !(value.is_null() || *value == json!("") || *value == json!({})));
    }
    value
}

/// Parses a file. `file_name`: the name of a preset that has none.
fn from_json(bytes: &[u8], file_name: &str) -> Result<ReadPresets, String> {
    let value: Value = serde_json::from_reader(JsonText::new(bytes))
        .map_err(|error| format!("It is not JSON: {error}."))?;
    let Value::Object(fields) = value else {
        return Err(not_presets());
    };
    if foreign::is_lm_studio(&fields) {
        return foreign::from_lm_studio(&fields, file_name);
    }
    let mut file = Fields::new("", fields);
    match file.take("format") {
        Some(Value::String(format)) if format == FORMAT => {}
        _ => return Err(not_presets()),
    }
    match file.take("version").and_then(|version| version.as_u64()) {
        Some(VERSION) => {}
        Some(newer) if newer > VERSION => {
            return Err("It was made by a newer version of Goldcrest.".to_owned());
        }
        _ => return Err(format!("“version” is not {VERSION}.")),
    }
    let Some(Value::Array(list)) = file.take("presets") else {
        return Err("“presets” is not a list.".to_owned());
    };
    file.end()?;
    if list.is_empty() || list.len() > MOST {
        return Err(format!(
            "“presets” has {} entries. It can have 1 to {MOST}.",
            list.len()
        ));
    }
    let presets = list.into_iter().enumerate().map(|(at, value)| {
        let path = format!("presets[{at}]");
        preset(&path, value)
    });
    Ok(ReadPresets {
        presets: presets.collect::<Result<_, String>>()?,
        left_out: Vec::new(),
    })
}

fn not_presets() -> String {
    "It is not a file with presets of Goldcrest or LM Studio.".to_owned()
}

fn preset(path: &str, value: Value) -> Result<PresetContent, String> {
    let mut fields = Fields::of(path, value)?;
    let name = fields
        .text("name")?
        .ok_or(format!("“{path}.name” is missing."))?;
    let instructions = fields.text("instructions")?.unwrap_or_default();
    let thinking = match fields.take("thinking") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(thinking)) => Some(thinking),
        Some(_) => return Err(format!("“{path}.thinking” is neither true nor false.")),
    };
    let sampling = match fields.take("sampling") {
        None | Some(Value::Null) => SamplingSettings::default(),
        Some(value) => sampling(&format!("{path}.sampling"), value)?,
    };
    let tools = match fields.take("tools") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let names = serde_json::from_value(value);
            Some(names.map_err(|_| format!("“{path}.tools” is not a list of names."))?)
        }
    };
    fields.end()?;
    let content = PresetContent {
        name,
        instructions,
        thinking,
        sampling,
        tools,
    };
    content
        .validated()
        .map_err(|failure| format!("“{path}”: {}", failure.message))
}

fn sampling(path: &str, value: Value) -> Result<SamplingSettings, String> {
    let sampling = SamplingSettings::stored(&value);
    let mut fields = Fields::of(path, value)?;
    for parameter in SAMPLING_PARAMETERS {
        match fields.take(parameter.key) {
            None | Some(Value::Null | Value::Number(_)) => {}
            Some(_) => return Err(format!("{} is not a number.", fields.named(parameter.key))),
        }
    }
    fields.end()?;
    Ok(sampling)
}

/// Fields of an object, each taken once: the rest is unknown.
struct Fields<'p> {
    path: &'p str,
    fields: Map<String, Value>,
}

impl<'p> Fields<'p> {
    fn new(path: &'p str, fields: Map<String, Value>) -> Fields<'p> {
        Fields { path, fields }
    }

    fn of(path: &'p str, value: Value) -> Result<Fields<'p>, String> {
        match value {
            Value::Object(fields) => Ok(Fields::new(path, fields)),
            _ => Err(format!("“{path}” is not an object.")),
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{} is not text.", self.named(name))),
        }
    }

    fn end(self) -> Result<(), String> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("{} is not known here.", self.named(name))),
        }
    }

    fn named(&self, name: &str) -> String {
        let dot = if self.path.is_empty() { "" } else { "." };
        format!("“{}{dot}{}”", self.path, text::cut(name, 40))
    }
}

#[cfg(test)]
mod tests {
    use inference::Parameter;

    use super::*;

    fn refusal(json: &str) -> String {
        from_json(json.as_bytes(), "file").expect_err(json)
    }

    #[test]
    fn encodings_and_halves_of_surrogate_pairs_are_no_obstacle() {
        let json = with(r#"{"name":"Coder \ud83d"}"#);
        let marked = format!("\u{feff}{json}");
        let utf16 = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [json.into_bytes(), marked.into_bytes(), utf16] {
            let read = from_json(&bytes, "file").expect("read");
            assert_eq!(read.presets[0].name, "Coder \u{fffd}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_refused_before_it_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe.json");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo runs").success());
        for path in [path.as_path(), folder.path(), Path::new("/dev/zero")] {
            let refused = read(path).expect_err("it is not a file").message;
            assert!(refused.ends_with("It is not a file."), "{refused}");
        }
    }

    fn with(preset: &str) -> String {
        format!(r#"{{"format":"goldcrest-presets","version":1,"presets":[{preset}]}}"#)
    }

    #[test]
    fn what_is_written_is_read() {
        let full = PresetContent {
            name: "Coder".into(),
            instructions: "Answer with code.\n“Quoted”".into(),
            thinking: Some(false),
            sampling: SamplingSettings {
                temperature: Some(0.3),
                top_p: Some(0.9),
                top_k: Some(40),
                min_p: Some(0.05),
                repeat_penalty: Some(1.1),
                seed: Some(7),
            },
            tools: Some(vec!["calculator".to_owned()]),
        };
        let bare = PresetContent {
            name: "Bare".into(),
            instructions: String::new(),
            thinking: None,
            sampling: SamplingSettings::default(),
            tools: None,
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("presets.json");
        let presets = [full, bare];
        write(&path, &presets).expect("it is written");
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert!(
            text.contains("\"name\": \"Bare\"\n    }"),
            "nothing but the name: {text}"
        );
        assert_eq!(read(&path).expect("it is read").presets, presets);
        let missing = folder.path().join("no").join("presets.json");
        assert!(write(&missing, &presets).is_err());
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named() {
        let fields = |fields: &str| with(&format!(r#"{{"name":"A",{fields}}}"#));
        for (json, named) in [
            (String::new(), "It is not JSON"),
            (with(r#"{"name":"A"}"#)[..40].to_owned(), "It is not JSON"),
            ("[]".to_owned(), "not a file with presets"),
            (
                r#"{"title":"A chat"}"#.to_owned(),
                "not a file with presets",
            ),
            (with("").replace(":1,", ":2,"), "newer version"),
            (with("").replace(":1,", ":\"1\","), "“version” is not 1"),
            (with(""), "“presets” has 0 entries"),
            (
                with("").replace("\"version\"", "\"more\":0,\"version\""),
                "“more” is not known here",
            ),
            (with("7"), "“presets[0]” is not an object"),
            (
                with(r#"{"instructions":"x"}"#),
                "“presets[0].name” is missing",
            ),
            (
                with(r#"{"name":"A"},{"name":7}"#),
                "“presets[1].name” is not text",
            ),
            (
                with(r#"{"name":" \n"}"#),
                "“presets[0]”: The name of a preset cannot be empty",
            ),
            (
                fields(r#""thinking":"yes""#),
                "“presets[0].thinking” is neither",
            ),
            (
                fields(r#""temprature":1"#),
                "“presets[0].temprature” is not known",
            ),
            (
                fields(r#""sampling":{"top_p":1}"#),
                "“presets[0].sampling.top_p” is not known",
            ),
            (
                fields(r#""sampling":{"temperature":"hot"}"#),
                "“presets[0].sampling.temperature”",
            ),
            (
                fields(r#""sampling":{"topK":"40"}"#),
                "“presets[0].sampling.topK” is not a number",
            ),
            (fields(r#""sampling":[1]"#), "“presets[0].sampling” is not"),
            (
                fields(&format!(r#""instructions":"{}""#, "x".repeat(20_001))),
                "Instructions: they have at most 20,000 characters",
            ),
        ] {
            let refused = refusal(&json);
            assert!(refused.contains(named), "{json}: {refused}");
        }
        let deep = "[".repeat(100_000);
        assert!(refusal(&deep).contains("It is not JSON"), "and no overflow");
    }

    #[test]
    fn a_value_out_of_range_becomes_the_nearest_one_in_it() {
        for parameter in SAMPLING_PARAMETERS {
            let Parameter { key, min, max, .. } = parameter;
            for (given, expected) in [(min - 1.0, min), (max + 10.0, max), (1e300, max)] {
                let json = with(&format!(
                    r#"{{"name":"A","sampling":{{"{key}":{given:e}}}}}"#
                ));
                let read = from_json(json.as_bytes(), "file").expect("it is read");
                let sampling = serde_json::to_value(read.presets[0].sampling).expect("plain data");
                let found = sampling[key].as_f64().expect("a number");
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{key}: {given} became {found}"
                );
            }
        }
    }

    #[test]
    fn a_file_that_is_too_large_or_missing_is_refused_with_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("big.json");
        let file = File::create(&path).expect("a file");
        file.set_len(MAX_BYTES as u64 + 1).expect("a sparse file");
        let refused = read(&path).expect_err("it is too large").message;
        assert!(
            refused.starts_with("big.json was not imported. It is larger"),
            "{refused}"
        );
        let refused = read(&folder.path().join("gone.json"))
            .expect_err("it is gone")
            .message;
        assert!(
            refused.starts_with("gone.json was not imported. It could not be read"),
            "{refused}"
        );
    }

    #[test]
    fn a_file_that_could_not_be_read_again_is_not_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("presets.json");
        let long = PresetContent {
            name: "Long".into(),
            instructions: "ä".repeat(20_000),
            thinking: None,
            sampling: SamplingSettings::default(),
            tools: None,
        };
        let refused = write(&path, &vec![long.clone(); 40]).expect_err("it is too long");
        assert!(
            refused.message.contains("Export fewer"),
            "{}",
            refused.message
        );
        assert!(!path.exists());
        let presets = vec![long; 20];
        write(&path, &presets).expect("it is written");
        assert_eq!(read(&path).expect("it is read").presets, presets);
    }
}

//! The JSON files of a folder.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::QuantizeError;
use crate::model::open_regular;

/// SmolLM3's `tokenizer.json` has 17 MB. It is read into a type of its own, so that a token costs little more than its
/// bytes.
pub(super) const LONGEST_VOCABULARY: u64 = 256 << 20;
/// Settings, templates and model cards. A [`Value`] takes up to twenty times the bytes of its text.
pub(super) const LONGEST: u64 = 1 << 20;

/// Reads the text of a file of at most `longest` bytes.
pub(super) fn read_text(path: &Path, longest: u64) -> Result<String, QuantizeError> {
    let (file, len) = open_regular(path, longest)?;
    let mut bytes = Vec::new();
    let read = (file.take(len)).read_to_end(&mut bytes);
    read.map_err(|error| QuantizeError::input(path, format!("cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|_| QuantizeError::input(path, "it is not UTF-8 text"))
}

/// Reads a file's JSON.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, QuantizeError> {
    let text = read_text(path, LONGEST)?;
    serde_json::from_str(&text).map_err(|error| {
        QuantizeError::input(path, format!("not the JSON that is expected: {error}"))
    })
}

/// Reads the JSON object of a file; `None` if there is no such file.
pub(super) fn read_optional(path: &Path) -> Result<Option<JsonFile>, QuantizeError> {
    if !path.try_exists().unwrap_or(true) {
        return Ok(None);
    }
    JsonFile::read(path).map(Some)
}

/// A JSON object and the file that it is in.
pub(super) struct JsonFile {
    pub(super) path: PathBuf,
    pub(super) value: Value,
}

impl JsonFile {
    pub(super) fn read(path: &Path) -> Result<JsonFile, QuantizeError> {
        let value: Value = read(path)?;
        if !value.is_object() {
            return Err(QuantizeError::input(path, "it is not a JSON object"));
        }
        Ok(JsonFile {
            path: path.to_owned(),
            value,
        })
    }

    /// Returns the value of a key that exists and is not null.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.value.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn fail(&self, key: &str, problem: impl ToString) -> QuantizeError {
        QuantizeError::key(&self.path, key, problem)
    }

    /// Returns a required whole number.
    pub(super) fn count(&self, key: &str) -> Result<u32, QuantizeError> {
        self.optional_count(key)?
            .ok_or_else(|| self.fail(key, "is missing"))
    }

    /// Returns a whole number, if there is one.
    pub(super) fn optional_count(&self, key: &str) -> Result<Option<u32>, QuantizeError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
        count
            .map(Some)
            .ok_or_else(|| self.fail(key, "is not a whole number of 32 bits"))
    }

    /// Returns a required number.
    pub(super) fn number(&self, key: &str) -> Result<f32, QuantizeError> {
        let value = self.get(key).ok_or_else(|| self.fail(key, "is missing"))?;
        number(value).ok_or_else(|| self.fail(key, "is not a number"))
    }

    /// Returns a boolean; `default` if there is none.
    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool, QuantizeError> {
        match self.get(key) {
            None => Ok(default),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| self.fail(key, "is not true or false")),
        }
    }
}

/// Returns a number as GGUF stores it.
#[expect(clippy::cast_possible_truncation, reason = "GGUF stores these as f32")]
pub(super) fn number(value: &Value) -> Option<f32> {
    value.as_f64().map(|value| value as f32)
}

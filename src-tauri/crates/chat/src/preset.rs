//! Presets: instructions, thinking and sampling under a name.

pub mod file;
mod foreign;
pub(crate) mod guidance;
pub(crate) mod stored;

use serde::{Deserialize, Serialize};
use std::path::Path;

use store::{PresetId, PresetRow};

use crate::failure::Failure;
use crate::settings::{SamplingSettings, validate_instructions, validate_tools};
use crate::{text, title};

/// Maximum number of presets.
pub(crate) const MOST: usize = 500;

/// A preset.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct Preset {
    /// Its id.
    pub id: PresetId,
    /// Content of the preset.
    #[serde(flatten)]
    pub content: PresetContent,
}

/// Content of a preset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PresetContent {
    /// Its name, which no other preset has.
    pub name: String,
    /// Instructions; if empty, those of the settings apply.
    pub instructions: String,
    /// Thinking in new chats; `None`: the settings apply.
    pub thinking: Option<bool>,
    /// Overrides of the sampling parameters; for the rest the settings apply.
    pub sampling: SamplingSettings,
    /// Names of the tools that are on; `None`: the settings apply.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

/// Presets read from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadPresets {
    /// The presets.
    pub presets: Vec<PresetContent>,
    /// Parts of another app's preset that have no counterpart here.
    pub left_out: Vec<String>,
}

impl PresetContent {
    /// Checks the content and normalises its name. Names the invalid field on failure.
    pub(crate) fn validated(self) -> Result<PresetContent, Failure> {
        self.sampling.validate()?;
        validate_instructions(&self.instructions)?;
        validate_tools(self.tools.as_deref().unwrap_or_default())?;
        Ok(PresetContent {
            name: title::of_preset(&self.name)?,
            ..self
        })
    }

    pub(crate) fn row(&self, id: PresetId) -> Result<PresetRow, Failure> {
        let sampling = serde_json::to_value(self.sampling)
            .map_err(|error| Failure::other(error.to_string()))?;
        Ok(PresetRow {
            id,
            name: self.name.clone(),
            instructions: self.instructions.clone(),
            thinking: self.thinking,
            sampling,
            tools: self.tools.clone(),
        })
    }
}

impl From<PresetRow> for Preset {
    fn from(row: PresetRow) -> Preset {
        Preset {
            id: row.id,
            content: PresetContent {
                name: row.name,
                instructions: row.instructions,
                thinking: row.thinking,
                sampling: SamplingSettings::stored(&row.sampling),
                tools: row.tools,
            },
        }
    }
}

/// Returns the preset of this name in the database of an app, which may be running.
pub fn named(database: &Path, name: &str) -> Result<PresetContent, Failure> {
    let presets = match store::read_presets(database) {
        Ok(rows) => rows
            .into_iter()
            .map(|row| Preset::from(row).content)
            .collect(),
        // The app was never started.
        Err(_) if !database.exists() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let found = presets
        .iter()
        .position(|preset: &PresetContent| same_name(&preset.name, name.trim()));
    match found {
        Some(at) => Ok(presets[at].clone()),
        None if presets.is_empty() => Err(Failure::other(format!(
            "There is no preset “{name}”: the app has none."
        ))),
        None => {
            let names: Vec<_> = presets.iter().map(|preset| preset.name.as_str()).collect();
            Err(Failure::other(format!(
                "There is no preset “{name}”. The app has: {}.",
                text::cut(&names.join(", "), 1000)
            )))
        }
    }
}

/// Returns whether two names look the same to a person.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Returns `name`, or the first of `name 2`, `name 3` and so on that is not taken.
pub(crate) fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(name) {
        return name.to_owned();
    }
    let base = match numbered_base(name) {
        Some((base, _)) if is_taken(base) => base,
        _ => name,
    };
    (2_u32..)
        .map(|number| numbered(base, number))
        .find(|name| !is_taken(name))
        .unwrap_or_else(|| name.to_owned())
}

/// Returns whether `name` is one that [`free_name`] derives from `of`.
pub(crate) fn is_numbered(name: &str, of: &str) -> bool {
    let Some((_, number)) = numbered_base(name) else {
        return false;
    };
    let bases = [Some(of), numbered_base(of).map(|(base, _)| base)];
    let mut bases = bases.into_iter().flatten();
    bases.any(|base| same_name(name, &numbered(base, number)))
}

fn numbered(base: &str, number: u32) -> String {
    let end = format!(" {number}");
    let begin: String = base.chars().take(title::PRESET - end.len()).collect();
    begin.trim_end().to_owned() + &end
}

/// Splits a name that ends in a number.
fn numbered_base(name: &str) -> Option<(&str, u32)> {
    let (base, number) = name.rsplit_once(' ')?;
    Some((base, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_the_next_number() {
        let taken = ["Coder", "coder 2", "Top 10"];
        let free = |name: &str| free_name(name, |it| taken.iter().any(|one| same_name(one, it)));
        assert_eq!(free("Poet"), "Poet");
        assert_eq!(free("coder"), "coder 3");
        assert_eq!(free("Coder 2"), "Coder 3");
        assert_eq!(free("Top 10"), "Top 10 2");
        let long = "ö".repeat(title::PRESET);
        let next = free_name(&long, |it| it == long);
        assert_eq!(next, "ö".repeat(title::PRESET - 2) + " 2");
        for (name, of) in [("coder 3", "Coder"), ("Coder 3", "Coder 2"), (&next, &long)] {
            assert!(is_numbered(name, of), "{name}");
        }
        for (name, of) in [
            ("Coder", "Coder"),
            ("Poet 2", "Coder"),
            ("Coder x", "Coder"),
        ] {
            assert!(!is_numbered(name, of), "{name}");
        }
    }

    #[test]
    fn a_name_is_one_line_and_has_an_end() {
        let name = |given: &str| title::of_preset(given).map_err(|failure| failure.message);
        assert_eq!(name("  My\n\tpreset \u{7} "), Ok("My preset".to_owned()));
        assert_eq!(
            name(" \n"),
            Err("The name of a preset cannot be empty.".to_owned())
        );
        let refused = name(&"x".repeat(1 << 20)).expect_err("it is too long");
        assert!(
            refused.contains("60 characters") && refused.len() < 300,
            "{refused}"
        );
    }
}

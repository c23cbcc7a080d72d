//! Where words go: answers to stdout, everything else to stderr, and an exit code at the end.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a subcommand failed: one sentence for the person.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("{0}")]
    Message(String),
    /// Ctrl+C ended the work; there is nothing to explain.
    #[error("interrupted")]
    Interrupted,
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    pub fn message(text: impl Into<String>) -> Self {
        Self::Message(text.into())
    }

    /// A failure that belongs to a file: `FILE: what is wrong with it`.
    pub fn file(path: &std::path::Path, error: impl std::fmt::Display) -> Self {
        Self::Message(format!("{}: {error}", path.display()))
    }
}

/// Prints the failure, if any. A reader that went away (`goldcrest … | head`) is none.
pub fn exit_code(result: Result<(), CliError>) -> ExitCode {
    exit_code_or(ExitCode::FAILURE, result)
}

/// The same, with the code of a failure.
pub fn exit_code_or(failure: ExitCode, result: Result<(), CliError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(CliError::Interrupted) => ExitCode::from(130),
        Err(error) => {
            let _ = writeln!(io::stderr(), "goldcrest: {}", visible(&error.to_string()));
            failure
        }
    }
}

/// Prints one value as JSON on a line of its own.
pub fn json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string(value).map_err(io::Error::from)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", as_json(&text))?;
    Ok(out.flush()?)
}

/// JSON escapes the first control characters, and may escape the others too.
fn as_json(text: &str) -> Cow<'_, str> {
    replaced(text, |character| {
        character
            .is_control()
            .then(|| format!("\\u{:04x}", u32::from(character)))
    })
}

/// A text of unknown origin as a terminal may show it: control characters, which could set its title or write to the
/// clipboard, are spelt out. Lines and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |character| {
        (character.is_control() && !matches!(character, '\n' | '\t'))
            .then(|| character.escape_default().to_string())
    })
}

fn replaced(text: &str, other: impl Fn(char) -> Option<String>) -> Cow<'_, str> {
    if text.chars().all(|character| other(character).is_none()) {
        return Cow::Borrowed(text);
    }
    let characters = text.chars();
    Cow::Owned(
        characters
            .map(|character| other(character).unwrap_or_else(|| character.to_string()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelt_out() {
        assert_eq!(visible("Grüße,\n\t你好"), "Grüße,\n\t你好");
        assert_eq!(
            visible("a\u{1b}]52;c;eA==\u{7}b\u{9b}31m\r\u{7f}"),
            "a\\u{1b}]52;c;eA==\\u{7}b\\u{9b}31m\\r\\u{7f}"
        );
    }

    #[test]
    fn json_holds_no_control_character_and_says_the_same() {
        let value = serde_json::json!({ "a\u{9b}": "\u{1b}\u{7f}\n" });
        let text = serde_json::to_string(&value).expect("plain data");
        let printed = as_json(&text);
        assert!(!printed.contains(char::is_control));
        let read: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(read, value);
    }
}

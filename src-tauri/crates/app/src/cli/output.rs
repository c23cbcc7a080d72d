//! Output of the command line: answers to stdout, everything else to stderr, and an exit code at the end.
//!
//! All output of a subcommand goes through [`stdout`] or [`stderr`], which escape the characters that control a
//! terminal; only [`content`] and [`reasoning`] pass a text unchanged, to a pipe.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Stderr, Stdout, Write};
use std::process::ExitCode;

use chat::Failure;
use figures::{count, is_obeyed};

use crate::visible::{Visible, on_one_line, replaced, visible};

/// Maximum characters of a failure: it may quote a whole file.
const FAILURE_LENGTH: usize = 2_000;

/// Failures of a subcommand: one sentence for the person.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("{0}")]
    Message(String),
    /// The model ended its turn after its thinking.
    #[error(
        "the model ended after its thinking and wrote no answer; ask again, or with --no-think"
    )]
    NoAnswer,
    /// Ctrl+C ended the work; there is nothing to explain.
    #[error("interrupted")]
    Interrupted,
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl From<Failure> for CliError {
    fn from(failure: Failure) -> Self {
        Self::Message(failure.message)
    }
}

impl CliError {
    pub fn message(text: impl Into<String>) -> Self {
        Self::Message(text.into())
    }

    /// Makes the failure of a file: `FILE: its fault`.
    pub fn file(path: &std::path::Path, error: impl std::fmt::Display) -> Self {
        Self::Message(format!("{}: {error}", path.display()))
    }

    /// Returns the failure on one line that fits on a screen.
    pub fn sentence(&self) -> String {
        let mut sentence = on_one_line(&self.to_string()).into_owned();
        if let Some((end, _)) = sentence.char_indices().nth(FAILURE_LENGTH) {
            let rest = sentence[end..].chars().count();
            sentence.truncate(end);
            sentence.push_str(&format!(
                "… ({} more characters are not shown)",
                count(rest)
            ));
        }
        sentence
    }
}

/// Returns the escaped stdout.
pub fn stdout() -> Visible<Stdout> {
    Visible(io::stdout())
}

/// Returns the escaped stderr.
pub fn stderr() -> Visible<Stderr> {
    Visible(io::stderr())
}

/// Returns the writer of a text that is itself the result: byte for byte on a pipe, and escaped on a terminal.
pub fn content() -> Box<dyn Write> {
    if is_terminal() {
        Box::new(stdout())
    } else {
        Box::new(io::stdout())
    }
}

/// Prints a piece of reasoning: byte for byte on a pipe; escaped, and dimmed, on a terminal.
pub fn reasoning(piece: &str) -> io::Result<()> {
    let mut out = io::stderr();
    if out.is_terminal() {
        write!(out, "\x1b[2m{}\x1b[0m", visible(piece))?;
    } else {
        write!(out, "{piece}")?;
    }
    out.flush()
}

/// Returns whether stdout is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Exit status without an answer.
const NO_ANSWER: u8 = 3;

/// Prints the failure, if any, and returns the exit code. A reader that went away (`goldcrest … | head`) is no failure.
pub fn exit_code(result: Result<(), CliError>) -> ExitCode {
    exit_code_or(ExitCode::FAILURE, result)
}

/// Likewise, with the exit code of a failure.
pub fn exit_code_or(failure: ExitCode, result: Result<(), CliError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(CliError::Interrupted) => ExitCode::from(130),
        Err(error) => {
            let _ = writeln!(stderr(), "goldcrest: {}", error.sentence());
            match error {
                CliError::NoAnswer => ExitCode::from(NO_ANSWER),
                _ => failure,
            }
        }
    }
}

/// Prints one value as a line of JSON.
pub fn json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string(value).map_err(io::Error::from)?;
    let mut out = stdout();
    writeln!(out, "{}", as_json(&text))?;
    Ok(out.flush()?)
}

/// Escapes further control characters in JSON, which escapes only the first ones itself.
fn as_json(text: &str) -> Cow<'_, str> {
    replaced(text, |character| {
        is_obeyed(character).then(|| format!("\\u{:04x}", u32::from(character)))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn json_holds_nothing_that_a_terminal_obeys_and_says_the_same() {
        let value = serde_json::json!({ "a\u{9b}": "\u{1b}\u{7f}\n\u{202e}" });
        let text = serde_json::to_string(&value).expect("plain data");
        let printed = as_json(&text);
        assert!(!printed.contains(is_obeyed));
        let read: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(read, value);
    }

    #[test]
    fn a_long_failure_is_cut_and_says_so() {
        let whole = "ü".repeat(FAILURE_LENGTH);
        assert_eq!(CliError::message(&*whole).sentence(), whole);
        let long = CliError::message("ü".repeat(FAILURE_LENGTH + 1_234)).sentence();
        assert_eq!(long, whole + "… (1,234 more characters are not shown)");
    }

    /// Checks that no other file has the streams: a subcommand that printed by itself would print names unescaped.
    #[test]
    fn this_file_alone_has_the_streams() {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli")];
        let (mut files, mut in_folders) = (0, 0);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("the subcommands") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    in_folders += 1;
                } else if !path.ends_with("cli/output.rs") {
                    let source = std::fs::read_to_string(&path).expect("UTF-8");
                    for stream in ["io::stdout(", "io::stderr("] {
                        assert!(!source.contains(stream), "{}: {stream})", path.display());
                    }
                    files += 1;
                }
            }
        }
        assert!(files > 15 && in_folders > 1, "{files} files were read");
    }
}

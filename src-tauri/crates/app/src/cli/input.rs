//! Input of a person: on a terminal an editable line, with history and completion of commands.

use std::io::{self, IsTerminal, StdinLock, Write};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};

use super::output::{self, CliError};
use super::text::PipedLines;

const PROMPT: &str = "› ";

pub enum Input {
    /// Editable lines. The history is in memory: a conversation in the terminal is not stored.
    Terminal(Box<Editor<Commands, MemHistory>>),
    /// Unprocessed lines of a pipe.
    Piped(PipedLines<StdinLock<'static>>),
}

impl Input {
    /// Opens the input: editable if input and output are a terminal. The Tab key completes the names of `commands`.
    pub fn new(commands: impl Iterator<Item = &'static str>) -> Result<Self, CliError> {
        if !io::stdin().is_terminal() || !output::is_terminal() {
            return Ok(Self::Piped(PipedLines::of(io::stdin().lock())));
        }
        let config = Config::builder().auto_add_history(true).build();
        let mut editor = Editor::with_history(config, MemHistory::new()).map_err(unreadable)?;
        editor.set_helper(Some(Commands(commands.collect())));
        Ok(Self::Terminal(Box::new(editor)))
    }

    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// Returns the next message; `None` at the end of the input.
    pub fn read(&mut self) -> Result<Option<String>, CliError> {
        match self {
            Self::Terminal(editor) => read_typed(editor),
            Self::Piped(lines) => {
                let Some((line, is_utf8)) = lines.next()? else {
                    return Ok(None);
                };
                if !is_utf8 {
                    writeln!(
                        output::stderr(),
                        "A line of the input is not UTF-8: unreadable bytes were replaced by \u{fffd}."
                    )?;
                }
                Ok(Some(line))
            }
        }
    }
}

fn read_typed(editor: &mut Editor<Commands, MemHistory>) -> Result<Option<String>, CliError> {
    writeln!(output::stdout())?;
    let mut interrupted = false;
    loop {
        match editor.readline(PROMPT) {
            Ok(line) => return Ok(Some(joined(&line))),
            Err(ReadlineError::Eof) => return Ok(None),
            Err(ReadlineError::Interrupted) if interrupted => return Err(CliError::Interrupted),
            Err(ReadlineError::Interrupted) => {
                interrupted = true;
                writeln!(output::stdout(), "Ctrl+C again, or Ctrl+D, leaves.")?;
            }
            Err(error) => return Err(unreadable(error)),
        }
    }
}

fn unreadable(error: ReadlineError) -> CliError {
    CliError::message(format!("the input cannot be read: {error}"))
}

/// Joins lines that end in a backslash with the next.
fn joined(lines: &str) -> String {
    lines.replace("\\\n", "\n")
}

/// The names of the commands of a conversation.
pub struct Commands(Vec<&'static str>);

impl Commands {
    fn beginning_with(&self, typed: &str) -> Vec<String> {
        let Some(typed) = typed.strip_prefix('/') else {
            return Vec::new();
        };
        let fits = self.0.iter().filter(|name| name.starts_with(typed));
        fits.map(|name| format!("/{name}")).collect()
    }
}

impl Completer for Commands {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..position).unwrap_or_default();
        Ok((0, self.beginning_with(typed)))
    }
}

impl Validator for Commands {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if context.input().ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Hinter for Commands {
    type Hint = String;
}

impl Highlighter for Commands {}

impl Helper for Commands {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_completed_from_its_beginning_alone() {
        let commands = Commands(vec!["new", "no_think"]);
        assert_eq!(commands.beginning_with("/n"), ["/new", "/no_think"]);
        assert_eq!(commands.beginning_with("/no"), ["/no_think"]);
        for other in ["", "n", "what is /n", "/x"] {
            assert!(commands.beginning_with(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn lines_that_end_in_a_backslash_are_one_message() {
        assert_eq!(joined("one\\\ntwo\\\nthree"), "one\ntwo\nthree");
        assert_eq!(joined("C:\\new"), "C:\\new");
    }
}

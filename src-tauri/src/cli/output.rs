//! Where words go: answers to stdout, everything else to stderr, and an exit code at the end.

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
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(CliError::Interrupted) => ExitCode::from(130),
        Err(error) => {
            let _ = writeln!(io::stderr(), "goldcrest: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints one value as JSON on a line of its own.
pub fn json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

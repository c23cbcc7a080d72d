//! A tool, and a run of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use inference::{ToolDefinition, ToolOutcome};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool of the app, or of an MCP server.
pub trait Tool: Send + Sync {
    /// Returns its description.
    fn info(&self) -> Arc<ToolInfo>;

    /// Runs it. Blocks until it ends, the deadline passes, or it is cancelled.
    ///
    /// # Errors
    /// Fails if the arguments are wrong, the tool fails, or it ended early.
    fn run(
        &self,
        arguments: &Map<String, Value>,
        run: &ToolRun<'_>,
    ) -> Result<ToolOutput, ToolError>;
}

/// Description of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInfo {
    /// The tool as the model sees it.
    pub definition: ToolDefinition,
    /// Name for the user.
    pub title: String,
    /// Its origin.
    pub source: ToolSource,
    /// Its effects.
    pub effects: Effects,
}

impl ToolInfo {
    /// Describes a built-in tool.
    pub(crate) fn built_in(
        name: &str,
        title: &str,
        description: &str,
        parameters: Value,
        effects: Effects,
    ) -> ToolInfo {
        ToolInfo {
            definition: ToolDefinition {
                name: name.to_owned(),
                description: description.to_owned(),
                parameters,
                code: None,
            },
            title: title.to_owned(),
            source: ToolSource::BuiltIn,
            effects,
        }
    }
}

/// Returns the text of an argument; empty if there is none.
pub(crate) fn text_of<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    let text = arguments.get(name).and_then(Value::as_str);
    text.unwrap_or_default().trim()
}

/// Origin of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ToolSource {
    /// It comes with the app.
    BuiltIn,
    /// An MCP server.
    Server {
        /// Name of the server in the settings.
        name: String,
    },
}

/// Effects of a tool beyond its result. Without any it is pure, and runs without consent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// It reads chats.
    pub reads_chats: bool,
    /// It may read files.
    pub reads_files: bool,
    /// It may change things outside the chat.
    pub changes: bool,
    /// It may use the network.
    pub network: bool,
}

impl Effects {
    /// Returns true if it has none.
    #[must_use]
    pub fn is_pure(self) -> bool {
        self == Effects::default()
    }
}

/// Limits of a run, and the functions that a program may call in it.
pub struct ToolRun<'a> {
    /// Time at which it is ended.
    pub deadline: Instant,
    /// Flag that ends it.
    pub cancel: &'a AtomicBool,
    /// Tools that a program may call as functions. They run without further consent.
    pub functions: &'a [Arc<dyn Tool>],
    /// Id of the chat that calls it, in which it does not search.
    pub chat: Option<i64>,
}

impl ToolRun<'_> {
    /// Returns the error of a run that must end.
    ///
    /// # Errors
    /// Fails if it was cancelled, or its deadline has passed.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(ToolError::Cancelled);
        }
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(ToolError::TimedOut),
        }
    }
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The result: JSON, Markdown or plain text.
    pub text: String,
}

impl ToolOutput {
    /// Makes a result.
    pub fn new(text: impl Into<String>) -> ToolOutput {
        ToolOutput { text: text.into() }
    }
}

/// Error of a run. Its message is for the model and the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The tool failed, or the arguments were wrong.
    #[error("{0}")]
    Failed(String),
    /// The deadline passed.
    #[error("The tool took too long and was ended.")]
    TimedOut,
    /// It was cancelled.
    #[error("The tool was stopped.")]
    Cancelled,
}

impl ToolError {
    /// Returns the end of the call.
    #[must_use]
    pub fn outcome(&self) -> ToolOutcome {
        match self {
            ToolError::Failed(_) | ToolError::TimedOut => ToolOutcome::Failed,
            ToolError::Cancelled => ToolOutcome::NotRun,
        }
    }
}

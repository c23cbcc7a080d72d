//! The states of the servers, as the window shows them.

use std::sync::Arc;

use serde::Serialize;
use tools::{Effects, ToolInfo};

use crate::sandbox::Sandbox;

/// State of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ServerState {
    /// Its name in the settings.
    pub name: String,
    /// Its status.
    pub status: ServerStatus,
    /// Its tools, while it is ready.
    pub tools: Vec<ServerTool>,
    /// Its sandbox.
    pub sandbox: Sandbox,
    /// The end of its stderr.
    pub log_tail: String,
    /// Sentence on what went wrong last.
    pub last_error: Option<String>,
}

/// Status of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ServerStatus {
    /// It does not run, as the user wishes.
    Stopped,
    /// It is being started.
    Starting,
    /// It runs.
    Ready,
    /// It could not be started, or has ended too often.
    Failed {
        /// Sentence on the reason.
        reason: String,
    },
    /// It has ended by itself, and is started again soon.
    Ended {
        /// Sentence on the reason.
        reason: String,
    },
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ServerTool {
    /// Name for the model.
    pub name: String,
    /// Name that the server gave it.
    pub own_name: String,
    /// Title for the user.
    pub title: String,
    /// Description.
    pub description: String,
    /// Its effects.
    pub effects: Effects,
    /// True if the server says that it changes nothing. Nobody checks that.
    pub claims_read_only: bool,
    /// Sentence on why the model does not get it.
    pub unusable: Option<String>,
    /// Hash of all that the server says about it. Another one makes it another tool.
    pub hash: String,
}

/// A tool with what the model needs.
#[derive(Clone)]
pub struct ListedTool {
    /// The tool as it is shown.
    pub shown: ServerTool,
    /// Its description; none if it is unusable.
    pub info: Option<Arc<ToolInfo>>,
}

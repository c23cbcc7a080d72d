//! Requests to the thread of the servers.

use std::sync::mpsc::SyncSender;

use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tools::{ToolError, ToolOutput};

use crate::supervisor::Supervised;

/// A request to the thread.
pub enum ServerRequest {
    /// Starts a server, in place of the one of its name.
    Start(Box<Supervised>),
    /// Stops a server.
    Stop(String),
    /// Calls a tool.
    Call {
        /// Name of the server.
        server: String,
        /// The server's own name of the tool.
        tool: String,
        arguments: Map<String, Value>,
        reply: SyncSender<Result<ToolOutput, ToolError>>,
        /// Ends when nobody waits for the result any more.
        abandoned: oneshot::Receiver<()>,
    },
    /// Stops all servers, and the thread.
    End,
}

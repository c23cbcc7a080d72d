//! A tool of a server.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tools::{Tool, ToolError, ToolInfo, ToolOutput, ToolRun};

use crate::request::ServerRequest;

/// Pause between two checks of the cancel flag.
const PAUSE: Duration = Duration::from_millis(20);

/// A tool of a server. It stays valid when the server is started again, and fails when that has no such tool any more.
pub struct McpTool {
    pub(crate) info: Arc<ToolInfo>,
    pub(crate) server: String,
    pub(crate) own_name: String,
    pub(crate) call_timeout: Duration,
    pub(crate) requests: mpsc::UnboundedSender<ServerRequest>,
}

impl Tool for McpTool {
    fn info(&self) -> Arc<ToolInfo> {
        self.info.clone()
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        run: &ToolRun<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let deadline = run.deadline.min(Instant::now() + self.call_timeout);
        let (reply, result) = sync_channel(1);
        // Dropping this cancels the call.
        let (_wanted, abandoned) = oneshot::channel();
        let request = ServerRequest::Call {
            server: self.server.clone(),
            tool: self.own_name.clone(),
            arguments: arguments.clone(),
            reply,
            abandoned,
        };
        let ended = || ToolError::Failed("The servers are stopped.".to_owned());
        self.requests.send(request).map_err(|_| ended())?;
        loop {
            if run.cancel.load(Ordering::Relaxed) {
                return Err(ToolError::Cancelled);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match result.recv_timeout(PAUSE.min(left)) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Disconnected) => return Err(ended()),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(ToolError::TimedOut);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

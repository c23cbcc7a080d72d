//! Messages to and from a server, each on a line of JSON.
//!
//! rmcp's own transport drops a line that is too long, and the call waits until its deadline. Here such a line ends the
//! connection, and so does too much that is no message. Notifications that nobody waits for go no further.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::ChildStdin;
use tokio::sync::Mutex;

/// Longest line, in bytes.
const LONGEST_LINE: usize = 4 << 20;
/// Lines that are no messages, between two messages.
const MOST_SKIPPED: usize = 1_000;
/// Messages that wait for a server to read its stdin.
const MOST_WAITING: usize = 256;
/// Lines that are skipped before other tasks get their turn.
const LINES_PER_TURN: usize = 64;

/// Reason for which a connection was ended here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportFault {
    /// A line was too long.
    LongLine,
    /// Its output is not MCP.
    NotMcp,
    /// It does not read what is sent to it.
    DoesNotRead,
}

impl TransportFault {
    /// Returns a sentence on the server.
    pub fn sentence(self) -> &'static str {
        match self {
            TransportFault::LongLine => "It sent a message of more than 4 MB, and was ended.",
            TransportFault::NotMcp => {
                "Its output is not MCP: is this an MCP server that uses stdio?"
            }
            TransportFault::DoesNotRead => "It does not read what is sent to it, and was ended.",
        }
    }
}

/// The connection to a server.
pub struct LineTransport<R> {
    stdout: BufReader<R>,
    /// The line as far as it was read: a read may be cancelled at any time.
    line: Vec<u8>,
    stdin: Arc<Mutex<Option<ChildStdin>>>,
    waiting: Arc<AtomicUsize>,
    skipped: usize,
    fault: Arc<OnceLock<TransportFault>>,
}

impl<R: AsyncRead + Unpin + Send> LineTransport<R> {
    /// Makes a connection of the ends of a server's pipes. `fault` is set before the connection ends because of one.
    pub fn new(stdout: R, stdin: ChildStdin, fault: Arc<OnceLock<TransportFault>>) -> Self {
        LineTransport {
            stdout: BufReader::with_capacity(64 << 10, stdout),
            line: Vec::new(),
            stdin: Arc::new(Mutex::new(Some(stdin))),
            waiting: Arc::default(),
            skipped: 0,
            fault,
        }
    }

    /// Reads to the end of the line; false at the end of the output.
    async fn read_line(&mut self) -> bool {
        loop {
            let Ok(bytes @ [_, ..]) = self.stdout.fill_buf().await else {
                return false;
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            if self.line.len() + taken > LONGEST_LINE {
                let _ = self.fault.set(TransportFault::LongLine);
                return false;
            }
            self.line.extend_from_slice(&bytes[..taken]);
            self.stdout.consume(taken);
            if end.is_some() {
                return true;
            }
        }
    }
}

impl<R: AsyncRead + Unpin + Send + 'static> Transport<RoleClient> for LineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (stdin, waiting) = (self.stdin.clone(), self.waiting.clone());
        let is_too_slow = waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING;
        if is_too_slow {
            let _ = self.fault.set(TransportFault::DoesNotRead);
        }
        async move {
            let sent = async {
                if is_too_slow {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                let mut line = serde_json::to_vec(&message)?;
                line.push(b'\n');
                let mut stdin = stdin.lock().await;
                let stdin = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
                stdin.write_all(&line).await?;
                stdin.flush().await
            };
            let result = sent.await;
            waiting.fetch_sub(1, Ordering::Relaxed);
            result
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut lines = 0;
        loop {
            if self.fault.get().is_some() || !self.read_line().await {
                return None;
            }
            let message = serde_json::from_slice::<RxJsonRpcMessage<RoleClient>>(&self.line);
            let is_blank = self.line.trim_ascii().is_empty();
            self.line.clear();
            self.line.shrink_to(64 << 10);
            match message {
                Ok(message) => {
                    self.skipped = 0;
                    if is_expected(&message) {
                        return Some(message);
                    }
                }
                Err(_) if is_blank => {}
                Err(error) => {
                    self.skipped += 1;
                    // The line itself may hold what is private.
                    tracing::debug!("a line of an MCP server is no message: {error}");
                    if self.skipped > MOST_SKIPPED {
                        let _ = self.fault.set(TransportFault::NotMcp);
                    }
                }
            }
            lines += 1;
            if lines % LINES_PER_TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A server that does not read its stdin holds the lock until it is killed.
        if let Ok(mut stdin) = self.stdin.try_lock() {
            stdin.take();
        }
        Ok(())
    }
}

/// Returns whether a message is one that the client acts on.
fn is_expected(message: &RxJsonRpcMessage<RoleClient>) -> bool {
    match message {
        JsonRpcMessage::Notification(it) => matches!(
            it.notification,
            ServerNotification::ToolListChangedNotification(_)
                | ServerNotification::SubscriptionsAcknowledgedNotification(_)
                | ServerNotification::CancelledNotification(_)
        ),
        _ => true,
    }
}

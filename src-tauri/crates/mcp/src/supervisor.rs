//! The task of a server: starts its program, lists its tools, starts it again after a crash, and ends it.

use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProtocolVersion, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer,
    RunningServiceCancellationToken, Subscription,
};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::call::Link;
use crate::clean;
use crate::config::ServerConfig;
use crate::launch::{Launch, network_hint};
use crate::listing;
use crate::log::StderrTail;
use crate::process::{self, ServerProcess};
use crate::sandbox::Sandbox;
use crate::state::{ListedTool, ServerStatus};
use crate::transport::{LineTransport, TransportFault};

/// Starts after a crash, each after a longer pause.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(8),
];
/// Time after which a running server has recovered from its crashes.
const RECOVERED: Duration = Duration::from_secs(300);
/// Pause before a changed list is asked for, and time limit for the answer.
const LIST_PAUSE: Duration = Duration::from_millis(200);
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for rmcp to close a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// Receiver of what a task reports.
pub trait StateReport: Send + Sync {
    /// Takes another status.
    fn status(&self, status: ServerStatus);
    /// Takes the tools.
    fn tools(&self, tools: Vec<ListedTool>);
    /// Takes a sentence on what went wrong.
    fn error(&self, sentence: String);
}

/// A server to run.
pub struct Supervised {
    pub config: ServerConfig,
    pub prefix: String,
    pub sandbox: Sandbox,
    pub handshake_timeout: Duration,
    pub tail: StderrTail,
    pub report: Box<dyn StateReport>,
    pub link: watch::Sender<Link>,
}

/// End of a run of the program.
enum RunEnd {
    /// It was to stop.
    Stopped,
    /// It could not be started.
    Failed(String),
    /// It ended by itself.
    Crashed { reason: String, ran: Duration },
}

impl Supervised {
    /// Runs the server until `stop` is dropped.
    pub async fn run(self, mut stop: oneshot::Receiver<()>) {
        let mut crashes = 0;
        loop {
            self.report.status(ServerStatus::Starting);
            self.link.send_replace(Link::Starting);
            let outcome = self.run_once(&mut stop).await;
            self.report.tools(Vec::new());
            match outcome {
                RunEnd::Stopped => break,
                RunEnd::Failed(reason) => return self.fail(reason),
                RunEnd::Crashed { reason, ran } => {
                    crashes = if ran > RECOVERED { 0 } else { crashes };
                    let Some(pause) = PAUSES.get(crashes) else {
                        return self.fail(format!("It ended {} times. {reason}", crashes + 1));
                    };
                    crashes += 1;
                    self.link.send_replace(Link::Down(reason.clone()));
                    self.report.error(reason.clone());
                    self.report.status(ServerStatus::Ended { reason });
                    tokio::select! {
                        _ = &mut stop => break,
                        () = sleep(*pause) => {}
                    }
                }
            }
        }
        self.link
            .send_replace(Link::Down("It is switched off.".to_owned()));
        self.report.status(ServerStatus::Stopped);
    }

    fn fail(&self, reason: String) {
        self.link.send_replace(Link::Down(reason.clone()));
        self.report.error(reason.clone());
        self.report.status(ServerStatus::Failed { reason });
    }

    async fn run_once(&self, stop: &mut oneshot::Receiver<()>) -> RunEnd {
        let deadline = Instant::now() + self.handshake_timeout;
        // Servers of today begin with `initialize`. Those of 2026-07-28 that have no such request refuse it.
        let mut first = self
            .attempt(ClientLifecycleMode::Initialize, deadline, stop)
            .await;
        if let Attempt::Refused(_) = first {
            let preferred_versions = vec![ProtocolVersion::LATEST];
            let discover = ClientLifecycleMode::Discover { preferred_versions };
            first = self.attempt(discover, deadline, stop).await;
        }
        let (running, list) = match first {
            Attempt::Ready(running, list) => (running, list),
            Attempt::Stopped => return RunEnd::Stopped,
            Attempt::Refused(reason) | Attempt::Failed(reason) => {
                return RunEnd::Failed(self.explained(reason));
            }
        };
        self.show(&list);
        self.link.send_replace(Link::Up(running.peer.clone()));
        self.report.status(ServerStatus::Ready);
        self.watch(running, stop).await
    }

    /// Adds the hint on the network to a reason, and the last line of the log.
    fn explained(&self, reason: String) -> String {
        let line = self
            .tail
            .last_line()
            .map(|line| format!(" It wrote: {line}"));
        let hint = network_hint(&self.config, &self.sandbox).map(|hint| format!(" {hint}"));
        let [line, hint] = [line, hint].map(Option::unwrap_or_default);
        self.tail.without_secrets(&format!("{reason}{hint}{line}"))
    }

    async fn attempt(
        &self,
        lifecycle: ClientLifecycleMode,
        deadline: Instant,
        stop: &mut oneshot::Receiver<()>,
    ) -> Attempt {
        let mut running = match self.start(lifecycle, deadline, stop).await {
            Ok(running) => running,
            Err(attempt) => return attempt,
        };
        let peer = running.peer.clone();
        let list = tokio::select! {
            list = timeout_at(deadline, listing::ask(&peer)) => list,
            _ = &mut *stop => {
                running.end().await;
                return Attempt::Stopped;
            }
        };
        match list {
            Ok(Ok(list)) => {
                running.subscription = subscribe(&peer).await;
                Attempt::Ready(Box::new(running), list)
            }
            Ok(Err(error)) => {
                let fault = running.fault.get().copied();
                let status = running.end().await;
                let said = clean::line(&error.to_string(), 200);
                Attempt::Failed(match fault {
                    Some(fault) => fault.sentence().to_owned(),
                    None if status.is_some_and(|it| !it.success()) => {
                        format!(
                            "It ended {} when it was asked for its tools.",
                            process::ending(status)
                        )
                    }
                    None => format!("It did not list its tools: {said}."),
                })
            }
            Err(_) => {
                running.end().await;
                Attempt::Failed(late(self.handshake_timeout, "list its tools"))
            }
        }
    }

    /// Starts the program and shakes hands.
    async fn start(
        &self,
        lifecycle: ClientLifecycleMode,
        deadline: Instant,
        stop: &mut oneshot::Receiver<()>,
    ) -> Result<RunningServer, Attempt> {
        let launch = Launch::of(&self.config, &self.sandbox).map_err(Attempt::Failed)?;
        let (process, pipes) = ServerProcess::spawn(launch).map_err(|error| {
            Attempt::Failed(format!("Its program could not be started: {error}."))
        })?;
        tokio::spawn(self.tail.clone().fill(pipes.stderr));
        let fault = Arc::new(OnceLock::new());
        let changed = Arc::new(Notify::new());
        let handler = ListChanges(changed.clone());
        let transport = LineTransport::new(pipes.stdout, pipes.stdin, fault.clone());
        let handshake = handler.serve_with_lifecycle(transport, lifecycle);
        let result = tokio::select! {
            result = timeout_at(deadline, handshake) => result,
            _ = stop => {
                process.end().await;
                return Err(Attempt::Stopped);
            }
        };
        match result {
            Ok(Ok(connection)) => Ok(RunningServer {
                peer: connection.peer().clone(),
                token: connection.cancellation_token(),
                task: tokio::spawn(async {
                    let _ = connection.waiting().await;
                }),
                process,
                fault,
                changed,
                subscription: None,
            }),
            Ok(Err(error)) => {
                let status = process.end().await;
                Err(unanswered(&error, fault.get().copied(), status))
            }
            Err(_) => {
                process.end().await;
                Err(Attempt::Failed(late(self.handshake_timeout, "answer")))
            }
        }
    }

    /// Follows a running server until it ends or is to stop.
    async fn watch(
        &self,
        mut running: Box<RunningServer>,
        stop: &mut oneshot::Receiver<()>,
    ) -> RunEnd {
        let began = Instant::now();
        loop {
            let changed = running.changed.clone();
            let list = async {
                changed.notified().await;
                // Gathers changes that come at once.
                sleep(LIST_PAUSE).await;
                timeout(LIST_TIMEOUT, listing::ask(&running.peer)).await
            };
            tokio::select! {
                _ = &mut *stop => {
                    running.end().await;
                    return RunEnd::Stopped;
                }
                () = closed(&mut running.task, &mut running.subscription, &running.changed) => {
                    let ran = began.elapsed();
                    let fault = running.fault.get().copied();
                    let status = running.end().await;
                    let reason = fault.map_or_else(
                        || format!("It ended {}.", process::ending(status)),
                        |fault| fault.sentence().to_owned(),
                    );
                    return RunEnd::Crashed { reason: self.explained(reason), ran };
                }
                list = list => match list {
                    Ok(Ok(list)) => self.show(&list),
                    _ => self.report.error("Its tools have changed, and it did not list them again.".to_owned()),
                },
            }
        }
    }

    fn show(&self, list: &[Value]) {
        if list.len() > listing::MOST_TOOLS {
            self.report.error(format!(
                "It has more than {0} tools. The first {0} are used.",
                listing::MOST_TOOLS
            ));
        }
        self.report.tools(listing::tools(
            list,
            &self.prefix,
            &self.config,
            &self.sandbox,
        ));
    }
}

/// An attempt to start a server.
enum Attempt {
    Ready(Box<RunningServer>, Vec<Value>),
    Stopped,
    /// The program answers, and refuses the first request.
    Refused(String),
    Failed(String),
}

/// A connection, and the process at its other end.
struct RunningServer {
    peer: Peer<RoleClient>,
    /// Task of the connection, which ends with it.
    task: JoinHandle<()>,
    token: RunningServiceCancellationToken,
    process: ServerProcess,
    fault: Arc<OnceLock<TransportFault>>,
    changed: Arc<Notify>,
    /// Request for changes of the list, where the protocol has one.
    subscription: Option<Subscription>,
}

impl RunningServer {
    async fn end(mut self) -> Option<ExitStatus> {
        drop(self.subscription.take());
        // Closes its stdin. A connection that does not close in time ends with the process.
        self.token.cancel();
        if !self.task.is_finished() {
            let _ = timeout(CLOSE_TIMEOUT, &mut self.task).await;
        }
        self.process.end().await
    }
}

/// Waits for the end of a connection. Notifications of its subscription pass it on the way.
async fn closed(
    task: &mut JoinHandle<()>,
    subscription: &mut Option<Subscription>,
    changed: &Notify,
) {
    while !task.is_finished() {
        let Some(notifications) = subscription else {
            let _ = task.await;
            return;
        };
        tokio::select! {
            _ = &mut *task => return,
            next = notifications.next() => match next {
                Ok(Some(_)) => changed.notify_one(),
                _ => *subscription = None,
            },
        }
    }
}

/// Asks for changes of the list, where these are sent on request alone.
async fn subscribe(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let info = peer.peer_info()?;
    if info.protocol_version.has_initialize() {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    timeout(CLOSE_TIMEOUT, peer.listen(filter)).await.ok()?.ok()
}

fn late(limit: Duration, verb: &str) -> String {
    let seconds = limit.as_secs_f64();
    let is_one = limit == Duration::from_secs(1);
    let unit = if is_one { "second" } else { "seconds" };
    format!("It did not {verb} within {seconds} {unit}.")
}

/// Explains a handshake that failed.
fn unanswered(
    error: &ClientInitializeError,
    fault: Option<TransportFault>,
    status: Option<ExitStatus>,
) -> Attempt {
    match error {
        _ if fault.is_some() => {
            Attempt::Failed(fault.map_or("", TransportFault::sentence).to_owned())
        }
        ClientInitializeError::JsonRpcError(error) => {
            let message = clean::line(&error.message, 200);
            Attempt::Refused(format!("It refused the connection: {message}."))
        }
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => Attempt::Failed(format!(
            "It ended {} before it answered.",
            process::ending(status)
        )),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            Attempt::Failed("It speaks no version of MCP that Goldcrest knows.".to_owned())
        }
        _ => Attempt::Failed("It did not answer as MCP asks.".to_owned()),
    }
}

/// The client's side: what a server asks of it is declined by rmcp's defaults, and changes of the list are noted.
struct ListChanges(Arc<Notify>);

impl ClientHandler for ListChanges {
    fn on_tool_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.0.notify_one();
        std::future::ready(())
    }

    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new("goldcrest", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), client)
    }
}

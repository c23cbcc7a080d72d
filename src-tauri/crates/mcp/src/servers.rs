//! The servers of the settings, and the thread in which they are supervised.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task;
use tools::{Tool, ToolError, ToolOutput, ToolProvider};

use crate::call::{self, Link, RemoteCall};
use crate::config::{ServerConfig, ServerOptions};
use crate::log::StderrTail;
use crate::naming;
use crate::request::ServerRequest;
use crate::sandbox::Sandbox;
use crate::state::{ListedTool, ServerState, ServerStatus};
use crate::supervisor::{StateReport, Supervised};
use crate::tool::McpTool;

/// The servers. Dropping this ends them all, with the processes that they started.
///
/// If the process of the app is killed, bubblewrap ends the servers in a sandbox. One without a sandbox finds its stdin
/// closed, at which servers end by themselves.
pub struct Servers {
    shared: Arc<Shared>,
    requests: mpsc::UnboundedSender<ServerRequest>,
    thread: Option<JoinHandle<()>>,
}

type OnChange = Arc<dyn Fn() + Send + Sync>;

/// The state that the thread and its handle share.
#[derive(Default)]
struct Shared {
    entries: Mutex<Vec<ServerEntry>>,
    options: Mutex<ServerOptions>,
    on_change: Mutex<Option<OnChange>>,
}

/// A server of the settings.
struct ServerEntry {
    config: ServerConfig,
    prefix: String,
    /// Number of the start to which reports belong: those of an earlier one are out of date.
    start: u64,
    status: ServerStatus,
    tools: Vec<ListedTool>,
    sandbox: Sandbox,
    tail: StderrTail,
    link: watch::Receiver<Link>,
    last_error: Option<String>,
}

impl Servers {
    /// Starts the servers that are enabled.
    ///
    /// # Errors
    /// Fails if the system gives no thread.
    pub fn start(configs: Vec<ServerConfig>, options: ServerOptions) -> io::Result<Servers> {
        let shared = Arc::new(Shared::default());
        let (requests, received) = mpsc::unbounded_channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let of_thread = shared.clone();
        let thread = thread::Builder::new().name("mcp".to_owned());
        let thread = thread.spawn(move || serve(&runtime, received, &of_thread))?;
        let servers = Servers {
            shared,
            requests,
            thread: Some(thread),
        };
        servers.set(configs, options);
        Ok(servers)
    }

    /// Takes other settings: starts, stops and restarts the servers for which they differ. Of servers with the same name
    /// the first counts.
    pub fn set(&self, configs: Vec<ServerConfig>, options: ServerOptions) {
        let mut unique: Vec<ServerConfig> = Vec::new();
        for config in configs {
            if !unique.iter().any(|it| it.name == config.name) {
                unique.push(config);
            }
        }
        let prefixes = naming::prefixes(unique.iter().map(|it| it.name.as_str()));
        *lock(&self.shared.options) = options;
        let mut entries = lock(&self.shared.entries);
        let mut before: HashMap<String, ServerEntry> = HashMap::new();
        for entry in entries.drain(..) {
            before.insert(entry.config.name.clone(), entry);
        }
        for (config, prefix) in unique.into_iter().zip(prefixes) {
            match before.remove(&config.name) {
                Some(entry) if entry.config == config && entry.prefix == prefix => {
                    entries.push(entry)
                }
                other => {
                    if other.is_some() {
                        self.request(ServerRequest::Stop(config.name.clone()));
                    }
                    let start = other.map_or(0, |it| it.start + 1);
                    let mut entry = ServerEntry::new(config, prefix, start);
                    if entry.config.enabled {
                        self.request(self.started(&mut entry, options));
                    }
                    entries.push(entry);
                }
            }
        }
        for name in before.into_keys() {
            self.request(ServerRequest::Stop(name));
        }
        drop(entries);
        self.shared.changed();
    }

    /// Starts a server that does not run, or failed.
    pub fn start_server(&self, name: &str) {
        let options = *lock(&self.shared.options);
        let mut entries = lock(&self.shared.entries);
        let entry = entries.iter_mut().find(|it| it.config.name == name);
        let idle = entry.filter(|it| {
            matches!(
                it.status,
                ServerStatus::Stopped | ServerStatus::Failed { .. }
            )
        });
        if let Some(entry) = idle {
            self.request(self.started(entry, options));
        }
        drop(entries);
        self.shared.changed();
    }

    /// Stops a server until it is started again.
    pub fn stop_server(&self, name: &str) {
        let mut entries = lock(&self.shared.entries);
        if let Some(entry) = entries.iter_mut().find(|it| it.config.name == name) {
            entry.start += 1;
            entry.status = ServerStatus::Stopped;
            entry.tools.clear();
            self.request(ServerRequest::Stop(name.to_owned()));
        }
        drop(entries);
        self.shared.changed();
    }

    /// Returns the states, in the order of the settings.
    #[must_use]
    pub fn states(&self) -> Vec<ServerState> {
        let entries = lock(&self.shared.entries);
        entries.iter().map(ServerEntry::state).collect()
    }

    /// Calls a function after each change of the states, on any thread. It must return soon.
    pub fn on_change(&self, callback: impl Fn() + Send + Sync + 'static) {
        *lock(&self.shared.on_change) = Some(Arc::new(callback));
    }

    /// Marks an entry as starting, and returns the request for it.
    fn started(&self, entry: &mut ServerEntry, options: ServerOptions) -> ServerRequest {
        let (sender, link) = watch::channel(Link::Starting);
        entry.start += 1;
        entry.status = ServerStatus::Starting;
        entry.tail = StderrTail::of(&entry.config);
        entry.link = link;
        entry.last_error = None;
        let report = EntryReport {
            shared: self.shared.clone(),
            name: entry.config.name.clone(),
            start: entry.start,
        };
        ServerRequest::Start(Box::new(Supervised {
            config: entry.config.clone(),
            prefix: entry.prefix.clone(),
            sandbox: entry.sandbox.clone(),
            handshake_timeout: options.handshake_timeout,
            tail: entry.tail.clone(),
            report: Box::new(report),
            link: sender,
        }))
    }

    fn request(&self, request: ServerRequest) {
        // The thread ends only with this handle.
        let _ = self.requests.send(request);
    }
}

impl ToolProvider for Servers {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let call_timeout = lock(&self.shared.options).call_timeout;
        let entries = lock(&self.shared.entries);
        let tools = entries.iter().flat_map(|entry| {
            entry.tools.iter().filter_map(|tool| {
                let tool = McpTool {
                    info: tool.info.clone()?,
                    server: entry.config.name.clone(),
                    own_name: tool.shown.own_name.clone(),
                    call_timeout,
                    requests: self.requests.clone(),
                };
                Some(Arc::new(tool) as Arc<dyn Tool>)
            })
        });
        tools.collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.request(ServerRequest::End);
        if let Some(thread) = self.thread.take() {
            // An error means that the thread panicked, and its processes were killed by their own drop.
            let _ = thread.join();
        }
    }
}

impl ServerEntry {
    fn new(config: ServerConfig, prefix: String, start: u64) -> ServerEntry {
        ServerEntry {
            prefix,
            start,
            status: ServerStatus::Stopped,
            tools: Vec::new(),
            sandbox: Sandbox::of(&config),
            tail: StderrTail::of(&config),
            link: watch::channel(Link::Down("It is switched off.".to_owned())).1,
            last_error: None,
            config,
        }
    }

    fn state(&self) -> ServerState {
        ServerState {
            name: self.config.name.clone(),
            status: self.status.clone(),
            tools: self.tools.iter().map(|it| it.shown.clone()).collect(),
            sandbox: self.sandbox.clone(),
            log_tail: self.tail.text(),
            last_error: self.last_error.clone(),
        }
    }
}

impl Shared {
    fn changed(&self) {
        let callback = lock(&self.on_change).clone();
        if let Some(callback) = callback {
            callback();
        }
    }
}

/// Reports of a server's task on its entry.
struct EntryReport {
    shared: Arc<Shared>,
    name: String,
    start: u64,
}

impl EntryReport {
    fn update(&self, change: impl FnOnce(&mut ServerEntry)) {
        let mut entries = lock(&self.shared.entries);
        let mut current = entries.iter_mut();
        let current = current.find(|it| it.config.name == self.name && it.start == self.start);
        let is_current = current.map(change).is_some();
        // The callback may ask for the states.
        drop(entries);
        if is_current {
            self.shared.changed();
        }
    }
}

impl StateReport for EntryReport {
    fn status(&self, status: ServerStatus) {
        self.update(|entry| entry.status = status);
    }

    fn tools(&self, tools: Vec<ListedTool>) {
        self.update(|entry| entry.tools = tools);
    }

    fn error(&self, sentence: String) {
        self.update(|entry| entry.last_error = Some(sentence));
    }
}

/// A task of the thread; dropping `_stop` asks it to end its server.
struct ServerTask {
    _stop: oneshot::Sender<()>,
    task: task::JoinHandle<()>,
}

/// Takes requests until the last one. All connections and processes are ended inside the runtime, which they need.
fn serve(runtime: &Runtime, mut requests: mpsc::UnboundedReceiver<ServerRequest>, shared: &Shared) {
    runtime.block_on(async {
        let mut running: HashMap<String, ServerTask> = HashMap::new();
        let mut ending: Vec<task::JoinHandle<()>> = Vec::new();
        while let Some(request) = requests.recv().await {
            ending.retain(|task| !task.is_finished());
            match request {
                ServerRequest::Start(server) => {
                    let (stop, stopped) = oneshot::channel();
                    let name = server.config.name.clone();
                    let task = task::spawn(server.run(stopped));
                    if let Some(before) = running.insert(name, ServerTask { _stop: stop, task }) {
                        ending.push(before.task);
                    }
                }
                ServerRequest::Stop(name) => ending.extend(running.remove(&name).map(|it| it.task)),
                ServerRequest::Call {
                    server,
                    tool,
                    arguments,
                    reply,
                    abandoned,
                } => {
                    let call = RemoteCall {
                        server,
                        tool,
                        arguments,
                        result_limit: lock(&shared.options).result_limit,
                    };
                    task::spawn(answer(shared.link(&call.server), call, reply, abandoned));
                }
                ServerRequest::End => break,
            }
        }
        ending.extend(running.into_values().map(|it| it.task));
        for task in ending {
            let _ = task.await;
        }
    });
}

impl Shared {
    fn link(&self, server: &str) -> Option<(watch::Receiver<Link>, StderrTail)> {
        let entries = lock(&self.entries);
        let entry = entries.iter().find(|it| it.config.name == server)?;
        Some((entry.link.clone(), entry.tail.clone()))
    }
}

/// Runs a call, unless nobody waits for it any more.
async fn answer(
    link: Option<(watch::Receiver<Link>, StderrTail)>,
    call: RemoteCall,
    reply: SyncSender<Result<ToolOutput, ToolError>>,
    abandoned: oneshot::Receiver<()>,
) {
    let result = match link {
        None => Err(ToolError::Failed(format!(
            "There is no server \"{}\" any more.",
            call.server
        ))),
        Some((link, tail)) => tokio::select! {
            result = call::call(link, call, tail) => result,
            _ = abandoned => return,
        },
    };
    // An error means that nobody waits.
    let _ = reply.send(result);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Servers as they come: a fake one that misbehaves, and real ones. They are scripts of Node, which `npm test` has.

#![cfg(unix)]

mod hostile;
mod processes;
mod real;
#[cfg(target_os = "linux")]
mod sandboxed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use mcp::{Sandbox, ServerConfig, ServerOptions, ServerState, ServerStatus, Servers};
use serde_json::{Map, Value};
use tools::{Tool, ToolError, ToolOutput, ToolProvider, ToolRun};

/// Time limit of what should take less than a second.
const LONG: Duration = Duration::from_secs(60);

/// Returns true if Node is here, or reports that the test is skipped.
fn has_node() -> bool {
    let version = std::process::Command::new("node").arg("--version").output();
    let has_node = version.is_ok_and(|output| output.status.success());
    if !has_node {
        testing::skip("there is no Node");
    }
    has_node
}

/// Returns true if bubblewrap works here, or reports that a part of the test is skipped.
fn has_sandbox() -> bool {
    let mut config = program("probe", "true", &[]);
    config.sandboxed = true;
    config.enabled = false;
    let servers = Servers::start(vec![config], ServerOptions::default()).expect("a thread");
    match servers.states().swap_remove(0).sandbox {
        Sandbox::None { why } => {
            testing::skip(&why);
            false
        }
        _ => true,
    }
}

/// Returns a program without a sandbox.
fn program(name: &str, command: &str, args: &[&str]) -> ServerConfig {
    ServerConfig {
        name: name.to_owned(),
        command: command.to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: None,
        folders: Vec::new(),
        network: false,
        sandboxed: false,
        enabled: true,
    }
}

fn fake_script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/fake.mjs")
}

/// Returns the fake server in a mode.
fn fake(mode: &str) -> ServerConfig {
    let script = fake_script();
    program("fake", "node", &[script.to_str().expect("UTF-8"), mode])
}

/// Starts one server, and waits until it is ready or failed.
fn started(config: ServerConfig) -> Servers {
    started_with(config, ServerOptions::default())
}

fn started_with(config: ServerConfig, options: ServerOptions) -> Servers {
    let servers = Servers::start(vec![config], options).expect("a thread");
    until(&servers, |state| {
        matches!(
            state.status,
            ServerStatus::Ready | ServerStatus::Failed { .. }
        )
    });
    servers
}

/// Waits for a state of the first server.
fn until(servers: &Servers, is_so: impl Fn(&ServerState) -> bool) -> ServerState {
    let began = Instant::now();
    loop {
        let state = servers.states().swap_remove(0);
        if is_so(&state) {
            return state;
        }
        assert!(began.elapsed() < LONG, "{state:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn reason(servers: &Servers) -> String {
    match servers.states().swap_remove(0).status {
        ServerStatus::Failed { reason } | ServerStatus::Ended { reason } => reason,
        other => panic!("{other:?}"),
    }
}

/// Returns a tool of the first server by the server's own name.
fn tool(servers: &Servers, own_name: &str) -> Arc<dyn Tool> {
    let state = servers.states().swap_remove(0);
    let shown = state.tools.iter().find(|it| it.own_name == own_name);
    let name = &shown
        .unwrap_or_else(|| panic!("{own_name} in {state:?}"))
        .name;
    let mut tools = servers.tools().into_iter();
    tools
        .find(|tool| tool.info().definition.name == *name)
        .expect("a usable tool")
}

fn call(servers: &Servers, own_name: &str, arguments: Value) -> Result<String, ToolError> {
    let arguments: Map<String, Value> = arguments.as_object().cloned().expect("an object");
    let result = run(
        &*tool(servers, own_name),
        &arguments,
        LONG,
        &AtomicBool::new(false),
    );
    result.map(|output| output.text)
}

fn run(
    tool: &dyn Tool,
    arguments: &Map<String, Value>,
    limit: Duration,
    cancel: &AtomicBool,
) -> Result<ToolOutput, ToolError> {
    let run = ToolRun {
        deadline: Instant::now() + limit,
        cancel,
        functions: &[],
        chat: None,
    };
    tool.run(arguments, &run)
}

/// Prints a time, which `--nocapture` shows.
fn measured(what: &str, began: Instant) {
    print(what, began.elapsed());
}

#[expect(clippy::print_stderr, reason = "a figure of the run")]
fn print(what: &str, time: Duration) {
    eprintln!("{what}: {:.0} ms", time.as_secs_f64() * 1_000.0);
}

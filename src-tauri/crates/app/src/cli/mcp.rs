//! `goldcrest mcp`: the tools of MCP servers, listed or called.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ::mcp::{
    GivenFolder, PastedServer, ServerOptions, ServerState, ServerStatus, Servers, parse_servers,
};
use clap::{Args, Subcommand};
use engine::check_schema;
use figures::count;
use serde_json::{Map, Value, json};
use tools::{Tool, ToolError, ToolProvider, ToolRun};

use super::interrupt::Interrupt;
use super::output::{self, CliError};
use super::text;
use crate::visible::on_one_line;

/// Pause between two looks at the states.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
pub struct McpArgs {
    #[command(subcommand)]
    action: McpAction,
}

#[derive(Debug, Subcommand)]
enum McpAction {
    /// Start the servers and list their tools
    ///
    /// Exits with 1 if one of them failed.
    List(ListArgs),
    /// Call a tool and print its result
    Call(CallArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    servers: ServerArgs,
}

#[derive(Debug, Args)]
struct CallArgs {
    /// Name of the server
    server: String,
    /// Name of the tool, as the server or as `goldcrest mcp list` has it
    tool: String,
    /// Arguments, a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    #[command(flatten)]
    servers: ServerArgs,
}

#[derive(Debug, Args)]
struct ServerArgs {
    /// JSON file with the servers, in the form of other apps: {"mcpServers": {"NAME": {"command": …}}}
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Folder or file that the servers may read
    #[arg(long = "folder", value_name = "PATH")]
    folders: Vec<PathBuf>,
    /// Folder or file that they may also change
    #[arg(long = "writable-folder", value_name = "PATH")]
    writable_folders: Vec<PathBuf>,
    /// Let the servers use the network
    #[arg(long)]
    network: bool,
    /// Run the servers without a sandbox: they may do all that you may
    #[arg(long)]
    no_sandbox: bool,
    /// Seconds in which a server must start, and a call must end
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &McpArgs) -> Result<(), CliError> {
    let interrupt = Interrupt::listen();
    let (result, interrupted) = interrupt.during(|cancel| match &args.action {
        McpAction::List(args) => list(args, cancel),
        McpAction::Call(args) => call(args, cancel),
    });
    if interrupted {
        return Err(CliError::Interrupted);
    }
    result
}

fn list(args: &ListArgs, cancel: &AtomicBool) -> Result<(), CliError> {
    let servers = started(&args.servers, None, cancel)?;
    let states = servers.states();
    let tools = servers.tools();
    drop(servers);
    if args.servers.json {
        output::json(&states)?;
    } else {
        write(&states, &tools)?;
    }
    let failed = |state: &&ServerState| matches!(state.status, ServerStatus::Failed { .. });
    match states.iter().filter(failed).count() {
        0 => Ok(()),
        1 => Err(CliError::message("a server could not be started")),
        several => Err(CliError::message(format!(
            "{} servers could not be started",
            count(several)
        ))),
    }
}

fn write(states: &[ServerState], tools: &[Arc<dyn Tool>]) -> Result<(), CliError> {
    let mut out = output::stdout();
    for state in states {
        let status = match &state.status {
            ServerStatus::Stopped => "switched off".to_owned(),
            ServerStatus::Starting => "starting".to_owned(),
            ServerStatus::Ready => "ready".to_owned(),
            ServerStatus::Failed { reason } | ServerStatus::Ended { reason } => reason.clone(),
        };
        writeln!(
            out,
            "{}: {}",
            on_one_line(&state.name),
            on_one_line(&status)
        )?;
        if state.status == ServerStatus::Ready {
            writeln!(out, "  {}", state.sandbox.sentence())?;
        }
        for tool in &state.tools {
            let fault = tool
                .unusable
                .as_ref()
                .map(|fault| format!("not used: {fault} "));
            let first = tool.description.lines().next().unwrap_or_default();
            let fault = fault.unwrap_or_default();
            writeln!(
                out,
                "  {:<32}  {}{}",
                tool.name,
                on_one_line(&fault),
                on_one_line(first)
            )?;
            let mut infos = tools.iter().map(|it| it.info());
            if let Some(info) = infos.find(|info| info.definition.name == tool.name) {
                for sentence in unenforced(&info.definition.parameters) {
                    writeln!(out, "  {:<32}  {}", "", on_one_line(&sentence))?;
                }
            }
        }
    }
    Ok(out.flush()?)
}

/// Returns the parts of a tool's schema that the arguments of a model may not have, as sentences.
fn unenforced(schema: &Value) -> Vec<String> {
    check_schema(schema)
        .unwrap_or_else(|error| vec![format!("A model may pass any arguments: {error}")])
}

fn call(args: &CallArgs, cancel: &AtomicBool) -> Result<(), CliError> {
    let arguments: Map<String, Value> = serde_json::from_str(&args.arguments).map_err(|error| {
        CliError::message(format!("the arguments are not a JSON object: {error}"))
    })?;
    let servers = started(&args.servers, Some(&args.server), cancel)?;
    let tool = find(&servers, &args.tool)?;
    let run = ToolRun {
        deadline: Instant::now() + Duration::from_secs(args.servers.timeout),
        cancel,
        functions: &[],
        chat: None,
    };
    let result = tool.run(&arguments, &run);
    drop(servers);
    let text = match result {
        Ok(result) => result.text,
        Err(ToolError::Cancelled) => return Err(CliError::Interrupted),
        Err(error) => return Err(CliError::message(error.to_string())),
    };
    if args.servers.json {
        return output::json(&json!({ "text": text }));
    }
    let mut out = output::content();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Finds a tool of the only server.
fn find(servers: &Servers, name: &str) -> Result<Arc<dyn Tool>, CliError> {
    let states = servers.states();
    let state = states
        .first()
        .ok_or_else(|| CliError::message("there is no such server"))?;
    if let ServerStatus::Failed { reason } | ServerStatus::Ended { reason } = &state.status {
        return Err(CliError::message(format!("{}: {reason}", state.name)));
    }
    let shown = state
        .tools
        .iter()
        .find(|tool| tool.own_name == name || tool.name == name);
    let shown = shown.ok_or_else(|| {
        let names: Vec<&str> = state.tools.iter().map(|tool| &*tool.own_name).collect();
        CliError::message(format!(
            "{} has no tool {name}; it has {}",
            state.name,
            names.join(", ")
        ))
    })?;
    if let Some(fault) = &shown.unusable {
        return Err(CliError::message(format!("{name} cannot be used. {fault}")));
    }
    let mut tools = servers.tools().into_iter();
    let tool = tools.find(|tool| tool.info().definition.name == shown.name);
    tool.ok_or_else(|| CliError::message(format!("{} has just ended", state.name)))
}

/// Starts the servers of the file, or one of them, and waits until each is ready or failed.
fn started(args: &ServerArgs, one: Option<&str>, cancel: &AtomicBool) -> Result<Servers, CliError> {
    let file =
        std::fs::File::open(&args.config).map_err(|error| CliError::file(&args.config, error))?;
    let name = args.config.display().to_string();
    let pasted = parse_servers(&text::read_all(file, &name)?)
        .map_err(|error| CliError::file(&args.config, error))?;
    let names: Vec<&str> = pasted.iter().map(|it| &*it.config.name).collect();
    if let Some(one) = one.filter(|one| !names.contains(one)) {
        let names = names.join(", ");
        return Err(CliError::message(format!(
            "there is no server {one} in {name}, but {names}"
        )));
    }
    let wanted = pasted
        .into_iter()
        .filter(|it| one.is_none_or(|one| it.config.name == one));
    let mut configs = Vec::new();
    for server in wanted {
        say_what_is_left_out(&server, args);
        let PastedServer { mut config, .. } = server;
        config.enabled = config.enabled || one.is_some();
        config.network = args.network;
        config.sandboxed = !args.no_sandbox;
        for (paths, writable) in [(&args.folders, false), (&args.writable_folders, true)] {
            for path in paths {
                let path =
                    std::path::absolute(path).map_err(|error| CliError::file(path, error))?;
                config.folders.push(GivenFolder { path, writable });
            }
        }
        configs.push(config);
    }
    let timeout = Duration::from_secs(args.timeout);
    let options = ServerOptions {
        handshake_timeout: timeout,
        call_timeout: timeout,
        ..ServerOptions::default()
    };
    let servers = Servers::start(configs, options)
        .map_err(|error| CliError::message(format!("the servers cannot be started: {error}")))?;
    while servers
        .states()
        .iter()
        .any(|it| it.status == ServerStatus::Starting)
    {
        if cancel.load(Ordering::Relaxed) {
            return Err(CliError::Interrupted);
        }
        thread::sleep(PAUSE);
    }
    Ok(servers)
}

/// Prints notes on a server, and the folders that it probably needs. A stderr that is gone is no failure.
fn say_what_is_left_out(server: &PastedServer, args: &ServerArgs) {
    let name = on_one_line(&server.config.name);
    let mut out = output::stderr();
    for note in &server.notes {
        let _ = writeln!(out, "goldcrest: {name}: {}", on_one_line(note));
    }
    let given = [&args.folders, &args.writable_folders];
    let missing = server.suggested_folders.iter();
    for folder in
        missing.filter(|it| !args.no_sandbox && !given.iter().any(|given| given.contains(it)))
    {
        let folder = folder.display().to_string();
        let folder = on_one_line(&folder);
        let _ = writeln!(
            out,
            "goldcrest: {name}: {folder} is not given to it; --folder {folder} does"
        );
    }
}

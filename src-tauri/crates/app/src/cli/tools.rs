//! `goldcrest tools`: the tools that a model can call.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::tools::{
    ChatHit, ChatSearch, Effects, Registry, ToolError, ToolInfo, ToolOutcome, ToolRun, ToolSource,
    check_arguments,
};
use clap::{Args, Subcommand};
use figures::without_controls;
use serde_json::json;

use super::export::snapshot;
use super::folders::data_folder;
use super::interrupt::Interrupt;
use super::output::{self, CliError};
use super::suggestion::likely;
use crate::tools::{built_in, chat_hits};
use crate::visible::on_one_line;

/// Time limit of a call.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub struct ToolsArgs {
    #[command(subcommand)]
    command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// List the tools: name, effects, title
    List(ToolListArgs),
    /// Call a tool and print its result
    ///
    /// For example: goldcrest tools call calculator '{"expression": "5 miles to km"}'. Exits with 1 if it fails.
    Call(ToolCallArgs),
}

#[derive(Debug, Args)]
struct ToolListArgs {
    /// Print JSON, with descriptions and schemas
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ToolCallArgs {
    /// Name of the tool
    name: String,
    /// Arguments, as a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// Print one JSON object: name, outcome and text
    #[arg(long)]
    json: bool,
}

pub fn run(args: ToolsArgs) -> Result<(), CliError> {
    let tools = registry()?;
    match args.command {
        ToolsCommand::List(args) => list(&tools, &args),
        ToolsCommand::Call(args) => call(&tools, &args),
    }
}

/// Returns the tools of the command line. They search the chats of the data folder, which the app may have open.
pub fn registry() -> Result<Registry, CliError> {
    Ok(built_in(Arc::new(StoredChats))?)
}

/// The chats of the data folder, each time as they are then.
struct StoredChats;

impl ChatSearch for StoredChats {
    fn search(
        &self,
        query: &str,
        limit: usize,
        except: Option<i64>,
    ) -> Result<Vec<ChatHit>, String> {
        let found = || -> Result<Vec<ChatHit>, CliError> {
            let snapshot = snapshot(&data_folder()?)?;
            let chats = u32::try_from(limit).unwrap_or(u32::MAX);
            let answer = snapshot.search().find(query, chats);
            let answer = answer.map_err(|error| CliError::message(error.to_string()))?;
            Ok(chat_hits(answer, limit, except))
        };
        found().map_err(|error| format!("The chats cannot be searched: {error}."))
    }
}

fn list(tools: &Registry, args: &ToolListArgs) -> Result<(), CliError> {
    let tools = tools.tools();
    let infos = tools.iter().map(|tool| tool.info());
    if args.json {
        let tools = infos.map(|info| {
            let ToolInfo {
                definition,
                title,
                source,
                effects,
            } = &*info;
            json!({
                "name": definition.name,
                "title": title,
                "source": source,
                "effects": effects,
                "description": definition.description,
                "parameters": definition.parameters,
            })
        });
        return output::json(&tools.collect::<Vec<_>>());
    }
    let mut out = output::stdout();
    for info in infos {
        let shown = [&info.definition.name, &info.title].map(|text| without_controls(text));
        let [name, title] = shown.each_ref().map(|text| on_one_line(text));
        let (source, touches) = (source(&info.source), touches(info.effects));
        writeln!(out, "{name:<16}  {source:<10}  {touches:<14}  {title}")?;
    }
    Ok(out.flush()?)
}

fn source(source: &ToolSource) -> String {
    match source {
        ToolSource::BuiltIn => "built in".to_owned(),
        ToolSource::Server { name } => on_one_line(&without_controls(name)).into_owned(),
    }
}

/// Returns what a tool may touch.
fn touches(effects: Effects) -> String {
    let Effects {
        reads_chats,
        reads_files,
        changes,
        network,
    } = effects;
    let named = [
        (reads_chats, "reads chats"),
        (reads_files, "reads files"),
        (changes, "changes things"),
        (network, "network"),
    ];
    let named = named.iter().filter(|(has, _)| *has).map(|(_, name)| *name);
    match named.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "nothing".to_owned(),
        touched => touched,
    }
}

fn call(tools: &Registry, args: &ToolCallArgs) -> Result<(), CliError> {
    let tool = tools.get(&args.name);
    let tool = tool.ok_or_else(|| unknown(tools, &args.name))?;
    let arguments = check_arguments(&tool.info(), &args.arguments);
    let functions = tools.tools();
    let (result, _) = Interrupt::listen().during(|cancel| {
        let run = ToolRun {
            deadline: Instant::now() + LIMIT,
            cancel,
            functions: &functions,
            chat: None,
        };
        arguments.and_then(|arguments| tool.run(&arguments, &run))
    });
    if result == Err(ToolError::Cancelled) {
        return Err(CliError::Interrupted);
    }
    if args.json {
        let (outcome, text) = match &result {
            Ok(output) => (ToolOutcome::Done, output.text.clone()),
            Err(error) => (error.outcome(), error.to_string()),
        };
        let text = without_controls(&text);
        output::json(&json!({ "name": args.name, "outcome": outcome, "text": text }))?;
    }
    match result {
        Ok(_) if args.json => Ok(()),
        Ok(result) => print(&without_controls(&result.text)),
        Err(error) => Err(CliError::message(error.to_string())),
    }
}

fn print(text: &str) -> Result<(), CliError> {
    let mut out = output::content();
    let printed = writeln!(out, "{text}").and_then(|()| out.flush());
    printed.map_err(io::Error::into)
}

fn unknown(tools: &Registry, name: &str) -> CliError {
    let names = tools.tools().into_iter();
    let names: Vec<String> = names
        .map(|tool| tool.info().definition.name.clone())
        .collect();
    let likely = likely(name, names.iter().map(String::as_str));
    let likely = likely.map_or(String::new(), |name| format!(" did you mean {name}?"));
    CliError::message(format!(
        "there is no tool “{name}”;{likely} there are {}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_may_touch_is_named() {
        assert_eq!(touches(Effects::default()), "nothing");
        let effects = Effects {
            reads_files: true,
            changes: true,
            network: true,
            ..Effects::default()
        };
        assert_eq!(touches(effects), "reads files, changes things, network");
    }

    #[test]
    fn an_unknown_tool_names_those_that_exist() {
        let registry = registry().expect("a program");
        let says = unknown(&registry, "calculater").to_string();
        assert!(says.contains("did you mean calculator?"), "{says}");
        assert!(says.contains("date_time, search_chats"), "{says}");
    }
}

//! The settings of servers as other apps write them: `mcpServers` of Claude Desktop, Cursor and LM Studio, `servers` of
//! VS Code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value};

use crate::clean;
use crate::config::{Secret, ServerConfig};
use crate::program;

/// Longest text that is read, in bytes.
const LONGEST: usize = 1_000_000;
/// Most servers in a text.
const MOST: usize = 100;
/// Longest name of a server, in characters.
const LONGEST_NAME: usize = 64;
/// Keys of the object that holds the servers.
const WRAPPERS: [&str; 2] = ["mcpServers", "servers"];

/// A server as it was pasted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct PastedServer {
    /// Settings: in a sandbox, without network and folders.
    pub config: ServerConfig,
    /// Folders and files among the arguments that exist here. The server probably needs them, and the user decides.
    pub suggested_folders: Vec<PathBuf>,
    /// Sentences on what was read in another way than the other app reads it.
    pub notes: Vec<String>,
}

/// Error of a pasted text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It is not JSON.
    #[error("This is not JSON: {0}.")]
    NotJson(String),
    /// It is JSON of another kind.
    #[error(
        "There are no servers in it. Expected an object such as {{\"mcpServers\": {{\"NAME\": {{\"command\": …}}}}}}."
    )]
    NoServers,
    /// It is too long, or has too many servers.
    #[error("The text is too long: at most {MOST} servers and 1 MB can be read.")]
    TooLong,
    /// An entry is wrong.
    #[error("Server \"{name}\": {fault}")]
    Entry {
        /// Its name.
        name: String,
        /// Sentence that names the key.
        fault: String,
    },
}

/// Reads the servers of a text. Comments and trailing commas are accepted, since VS Code's files have them.
///
/// # Errors
/// Fails if the text is not JSON, has no servers, or if an entry is wrong.
pub fn parse_servers(text: &str) -> Result<Vec<PastedServer>, ParseError> {
    if text.len() > LONGEST {
        return Err(ParseError::TooLong);
    }
    let text = text.trim_start_matches('\u{feff}');
    let value: Option<Value> = jsonc_parser::parse_to_serde_value(text, &options())
        .map_err(|error| ParseError::NotJson(clean::line(&error.to_string(), 200)))?;
    let servers = value
        .as_ref()
        .and_then(servers)
        .ok_or(ParseError::NoServers)?;
    if servers.len() > MOST {
        return Err(ParseError::TooLong);
    }
    let servers = servers.iter().map(|(name, entry)| server(name, entry));
    servers.collect()
}

/// JSON with comments and trailing commas, and no other liberties.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Finds the object that holds the servers: under a known key, one level deeper (VS Code's settings have `mcp`), or the
/// whole.
fn servers(value: &Value) -> Option<&Map<String, Value>> {
    let whole = value.as_object()?;
    let of = |map: &'_ Map<String, Value>| WRAPPERS.iter().find_map(|key| map.get(*key)).cloned();
    let inner = WRAPPERS.iter().find_map(|key| whole.get(*key));
    let deeper = || {
        let maps = whole.values().filter_map(Value::as_object);
        maps.filter(|map| of(map).is_some())
            .find_map(|map| WRAPPERS.iter().find_map(|key| map.get(*key)))
    };
    let found = inner.or_else(deeper).and_then(Value::as_object);
    let found = found.or_else(|| whole.values().all(looks_like_a_server).then_some(whole))?;
    (!found.is_empty()).then_some(found)
}

fn looks_like_a_server(entry: &Value) -> bool {
    entry.get("command").is_some() || entry.get("url").is_some()
}

fn server(name: &str, entry: &Value) -> Result<PastedServer, ParseError> {
    let fault = |fault: &str| ParseError::Entry {
        name: clean::line(name, LONGEST_NAME),
        fault: fault.to_owned(),
    };
    if name.trim().is_empty() || clean::line(name, LONGEST_NAME) != name {
        return Err(fault(
            "its name must be 1 to 64 characters on one line, all visible.",
        ));
    }
    let entry = entry
        .as_object()
        .ok_or_else(|| fault("it must be an object with \"command\"."))?;
    let kind = entry.get("type").and_then(Value::as_str).unwrap_or("stdio");
    if ["url", "serverUrl", "httpUrl"]
        .iter()
        .any(|key| entry.contains_key(*key))
        || kind != "stdio"
    {
        return Err(fault(
            "it is reached over the network. Goldcrest starts programs on this computer only.",
        ));
    }
    let command = entry.get("command").and_then(Value::as_str).map(str::trim);
    let command = command.filter(|command| !command.is_empty());
    let command =
        command.ok_or_else(|| fault("\"command\" must be the name or the path of a program."))?;
    let strings = |value: &Value| -> Option<Vec<String>> {
        let items = value.as_array()?.iter();
        items.map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let args = entry.get("args").map_or(Some(Vec::new()), strings);
    let args = args.ok_or_else(|| fault("\"args\" must be a list of texts."))?;
    let env = entry.get("env").map_or(Some(BTreeMap::new()), variables);
    let env = env.ok_or_else(|| fault("\"env\" must be an object of texts."))?;
    let cwd = match entry.get("cwd") {
        None | Some(Value::Null) => None,
        Some(Value::String(cwd)) => Some(PathBuf::from(cwd)),
        Some(_) => return Err(fault("\"cwd\" must be the path of a folder.")),
    };
    if command.contains('\0') || args.iter().any(|arg| arg.contains('\0')) {
        return Err(fault(
            "\"command\" and \"args\" must not contain the character NUL.",
        ));
    }
    let flag = |key: &str| entry.get(key).and_then(Value::as_bool);
    let enabled = !flag("disabled").unwrap_or(false) && flag("enabled").unwrap_or(true);
    let notes = notes(entry);
    let config = ServerConfig {
        name: name.to_owned(),
        command: command.to_owned(),
        args,
        env,
        cwd,
        folders: Vec::new(),
        network: false,
        sandboxed: true,
        enabled,
    };
    Ok(PastedServer {
        suggested_folders: suggested_folders(&config),
        config,
        notes,
    })
}

/// Reads the variables. Numbers and switches are accepted: other apps write them as they are.
fn variables(value: &Value) -> Option<BTreeMap<String, Secret>> {
    let variables = value.as_object()?.iter().map(|(name, value)| {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return None,
        };
        (is_name && !value.contains('\0')).then(|| (name.clone(), Secret::from(value)))
    });
    variables.collect()
}

/// Returns a note on each key whose value refers to a variable: nothing is expanded.
fn notes(entry: &Map<String, Value>) -> Vec<String> {
    let keys = ["command", "args", "env", "cwd"].into_iter();
    let referring = keys.filter(|key| entry.get(*key).is_some_and(refers));
    let note = |key| {
        format!(
            "\"{key}\" contains a reference such as ${{NAME}}, which Goldcrest does not replace: write the value."
        )
    };
    referring.map(note).collect()
}

fn refers(value: &Value) -> bool {
    match value {
        Value::String(text) => text
            .split_once("${")
            .is_some_and(|(_, rest)| rest.contains('}')),
        Value::Array(items) => items.iter().any(refers),
        Value::Object(map) => map.values().any(refers),
        _ => false,
    }
}

/// Returns what exists among the arguments, except for the program's own script.
fn suggested_folders(config: &ServerConfig) -> Vec<PathBuf> {
    let script = program::script(&config.command, &config.args);
    let mut folders: Vec<PathBuf> = Vec::new();
    for arg in &config.args {
        // The form --flag=/path.
        let value = arg.split_once('=').filter(|_| arg.starts_with('-'));
        let path = Path::new(value.map_or(arg.as_str(), |(_, value)| value));
        let is_new = !folders.iter().any(|it| it == path) && script.as_deref() != Some(path);
        if path.is_absolute() && path.parent().is_some() && is_new && path.exists() {
            folders.push(path.to_owned());
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let servers = parse_servers(text).expect("servers");
        servers.into_iter().map(|it| it.config.name).collect()
    }

    fn refusal(text: &str) -> String {
        parse_servers(text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn the_forms_of_other_apps_are_read() {
        let entry =
            r#"{"command": "npx", "args": ["-y", "x"], "env": {"KEY": "secret", "PORT": 8080}}"#;
        for text in [
            format!(r#"{{"mcpServers": {{"one": {entry}}}}}"#),
            format!(r#"{{"servers": {{"one": {entry}}}, "inputs": []}}"#),
            format!(r#"{{"mcp": {{"servers": {{"one": {entry}}}}}, "editor.tabSize": 4}}"#),
            format!(r#"{{"globalShortcut": "", "mcpServers": {{"one": {entry},}},}}"#),
            format!("\u{feff}{{ // a comment\n\"one\": {entry} /* and another */ }}"),
        ] {
            let servers = parse_servers(&text).expect("servers");
            let [server] = servers.as_slice() else {
                panic!("{text}: {servers:?}");
            };
            let config = &server.config;
            assert_eq!((&*config.name, &*config.command), ("one", "npx"), "{text}");
            assert_eq!(config.args, ["-y", "x"]);
            assert_eq!(config.env["KEY"].expose(), "secret");
            assert_eq!(config.env["PORT"].expose(), "8080");
            assert!(config.sandboxed && !config.network && config.folders.is_empty());
            assert!(config.enabled && server.notes.is_empty());
        }
    }

    #[test]
    fn a_server_that_is_switched_off_stays_off() {
        let text =
            r#"{"a": {"command": "x", "disabled": true}, "b": {"command": "y", "enabled": false}}"#;
        let servers = parse_servers(text).expect("servers");
        assert!(servers.iter().all(|it| !it.config.enabled));
        assert_eq!(names(text), ["a", "b"]);
    }

    #[test]
    fn a_fault_names_the_entry_and_the_key() {
        for (entry, fault) in [
            (
                r#"{"url": "https://mcp.example"}"#,
                "Goldcrest starts programs on this computer only",
            ),
            (
                r#"{"command": "x", "type": "sse"}"#,
                "Goldcrest starts programs on this computer only",
            ),
            (r#"{"args": [], "url": null}"#, "Goldcrest starts programs"),
            (r#"{"command": 1}"#, "\"command\" must be"),
            (r#"{"command": " "}"#, "\"command\" must be"),
            (r#"{"command": "x", "args": "-y"}"#, "\"args\" must be"),
            (r#"{"command": "x", "args": [1]}"#, "\"args\" must be"),
            (r#"{"command": "x", "env": {"A": null}}"#, "\"env\" must be"),
            (
                r#"{"command": "x", "env": {"A=B": "c"}}"#,
                "\"env\" must be",
            ),
            (r#"{"command": "x", "cwd": []}"#, "\"cwd\" must be"),
            (r#"{"command": "x\u0000"}"#, "NUL"),
            ("[]", "it must be an object"),
        ] {
            let sentence = refusal(&format!(r#"{{"mcpServers": {{"mail": {entry}}}}}"#));
            assert!(sentence.starts_with("Server \"mail\": "), "{sentence}");
            assert!(sentence.contains(fault), "{sentence}");
        }
        let sentence = refusal(r#"{"mcpServers": {"a\u202eb": {"command": "x"}}}"#);
        assert!(
            sentence.starts_with("Server \"ab\": its name"),
            "{sentence}"
        );
    }

    #[test]
    fn a_text_without_servers_is_refused() {
        for text in [
            "",
            "null",
            "{}",
            "[]",
            "7",
            r#"{"a": 1}"#,
            r#"{"mcpServers": {}}"#,
            r#"{"mcpServers": 1}"#,
        ] {
            assert_eq!(parse_servers(text), Err(ParseError::NoServers), "{text}");
        }
        let sentence = refusal("{\"mcpServers\": {\n\"a\": {command: 'x'}}}");
        assert!(
            sentence.starts_with("This is not JSON: ") && sentence.contains("line 2"),
            "{sentence}"
        );
        assert!(matches!(
            parse_servers(&"[".repeat(100_000)),
            Err(ParseError::NotJson(_))
        ));
        assert_eq!(
            parse_servers(&" ".repeat(LONGEST + 1)),
            Err(ParseError::TooLong)
        );
    }

    #[test]
    fn existing_folders_among_the_arguments_are_suggested_and_not_given() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let script = root.join("server.js");
        std::fs::write(&script, "").expect("a script");
        let text = serde_json::json!({ "files": {
            "command": "node",
            "args": [&script, root, format!("--also={}", root.display()), root.join("absent"), "relative", "/"],
        }});
        let servers = parse_servers(&text.to_string()).expect("servers");
        assert_eq!(servers[0].suggested_folders, [root]);
        assert!(servers[0].config.folders.is_empty());
    }

    #[test]
    fn references_to_variables_are_kept_and_named() {
        let text = r#"{"a": {"command": "x", "args": ["${workspaceFolder}"], "env": {"K": "${env:KEY}"}}}"#;
        let servers = parse_servers(text).expect("servers");
        assert_eq!(servers[0].config.args, ["${workspaceFolder}"]);
        assert_eq!(servers[0].notes.len(), 2, "{:?}", servers[0].notes);
        assert!(servers[0].notes[1].starts_with("\"env\" contains a reference"));
    }
}

//! The tools of a server, as it lists them. All of it was written by others: it is bounded, and one tool that is wrong
//! does not cost the others.

use std::sync::Arc;

use inference::ToolDefinition;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Value, json};
use tools::{Effects, ToolInfo, ToolSource};

use crate::clean;
use crate::config::ServerConfig;
use crate::naming;
use crate::sandbox::Sandbox;
use crate::state::{ListedTool, ServerTool};

/// Most tools of a server.
pub const MOST_TOOLS: usize = 128;
/// Most pages of a list.
const MOST_PAGES: usize = 16;
const LONGEST_SCHEMA: usize = 64 << 10;
const DEEPEST_SCHEMA: usize = 32;
const LONGEST_TITLE: usize = 80;
const LONGEST_DESCRIPTION: usize = 1_000;
/// Longest name of a tool that is kept.
const LONGEST_NAME: usize = 256;

/// Asks a server for its tools, as JSON: what rmcp's types do not accept is one tool's fault.
///
/// # Errors
/// Fails if it does not answer with a list.
pub async fn ask(peer: &Peer<RoleClient>) -> Result<Vec<Value>, ServiceError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ListToolsRequest::with_param(params);
        let answer = peer
            .send_request(ClientRequest::ListToolsRequest(request))
            .await?;
        let page = match answer {
            ServerResult::ListToolsResult(page) => serde_json::to_value(page).ok(),
            ServerResult::CustomResult(page) => Some(page.0),
            _ => None,
        };
        let mut page = page.ok_or(ServiceError::UnexpectedResponse)?;
        let Some(Value::Array(more)) = page.get_mut("tools").map(Value::take) else {
            return Err(ServiceError::UnexpectedResponse);
        };
        tools.extend(more);
        cursor = page
            .get("nextCursor")
            .and_then(Value::as_str)
            .map(str::to_owned);
        if cursor.is_none() || tools.len() > MOST_TOOLS {
            break;
        }
    }
    Ok(tools)
}

/// Converts a list to tools.
pub fn tools(
    listed: &[Value],
    prefix: &str,
    config: &ServerConfig,
    sandbox: &Sandbox,
) -> Vec<ListedTool> {
    let mut seen: Vec<(&str, &Value)> = Vec::new();
    for tool in listed.iter().take(MOST_TOOLS) {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        // Of tools with the same name a server runs one; the first is taken for it.
        if !seen.iter().any(|(it, _)| *it == name) {
            seen.push((name, tool));
        }
    }
    let own_names: Vec<&str> = seen.iter().map(|(name, _)| *name).collect();
    let names = naming::tool_names(prefix, &own_names);
    let tools = seen.into_iter().zip(names);
    tools
        .map(|((own_name, value), name)| tool(own_name, value, name, config, sandbox))
        .collect()
}

fn tool(
    own_name: &str,
    value: &Value,
    name: String,
    config: &ServerConfig,
    sandbox: &Sandbox,
) -> ListedTool {
    let checked = check(own_name, value);
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let annotations = value.get("annotations");
    let annotated = annotations
        .and_then(|it| it.get("title"))
        .and_then(Value::as_str);
    let titles = [text("title"), annotated, Some(own_name)]
        .into_iter()
        .flatten();
    let mut titles = titles.map(|title| clean::line(title, LONGEST_TITLE));
    let title = titles
        .find(|title| !title.is_empty())
        .unwrap_or_else(|| name.clone());
    let description =
        clean::paragraphs(text("description").unwrap_or_default(), LONGEST_DESCRIPTION);
    let hint = annotations.and_then(|it| it.get("readOnlyHint"));
    let claims_read_only = hint.and_then(Value::as_bool).unwrap_or(false);
    let effects = effects(claims_read_only, config, sandbox);
    let info = checked.as_ref().ok().map(|parameters| {
        Arc::new(ToolInfo {
            definition: ToolDefinition {
                name: name.clone(),
                description: description.clone(),
                parameters: parameters.clone(),
                code: None,
            },
            title: title.clone(),
            source: ToolSource::Server {
                name: config.name.clone(),
            },
            effects,
        })
    });
    let shown = ServerTool {
        name,
        own_name: clean::line(own_name, LONGEST_NAME),
        title,
        description,
        effects,
        claims_read_only,
        unusable: checked.err(),
        hash: hash(own_name, value),
    };
    ListedTool { shown, info }
}

/// Returns the hash of what a server says about a tool, as far as somebody reads it.
fn hash(own_name: &str, tool: &Value) -> String {
    let annotation = |key: &str| tool.get("annotations").and_then(|it| it.get(key));
    let [title, hint] = ["title", "readOnlyHint"].map(annotation);
    let [own_title, description, schema] =
        ["title", "description", "inputSchema"].map(|key| tool.get(key));
    let said = json!([own_name, own_title, description, schema, title, hint]);
    blake3::hash(said.to_string().as_bytes())
        .to_hex()
        .to_string()
}

/// Returns the schema of the arguments, or a sentence on why the tool cannot be used.
fn check(own_name: &str, value: &Value) -> Result<Value, String> {
    if own_name.is_empty() || clean::line(own_name, LONGEST_NAME) != own_name {
        return Err("Its name is empty, too long, or has characters that are not seen.".to_owned());
    }
    let Some(Value::Object(schema)) = value.get("inputSchema") else {
        return Err("Its arguments are not described by a JSON Schema.".to_owned());
    };
    if let Err(error) = serde_json::from_value::<Tool>(value.clone()) {
        let error = clean::line(&error.to_string(), 200);
        return Err(format!("Its description is not as MCP has it: {error}."));
    }
    let mut schema = schema.clone();
    match schema.get("type") {
        None => {
            schema.insert("type".to_owned(), json!("object"));
        }
        Some(kind) if kind == "object" => {}
        Some(_) => return Err("Its arguments are not an object.".to_owned()),
    }
    let schema = Value::Object(schema);
    if schema.to_string().len() > LONGEST_SCHEMA {
        return Err("The schema of its arguments is longer than 64 kB.".to_owned());
    }
    if depth(&schema) > DEEPEST_SCHEMA {
        return Err(format!(
            "The schema of its arguments has more than {DEEPEST_SCHEMA} levels."
        ));
    }
    Ok(schema)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the effects of a tool. A server's claim counts only where its sandbox leaves it nothing to change.
fn effects(claims_read_only: bool, config: &ServerConfig, sandbox: &Sandbox) -> Effects {
    let can_write = config.folders.iter().any(|folder| folder.writable);
    let is_confined = *sandbox == Sandbox::Full && !can_write;
    Effects {
        reads_chats: false,
        reads_files: !config.folders.is_empty() || !sandbox.is_there(),
        changes: !(claims_read_only && is_confined),
        network: *sandbox != Sandbox::Full,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::GivenFolder;

    fn config(folders: &[bool]) -> ServerConfig {
        let folders = folders.iter().map(|&writable| GivenFolder {
            path: "/folder".into(),
            writable,
        });
        ServerConfig {
            name: "files".into(),
            command: "x".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            folders: folders.collect(),
            network: false,
            sandboxed: true,
            enabled: true,
        }
    }

    fn listed(list: &[Value]) -> Vec<ListedTool> {
        tools(list, "files", &config(&[]), &Sandbox::Full)
    }

    #[test]
    fn a_tool_that_is_wrong_does_not_cost_the_others() {
        let mut deep = json!({ "type": "string" });
        for _ in 0..40 {
            deep = json!({ "properties": { "a": deep } });
        }
        deep["type"] = json!("object");
        let list = [
            json!({ "name": "good", "inputSchema": { "type": "object" } }),
            json!({ "name": "bare", "inputSchema": {} }),
            json!({ "name": "array", "inputSchema": [1] }),
            json!({ "name": "none" }),
            json!({ "name": "lying", "inputSchema": { "type": "array" } }),
            json!({ "name": "deep", "inputSchema": deep }),
            json!({ "name": "long", "inputSchema": { "type": "object", "description": "x".repeat(70_000) } }),
            json!({ "name": "a\u{202e}b", "inputSchema": { "type": "object" } }),
            json!({ "name": "odd", "description": 7, "inputSchema": { "type": "object" } }),
            json!({ "name": "good", "inputSchema": { "type": "object" }, "description": "twice" }),
            json!("not a tool"),
        ];
        let tools = listed(&list);
        let usable: Vec<&str> = tools
            .iter()
            .filter(|tool| tool.info.is_some())
            .map(|tool| &*tool.shown.name)
            .collect();
        assert_eq!(usable, ["files_good", "files_bare"]);
        let faults: Vec<&str> = tools
            .iter()
            .filter_map(|it| it.shown.unusable.as_deref())
            .collect();
        for (fault, word) in faults.iter().zip([
            "not described",
            "not described",
            "not an object",
            "32 levels",
            "64 kB",
            "not seen",
            "not as MCP",
            "empty",
        ]) {
            assert!(fault.contains(word), "{fault} has no {word}");
        }
        assert_eq!(faults.len(), 8);
    }

    #[test]
    fn what_a_server_says_about_a_tool_is_bounded_and_visible() {
        let tools = listed(&[json!({
            "name": "calculator",
            "title": "\u{202e}rotaluclaC\u{1b}]0;x\u{7}\n",
            "description": format!("Adds\u{200b}.\n{}", "x".repeat(5_000)),
            "inputSchema": { "type": "object" },
        })]);
        let shown = &tools[0].shown;
        assert_eq!(
            (&*shown.name, &*shown.title),
            ("files_calculator", "rotaluclaC]0;x")
        );
        assert!(
            shown.description.starts_with("Adds.\nx") && shown.description.chars().count() <= 1_000
        );
        let many: Vec<Value> = (0..500)
            .map(|i| json!({ "name": format!("t{i}") }))
            .collect();
        assert_eq!(listed(&many).len(), MOST_TOOLS);
    }

    #[test]
    fn another_description_or_schema_makes_another_hash() {
        let tool = |description: &str, schema: Value| {
            let tool = json!({ "name": "a", "description": description, "inputSchema": schema });
            listed(&[tool])[0].shown.hash.clone()
        };
        let first = tool("reads", json!({ "type": "object" }));
        assert_eq!(tool("reads", json!({ "type": "object" })), first);
        assert_ne!(tool("deletes", json!({ "type": "object" })), first);
        assert_ne!(
            tool("reads", json!({ "type": "object", "required": ["a"] })),
            first
        );
    }

    #[test]
    fn a_claim_counts_only_where_there_is_nothing_to_change() {
        let none = Sandbox::None { why: String::new() };
        for (claims, folders, sandbox, reads_files, changes, network) in [
            (true, &[][..], &Sandbox::Full, false, false, false),
            (false, &[], &Sandbox::Full, false, true, false),
            (true, &[false], &Sandbox::Full, true, false, false),
            (true, &[false, true], &Sandbox::Full, true, true, false),
            (true, &[], &Sandbox::NetworkAllowed, false, true, true),
            (true, &[], &none, true, true, true),
        ] {
            let expected = Effects {
                reads_chats: false,
                reads_files,
                changes,
                network,
            };
            assert_eq!(effects(claims, &config(folders), sandbox), expected);
        }
    }
}

//! Messages and tools of the chat route.

use std::collections::HashMap;

use api::{AnswerForm, ApiMessage, ApiTool};
use serde_json::{Value, json};

use crate::error::HttpError;
use crate::fields::JsonFields;

/// Tools of a request, at most.
const MOST_TOOLS: usize = 128;

/// Reads the messages.
pub fn messages(fields: &JsonFields<'_>) -> Result<Vec<ApiMessage>, HttpError> {
    let mut messages = Vec::new();
    let mut results = CallResults::default();
    for message in fields.objects("messages")? {
        let role = message.needed_text("role")?;
        if role == "tool" || role == "function" {
            let text = text_or_parts(&message, "content")?.unwrap_or_default();
            results.push(message.text("tool_call_id")?, text);
            continue;
        }
        results.add_to(&mut messages);
        let text = text_or_parts(&message, "content")?;
        messages.push(match role {
            "system" | "developer" => ApiMessage::System {
                text: text.unwrap_or_default(),
            },
            "user" => ApiMessage::User {
                text: text.ok_or_else(|| message.wrong("content", "This is missing."))?,
            },
            "assistant" => {
                let mut made = Vec::new();
                for call in message.objects("tool_calls")? {
                    let function = call.needed_object("function")?;
                    let name = function.needed_text("name")?;
                    let arguments = function.text("arguments")?.unwrap_or("{}");
                    results.called(call.text("id")?.unwrap_or_default());
                    made.push((name.to_owned(), arguments.to_owned()));
                }
                ApiMessage::Assistant {
                    text: text.unwrap_or_default(),
                    calls: made,
                }
            }
            _ => {
                return Err(message.wrong(
                    "role",
                    "This has to be system, developer, user, assistant or tool.",
                ));
            }
        });
    }
    results.add_to(&mut messages);
    with_a_question(fields, "messages", messages)
}

/// Returns the messages of a field if there is one that can be answered: system messages are instructions alone.
pub fn with_a_question(
    fields: &JsonFields<'_>,
    field: &str,
    messages: Vec<ApiMessage>,
) -> Result<Vec<ApiMessage>, HttpError> {
    let is_system = |it: &ApiMessage| matches!(it, ApiMessage::System { .. });
    if messages.iter().all(is_system) {
        return Err(fields.wrong(
            field,
            "This has to be a list with a message that is not a system message.",
        ));
    }
    Ok(messages)
}

/// Results of calls, which are put in the order of the calls: the formats of models have no ids.
#[derive(Default)]
pub struct CallResults {
    /// Ids of the calls that wait for results.
    calls: HashMap<String, usize>,
    results: Vec<(usize, String)>,
}

impl CallResults {
    pub fn called(&mut self, id: &str) {
        let at = self.calls.len();
        self.calls.entry(id.to_owned()).or_insert(at);
    }

    pub fn push(&mut self, id: Option<&str>, text: String) {
        let at = id.and_then(|id| self.calls.get(id).copied());
        self.results.push((at.unwrap_or(self.calls.len()), text));
    }

    /// Adds the results before a message that is none.
    pub fn add_to(&mut self, messages: &mut Vec<ApiMessage>) {
        if self.results.is_empty() {
            return;
        }
        self.results.sort_by_key(|(at, _)| *at);
        let results = self.results.drain(..);
        messages.extend(results.map(|(_, text)| ApiMessage::Tool { text }));
        self.calls.clear();
    }
}

/// Reads a text, or parts that are texts.
pub fn text_or_parts(fields: &JsonFields<'_>, field: &str) -> Result<Option<String>, HttpError> {
    match fields.get(field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Array(_)) => {
            let mut text = String::new();
            for part in fields.objects(field)? {
                text.push_str(part_text(&part)?);
            }
            Ok(Some(text))
        }
        Some(_) => Err(fields.wrong(field, "This has to be a text, or a list of parts.")),
    }
}

/// Reads a part of a message.
fn part_text<'a>(part: &JsonFields<'a>) -> Result<&'a str, HttpError> {
    match part.needed_text("type")? {
        "text" | "input_text" | "output_text" => part.needed_text("text"),
        "refusal" => part.needed_text("refusal"),
        _ => Err(part.wrong(
            "type",
            "The model reads text only: no images, no sound, no files.",
        )),
    }
}

/// Reads a tool: its function has the fields that the API for responses has in the tool itself.
pub fn tool(function: &JsonFields<'_>) -> Result<ApiTool, HttpError> {
    let name = function.needed_text("name")?;
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
        let problem = "A name has 1 to 64 letters, digits, _ and -.";
        return Err(function.wrong("name", problem));
    }
    let parameters = function.object("parameters")?;
    Ok(ApiTool {
        name: name.to_owned(),
        description: function.text("description")?.unwrap_or_default().to_owned(),
        parameters: parameters.map_or_else(
            || json!({ "type": "object", "properties": {} }),
            |it| it.value(),
        ),
    })
}

/// Reads the tools of the chat route.
pub fn tools(fields: &JsonFields<'_>) -> Result<Vec<ApiTool>, HttpError> {
    let mut tools = Vec::new();
    for entry in fields.objects("tools")? {
        if entry.text("type")?.is_some_and(|it| it != "function") {
            return Err(entry.wrong("type", "Only functions can be called."));
        }
        tools.push(tool(&entry.needed_object("function")?)?);
    }
    checked(fields, tools)
}

/// Returns the tools if each has a name of its own.
pub fn checked(fields: &JsonFields<'_>, tools: Vec<ApiTool>) -> Result<Vec<ApiTool>, HttpError> {
    if tools.len() > MOST_TOOLS {
        return Err(fields.wrong("tools", &format!("At most {MOST_TOOLS} tools are taken.")));
    }
    for (at, tool) in tools.iter().enumerate() {
        if tools[..at].iter().any(|it| it.name == tool.name) {
            return Err(fields.wrong("tools", &format!("Two tools have the name {}.", tool.name)));
        }
    }
    Ok(tools)
}

/// Reads the form of an answer: calls of the tools, JSON of a schema (`format`), either of them, or free text.
pub fn form(
    fields: &JsonFields<'_>,
    tools: &[ApiTool],
    format: Option<Value>,
) -> Result<AnswerForm, HttpError> {
    let choice = tool_choice(fields, tools)?;
    let single = fields.flag("parallel_tool_calls")? == Some(false);
    match (choice, format) {
        (None, Some(schema)) => Ok(AnswerForm::Json { schema }),
        (None, None) => Ok(AnswerForm::Free),
        (Some((false, _)), Some(schema)) => Ok(AnswerForm::CallsOrJson { schema, single }),
        // A required call leaves no room for the format.
        (Some((required, only)), _) => Ok(AnswerForm::Calls {
            required,
            only,
            single,
        }),
    }
}

/// Reads which calls are wanted: whether one is required, and of which tool; `None` for no calls.
fn tool_choice(
    fields: &JsonFields<'_>,
    tools: &[ApiTool],
) -> Result<Option<(bool, Option<String>)>, HttpError> {
    let choice = match fields.get("tool_choice") {
        None => Some((false, None)),
        Some(Value::String(text)) => match text.as_str() {
            "none" => None,
            "auto" => Some((false, None)),
            "required" => Some((true, None)),
            _ => {
                return Err(fields.wrong(
                    "tool_choice",
                    "This has to be none, auto, required, or a function.",
                ));
            }
        },
        Some(_) => {
            let choice = fields.needed_object("tool_choice")?;
            let function = choice.object("function")?;
            let name = function.as_ref().unwrap_or(&choice).needed_text("name")?;
            if !tools.iter().any(|it| it.name == name) {
                let problem = format!("There is no tool {name} in tools.");
                return Err(fields.wrong("tool_choice", &problem));
            }
            Some((true, Some(name.to_owned())))
        }
    };
    match choice {
        Some((true, _)) if tools.is_empty() => {
            Err(fields.wrong("tool_choice", "There are no tools to call."))
        }
        choice => Ok(choice.filter(|_| !tools.is_empty())),
    }
}

/// Reads the schema of a response format; `None` for text.
pub fn schema(format: Option<JsonFields<'_>>) -> Result<Option<Value>, HttpError> {
    let Some(format) = format else {
        return Ok(None);
    };
    match format.needed_text("type")? {
        "text" => Ok(None),
        "json_object" => Ok(Some(json!({ "type": "object" }))),
        "json_schema" => {
            // The API for responses has the schema in the format itself.
            let inner = format.object("json_schema")?;
            let schema = inner.as_ref().unwrap_or(&format).needed_object("schema")?;
            Ok(Some(schema.value()))
        }
        _ => Err(format.wrong("type", "This has to be text, json_object or json_schema.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_their_calls() {
        let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": id, "arguments": "{}" } });
        let body = json!({ "messages": [
            { "role": "developer", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
            { "role": "assistant", "content": null, "tool_calls": [call("one"), call("two")] },
            { "role": "tool", "tool_call_id": "two", "content": "2" },
            { "role": "tool", "tool_call_id": "one", "content": "1" },
            { "role": "user", "content": "go on" },
        ] });
        let fields = JsonFields::of(&body, "").expect("an object");
        let read = messages(&fields).expect("messages");
        let text = |text: &str| text.to_owned();
        let tool = |it: &str| ApiMessage::Tool { text: text(it) };
        assert_eq!(
            read,
            [
                ApiMessage::System {
                    text: text("Be brief.")
                },
                ApiMessage::User { text: text("ab") },
                ApiMessage::Assistant {
                    text: String::new(),
                    calls: vec![(text("one"), text("{}")), (text("two"), text("{}"))],
                },
                tool("1"),
                tool("2"),
                ApiMessage::User {
                    text: text("go on")
                },
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (body, named) in [
            (json!({}), "messages"),
            (json!({ "messages": "Hi" }), "messages"),
            (json!({ "messages": [] }), "messages"),
            (
                json!({ "messages": [{ "role": "system", "content": "Be brief." }] }),
                "messages",
            ),
            (
                json!({ "messages": [{ "role": "narrator", "content": "x" }] }),
                "messages[0].role",
            ),
            (
                json!({ "messages": [{ "role": "user" }] }),
                "messages[0].content",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": 7 }] }),
                "messages[0].content",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" }] }] }),
                "messages[0].content[0].type",
            ),
            (
                json!({ "messages": [{ "role": "assistant", "tool_calls": [{}] }] }),
                "messages[0].tool_calls[0].function",
            ),
        ] {
            let fields = JsonFields::of(&body, "").expect("an object");
            let error = messages(&fields).expect_err(named);
            assert_eq!(error.param.as_deref(), Some(named));
        }
    }

    #[test]
    fn a_choice_of_tools_becomes_a_form() {
        let tools_of = json!({ "tools": [{ "type": "function", "function": { "name": "add" } }] });
        let form_of = |choice: Value, format: Option<Value>| {
            let mut body = tools_of.clone();
            body["tool_choice"] = choice;
            let fields = JsonFields::of(&body, "").expect("an object");
            let tools = tools(&fields)?;
            form(&fields, &tools, format)
        };
        let calls = |required, only: Option<&str>| AnswerForm::Calls {
            required,
            only: only.map(str::to_owned),
            single: false,
        };
        assert_eq!(form_of(json!(null), None), Ok(calls(false, None)));
        assert_eq!(form_of(json!("required"), None), Ok(calls(true, None)));
        let named = json!({ "type": "function", "function": { "name": "add" } });
        assert_eq!(form_of(named, None), Ok(calls(true, Some("add"))));
        assert_eq!(form_of(json!("none"), None), Ok(AnswerForm::Free));
        let schema = json!({ "type": "object" });
        let json = AnswerForm::Json {
            schema: schema.clone(),
        };
        assert_eq!(form_of(json!("none"), Some(schema.clone())), Ok(json));
        let either = AnswerForm::CallsOrJson {
            schema: schema.clone(),
            single: false,
        };
        assert_eq!(form_of(json!("auto"), Some(schema.clone())), Ok(either));
        assert_eq!(
            form_of(json!("required"), Some(schema)),
            Ok(calls(true, None))
        );
        assert!(form_of(json!({ "name": "subtract" }), None).is_err());
        assert!(form_of(json!("perhaps"), None).is_err());
    }
}

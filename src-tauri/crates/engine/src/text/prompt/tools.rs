//! Tools in the variables of a template. Their texts are untrusted: they are guarded like the content of messages.

use inference::ToolDefinition;
use serde_json::{Map, Value, json};

use super::guard::Guard;
use crate::text::template::ChatTemplate;

/// Inserts the variables that list tools.
pub(super) fn insert(
    context: &mut Value,
    tools: &[ToolDefinition],
    template: &ChatTemplate,
    guard: &Guard<'_>,
) {
    let Some(variables) = &template.protocol().tools else {
        return;
    };
    let signatures = variables.signatures.filter(|_| template.runs_code(tools));
    let listed: Vec<&ToolDefinition> = tools
        .iter()
        .filter(|tool| signatures.is_none() || tool.code.is_none())
        .collect();
    if let Some(variable) = signatures {
        let mut lines: Vec<String> = listed
            .iter()
            .map(|tool| guard.content(&signature(tool)))
            .collect();
        if lines.is_empty() {
            lines.push("# None: only Python itself is there.".to_owned());
        }
        context[variable] = lines.into();
    }
    if !listed.is_empty() {
        context[variables.tools] = listed.iter().map(|tool| definition(tool, guard)).collect();
    }
    if let Some(variable) = variables.unset {
        context[variable] = false.into();
    }
}

/// The definition of a tool in the form that transformers gives it.
fn definition(tool: &ToolDefinition, guard: &Guard<'_>) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": guard.content(&tool.name),
            "description": guard.content(&tool.description),
            "parameters": guarded(&tool.parameters, guard),
        },
    })
}

/// A value whose texts and keys have marks.
fn guarded(value: &Value, guard: &Guard<'_>) -> Value {
    match value {
        Value::String(text) => guard.content(text).into(),
        Value::Array(items) => items.iter().map(|item| guarded(item, guard)).collect(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| (guard.content(key), guarded(value, guard)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// A tool as a function of Python: its signature and the first line of its description.
fn signature(tool: &ToolDefinition) -> String {
    let parameters = &tool.parameters;
    let required = |name: &str| {
        let required = parameters["required"].as_array();
        required.is_some_and(|names| names.iter().any(|it| it == name))
    };
    let properties = parameters["properties"].as_object().into_iter().flatten();
    let (first, last): (Vec<_>, Vec<_>) = properties.partition(|(name, _)| required(name));
    let first = first
        .into_iter()
        .map(|(name, schema)| format!("{name}: {}", python_type(schema)));
    let last = last
        .into_iter()
        .map(|(name, schema)| format!("{name}: {} = None", python_type(schema)));
    let arguments: Vec<String> = first.chain(last).map(|it| one_line(&it)).collect();
    let description = tool.description.trim().lines().next().unwrap_or_default();
    format!(
        "def {}({}) -> str:\n    \"\"\"{}\"\"\"",
        one_line(&tool.name),
        arguments.join(", "),
        one_line(description).replace("\"\"\"", "'''"),
    )
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// The annotation of an argument.
fn python_type(schema: &Value) -> &'static str {
    match schema["type"].as_str() {
        Some("string") => "str",
        Some("integer") => "int",
        Some("number") => "float",
        Some("boolean") => "bool",
        Some("array") => "list",
        Some("object") => "dict",
        Some("null") => "None",
        _ => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_one_function_of_python_with_its_required_arguments_first() {
        let tool = ToolDefinition {
            name: "get_weather".to_owned(),
            description: "\n Weather of a \"\"\"city\"\"\".\nMore about it.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "days": {"type": "integer"},
                    "city": {"type": "string"},
                    "near\nby": {"type": ["string", "null"]},
                },
                "required": ["city"],
            }),
            code: None,
        };
        let expected = "def get_weather(city: str, days: int = None, near by: object = None) -> str:\n    \
                        \"\"\"Weather of a '''city'''.\"\"\"";
        assert_eq!(signature(&tool), expected);
    }
}

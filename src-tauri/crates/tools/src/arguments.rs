//! The arguments of a call, checked before the tool runs.

use serde_json::{Map, Value};

use crate::schema::fault;
use crate::tool::{ToolError, ToolInfo};

/// Reads the arguments of a call as the model wrote them, and checks them against the tool's schema. No text at all is
/// an empty object.
///
/// # Errors
/// Fails if they are not a JSON object, or not of the schema; the sentence names the argument.
pub fn check_arguments(tool: &ToolInfo, arguments: &str) -> Result<Map<String, Value>, ToolError> {
    let arguments = match arguments.trim() {
        "" => "{}",
        written => written,
    };
    match serde_json::from_str(arguments) {
        Ok(Value::Object(arguments)) => checked(tool, arguments),
        Ok(_) => Err(wrong(tool, "the arguments must be a JSON object")),
        Err(error) => Err(wrong(
            tool,
            &format!("the arguments are not valid JSON ({error})"),
        )),
    }
}

/// Checks arguments that were read already.
///
/// # Errors
/// Fails if they are not of the schema.
pub fn checked(
    tool: &ToolInfo,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, ToolError> {
    let arguments = Value::Object(arguments);
    match (fault(&tool.definition.parameters, &arguments), arguments) {
        (None, Value::Object(arguments)) => Ok(arguments),
        (fault, _) => Err(wrong(tool, &fault.unwrap_or_default())),
    }
}

fn wrong(tool: &ToolInfo, fault: &str) -> ToolError {
    ToolError::Failed(format!("{}: {fault}.", tool.definition.name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::Effects;

    fn says(parameters: Value, arguments: &str) -> String {
        let tool = ToolInfo::built_in("f", "F", "", parameters, Effects::default());
        match check_arguments(&tool, arguments) {
            Ok(arguments) => Value::Object(arguments).to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_wrong_with_arguments_is_said() {
        let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } });
        assert_eq!(says(schema.clone(), r#"{"a": "b"}"#), r#"{"a":"b"}"#);
        assert_eq!(says(schema.clone(), ""), "f: `a` is missing.");
        assert_eq!(
            says(schema.clone(), "[1]"),
            "f: the arguments must be a JSON object."
        );
        let broken = says(schema, r#"{"a": "b""#);
        assert!(
            broken.starts_with("f: the arguments are not valid JSON (EOF"),
            "{broken}"
        );
        assert_eq!(says(json!({}), " "), "{}");
    }
}

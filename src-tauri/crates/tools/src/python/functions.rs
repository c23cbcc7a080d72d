//! Tools as functions of a program.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::frame::{FunctionCall, Returned};
use crate::arguments::checked;
use crate::tool::{Tool, ToolError, ToolInfo, ToolRun};

/// The tools that a program may call, each by its name with `_` for `-`.
pub struct Functions<'t>(Vec<(String, &'t Arc<dyn Tool>)>);

impl<'t> Functions<'t> {
    /// Returns the functions of these tools. A program cannot run programs.
    pub fn of(tools: &'t [Arc<dyn Tool>]) -> Functions<'t> {
        let named = tools.iter().filter_map(|tool| {
            let definition = &tool.info().definition;
            let name = definition.name.replace('-', "_");
            definition.code.is_none().then_some((name, tool))
        });
        Functions(named.collect())
    }

    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Runs a tool. A result that is JSON becomes the value that it describes.
    ///
    /// # Errors
    /// Fails if the whole run must end; the failure of a tool is an exception of the program.
    pub fn call(&self, call: FunctionCall, run: &ToolRun<'_>) -> Result<Returned, ToolError> {
        run.check()?;
        let Some((_, tool)) = self.0.iter().find(|(name, _)| *name == call.name) else {
            return Ok(Err(format!("there is no function {}", call.name)));
        };
        let info = tool.info();
        let limits = ToolRun {
            functions: &[],
            chat: run.chat,
            ..*run
        };
        let arguments = arguments(&info, call).and_then(|it| checked(&info, it));
        match arguments.and_then(|arguments| tool.run(&arguments, &limits)) {
            Ok(output) => Ok(Ok(
                serde_json::from_str(&output.text).unwrap_or(Value::String(output.text))
            )),
            Err(ToolError::Failed(message)) => Ok(Err(message)),
            Err(ended) => Err(ended),
        }
    }
}

/// Returns the arguments by name: those without one are the properties of the schema, in order.
fn arguments(tool: &ToolInfo, call: FunctionCall) -> Result<Map<String, Value>, ToolError> {
    let properties = tool.definition.parameters.get("properties");
    let properties = properties.and_then(Value::as_object);
    let names: Vec<&String> = properties.into_iter().flat_map(Map::keys).collect();
    let FunctionCall {
        name,
        positional,
        named,
    } = call;
    if positional.len() > names.len() {
        let (most, given) = (names.len(), positional.len());
        return Err(ToolError::Failed(format!(
            "{name}() takes at most {most} arguments, not {given}."
        )));
    }
    let mut arguments = named;
    for (property, value) in names.into_iter().zip(positional) {
        if arguments.insert(property.clone(), value).is_some() {
            return Err(ToolError::Failed(format!(
                "{name}() has two values for `{property}`."
            )));
        }
    }
    Ok(arguments)
}

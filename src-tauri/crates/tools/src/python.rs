//! Programs in Python: monty, an interpreter in Rust, in a child process. Neither files nor the network exist for it.
//! Each run starts afresh.

mod frame;
mod functions;
mod interpreter;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use system::child::Child;

use crate::process::{Computation, ToolProcess};
use crate::tool::{Effects, Tool, ToolError, ToolInfo, ToolOutput, ToolRun};
use frame::PythonFrame;
use functions::Functions;
pub use interpreter::serve;

/// The argument that is the program.
const CODE: &str = "code";

/// The tool that runs programs.
pub struct Python {
    info: Arc<ToolInfo>,
    program: Child,
}

impl Python {
    /// Makes the tool. `program` runs [`serve`](crate::serve).
    pub fn new(program: Child) -> Python {
        let description = "Runs a Python 3 program; returns what it prints and its last expression. Modules: math, re, \
            json, datetime, collections, itertools, functools. No files, no network, no packages. Each call starts \
            afresh. The other tools are functions. Example: print(sum(n * n for n in range(10)))";
        let parameters = json!({
            "type": "object",
            "properties": { CODE: { "type": "string" } },
            "required": [CODE],
            "additionalProperties": false,
        });
        let effects = Effects::default();
        let mut info = ToolInfo::built_in("run_python", "Python", description, parameters, effects);
        info.definition.code = Some(CODE.to_owned());
        Python {
            info: Arc::new(info),
            program,
        }
    }
}

impl Tool for Python {
    fn info(&self) -> Arc<ToolInfo> {
        Arc::clone(&self.info)
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        run: &ToolRun<'_>,
    ) -> Result<ToolOutput, ToolError> {
        // Its indentation counts, that of the first line, too.
        let code = arguments.get(CODE).and_then(Value::as_str);
        let code = code.unwrap_or_default();
        let functions = Functions::of(run.functions);
        let computation = Computation::Python {
            code: code.to_owned(),
            functions: functions.names(),
        };
        let mut process = ToolProcess::start(&self.program, &computation, run)?;
        loop {
            match process.receive(run)? {
                PythonFrame::Call(call) => process.send(&functions.call(call, run)?)?,
                PythonFrame::Ended(end) => return end.shown(),
            }
        }
    }
}

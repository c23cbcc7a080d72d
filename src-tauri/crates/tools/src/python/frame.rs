//! The frames between a program and its parent.

use figures::count;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tool::{ToolError, ToolOutput};

/// Maximum bytes of what a program prints, and of its value; the rest is dropped.
pub const MOST_OUTPUT: usize = 64 << 10;

/// A message from the child.
#[derive(Serialize, Deserialize)]
pub enum PythonFrame {
    /// The program calls a function, and waits for a [`Returned`].
    Call(FunctionCall),
    /// It ended.
    Ended(ProgramEnd),
}

/// A call of a function.
#[derive(Serialize, Deserialize)]
pub struct FunctionCall {
    pub name: String,
    pub positional: Vec<Value>,
    pub named: Map<String, Value>,
}

/// The value of a call, or the message of an exception.
pub type Returned = Result<Value, String>;

/// The end of a program.
#[derive(Serialize, Deserialize)]
pub struct ProgramEnd {
    pub printed: String,
    /// Bytes that were dropped.
    pub dropped: usize,
    /// The value of its last expression, unless that is `None`; or the traceback.
    pub value: Result<Option<String>, String>,
}

impl ProgramEnd {
    /// Returns the result as the model reads it.
    pub fn shown(self) -> Result<ToolOutput, ToolError> {
        let mut lines = vec![self.printed.trim_end().to_owned()];
        if self.dropped > 0 {
            lines.push(format!(
                "… ({} more bytes were cut off)",
                count(self.dropped)
            ));
        }
        let failed = self.value.is_err();
        match self.value {
            Ok(None) => {}
            Ok(Some(text)) | Err(text) => lines.push(text),
        }
        lines.retain(|line| !line.is_empty());
        match lines.join("\n") {
            text if failed => Err(ToolError::Failed(text)),
            text if text.is_empty() => Ok(ToolOutput::new(
                "The program printed nothing. Use print() to see a value.",
            )),
            text => Ok(ToolOutput { text }),
        }
    }
}

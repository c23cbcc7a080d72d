//! Tools, as a model sees them.

use std::sync::Arc;

use serde_json::Value;

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Name, unique among the tools of a conversation: 1 to 64 of the characters `A-Za-z0-9_-`.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments, which are an object.
    pub parameters: Value,
    /// The argument that is a program in Python, and the only one. A format with calls of its own for programs writes
    /// them without JSON.
    pub code: Option<String>,
}

/// Limits of the form of an answer. Thinking is free.
#[derive(Debug, Clone, PartialEq)]
pub enum Constraint {
    /// A call that the answer begins is one of these tools, with arguments that its schema allows.
    Calls {
        /// The tools.
        tools: Arc<[ToolDefinition]>,
        /// True if the answer is a call, without other text.
        required: bool,
    },
    /// The answer is a call of one of these tools, or else JSON of this schema.
    CallsOrJson {
        /// The tools.
        tools: Arc<[ToolDefinition]>,
        /// The schema.
        schema: Arc<Value>,
    },
    /// No call can be begun.
    NoCalls,
    /// The answer is JSON of this schema.
    Json(Arc<Value>),
}

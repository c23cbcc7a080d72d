//! Identity of a tool for a lasting consent.

use crate::tool::{ToolInfo, ToolSource};

impl ToolInfo {
    /// Returns a hash of all that a user who allows the tool is shown: name, description, schema, origin and effects. A
    /// tool that changes is another one.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let server = match &self.source {
            ToolSource::BuiltIn => None,
            ToolSource::Server { name } => Some(name),
        };
        let definition = &self.definition;
        let shown = serde_json::json!([
            definition.name,
            definition.description,
            definition.parameters,
            server,
            self.effects,
        ]);
        blake3::hash(shown.to_string().as_bytes())
            .to_hex()
            .to_string()
    }
}

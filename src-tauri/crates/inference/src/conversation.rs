//! Input of a model.

use std::sync::Arc;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::tool::ToolDefinition;

/// The speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A system message of the protocol, including `/think` and `/system_override`. Instructions of the user belong in
    /// [`Conversation::instructions`].
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl Role {
    /// Returns the name in chat templates, in the store and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }

    /// Returns the role of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Role> {
        [Role::System, Role::User, Role::Assistant, Role::Tool]
            .into_iter()
            .find(|role| role.name() == name)
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Turn {
    /// The speaker.
    pub role: Role,
    /// The text, without thinking.
    pub text: String,
    /// Thinking without its tags, if it belongs in the prompt.
    pub thinking: Option<String>,
    /// Calls of tools, in order.
    pub calls: Vec<ToolCall>,
    /// Ids exactly as this model generated them, thinking included. They go into the prompt unchanged, so that the
    /// cache of the last answer is reused.
    pub ids: Option<Vec<u32>>,
    /// A partial answer at the end of the conversation, to be continued.
    pub open: bool,
}

impl Turn {
    /// Makes a complete message.
    #[must_use]
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            text: text.into(),
            thinking: None,
            calls: Vec::new(),
            ids: None,
            open: false,
        }
    }

    /// Returns it without its thinking, and without the ids, which include that.
    #[must_use]
    pub fn without_thinking(&self) -> Turn {
        Turn {
            ids: None,
            thinking: None,
            ..self.clone()
        }
    }
}

/// A call of a tool in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolCall {
    /// Bytes of the text that stand before it.
    pub at: usize,
    /// Name of the tool.
    pub name: String,
    /// Its arguments, as the model wrote them.
    pub arguments: String,
}

/// A conversation as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// The messages, oldest first.
    pub messages: Vec<Turn>,
    /// Instructions of the user, which replace the template's.
    pub instructions: Option<String>,
    /// Tools that the prompt offers.
    pub tools: Arc<[ToolDefinition]>,
    /// True if the model is to think first. Otherwise earlier thinking is left out.
    pub thinking: bool,
    /// Date that the template writes; the same for a whole chat, so that its prompt never changes.
    pub today: Date,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_one_name_everywhere() {
        for role in [Role::System, Role::User, Role::Assistant, Role::Tool] {
            assert_eq!(Role::from_name(role.name()), Some(role));
            let written = serde_json::to_value(role).expect("plain data");
            assert_eq!(written, role.name());
        }
        assert_eq!(Role::from_name("narrator"), None);
    }
}

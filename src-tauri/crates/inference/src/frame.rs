//! Token sequences around the messages of a prompt.

use crate::Role;

/// Structure of a template around the messages of a conversation, so that each message can be encoded by itself. A prompt
/// is the head, the messages and the tail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptFrame {
    /// True if the model is to think first.
    pub thinking: bool,
    /// The system message.
    pub head: Vec<u32>,
    /// The opening of the next answer.
    pub tail: Vec<u32>,
    /// Frame of a user's message.
    pub user: MessageFrame,
    /// Frame of an answer.
    pub answer: MessageFrame,
    /// Frame of an answer that goes on: it has no end.
    pub continued: MessageFrame,
    /// Frame of a system message after the first message; `None` if the template leaves it out.
    pub system: Option<MessageFrame>,
    /// Frame of a tool's result; `None` if the template leaves it out.
    pub tool: Option<MessageFrame>,
    /// Tool whose calls are written as programs.
    pub code: Option<CodeTool>,
}

/// A tool whose calls are written as programs, without JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeTool {
    /// Its name.
    pub name: String,
    /// The argument that is the program.
    pub argument: String,
}

impl PromptFrame {
    /// Returns the frame of a complete message; `None` if the template leaves it out.
    #[must_use]
    pub fn around(&self, role: Role) -> Option<&MessageFrame> {
        match role {
            Role::User => Some(&self.user),
            Role::Assistant => Some(&self.answer),
            Role::System => self.system.as_ref(),
            Role::Tool => self.tool.as_ref(),
        }
    }
}

/// Structure of a template around a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct MessageFrame {
    /// Tokens before the message.
    pub opening: Vec<u32>,
    /// Prefix that is encoded together with the message's text.
    pub before: String,
    /// Suffix that is encoded together with the message's text.
    pub after: String,
    /// Tokens behind the message.
    pub closing: Vec<u32>,
    /// Form of the message's text.
    pub content: Content,
    /// Text between adjacent messages of this role, if they share an opening and a closing.
    pub joint: Option<String>,
}

/// Form in which a template writes the text of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Content {
    /// Unchanged.
    #[default]
    Verbatim,
    /// Without white space at its ends.
    Trimmed,
    /// Escaped, within a string of JSON.
    Json,
}

/// A message as it stands in a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodedMessage {
    /// The ids.
    pub ids: Vec<u32>,
    /// Number of them that are thinking, tags included.
    pub thinking: usize,
}

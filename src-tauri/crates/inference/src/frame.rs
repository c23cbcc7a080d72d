//! Token sequences around the messages of a prompt.

/// Template tokens around the messages of a conversation, so that each message can be encoded by itself. A prompt is
/// the head, the messages with their openings (the first one without), and the tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFrame {
    /// True if the model is to think first.
    pub thinking: bool,
    /// The system message and the opening of the first message.
    pub head: Vec<u32>,
    /// Closing of the last message and opening of the answer.
    pub tail: Vec<u32>,
    /// Frame of a user's message.
    pub user: MessageFrame,
    /// Frame of an answer.
    pub answer: MessageFrame,
}

/// Template tokens and text around a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageFrame {
    /// Closing of the message before and opening of this one.
    pub opening: Vec<u32>,
    /// Prefix that is encoded together with the message's text.
    pub before: String,
    /// Suffix that is encoded together with the message's text.
    pub after: String,
}

/// A message as it stands in a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodedMessage {
    /// The ids.
    pub ids: Vec<u32>,
    /// Number of them that are thinking, tags included.
    pub thinking: usize,
}

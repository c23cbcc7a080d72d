//! What stands around the messages of a prompt.

/// What the prompts of a conversation have around their messages, so that each message can be encoded for itself: a
/// prompt is the head, the messages with their openings (of the first one without), and the tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFrame {
    /// Whether the model is to think first.
    pub thinking: bool,
    /// The system message, and what opens the first message.
    pub head: Vec<u32>,
    /// What closes the last message, and opens the answer.
    pub tail: Vec<u32>,
    /// Of a user's message.
    pub user: MessageFrame,
    /// Of an answer.
    pub answer: MessageFrame,
}

/// What stands around a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageFrame {
    /// What closes the message before, and opens this one.
    pub opening: Vec<u32>,
    /// Text that is encoded together with the message's, before it.
    pub before: String,
    /// The same behind it.
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

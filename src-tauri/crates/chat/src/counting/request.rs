//! Requests to the counting thread.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use inference::{Conversation, Turn};
use store::{MessageId, OmittedRow};

use crate::context::ContextUsage;
use crate::failure::Failure;
use crate::fit::Limits;
use crate::model_host::PromptCounter;

/// A chat whose context is counted.
pub(crate) struct CountRequest {
    pub counter: Arc<dyn PromptCounter>,
    /// Instructions, date and mode, without messages.
    pub conversation: Conversation,
    pub limits: Limits,
    pub max_tokens: Option<usize>,
    /// Message among those counted before that these messages follow; `None` if they are all.
    pub after: Option<MessageId>,
    /// Messages, each with its turns in the prompt.
    pub messages: Vec<(MessageId, Vec<Turn>)>,
    pub before: OmittedRow,
    pub whole: bool,
    /// Tokens of the last message so far, if it is in progress.
    pub written: Option<u32>,
    pub draft: String,
    /// Tokens of attached texts.
    pub pasted: usize,
    /// Receives `None` if the message that they follow was not counted.
    pub reply: Sender<Result<Option<ContextUsage>, Failure>>,
}

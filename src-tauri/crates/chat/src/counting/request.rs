//! What the counting thread is asked.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use inference::{Conversation, Turn};
use store::{ChatId, MessageId, OmittedRow};

use crate::context::ContextUsage;
use crate::failure::Failure;
use crate::fit::Limits;
use crate::model_host::PromptCounter;

/// A chat whose context is to be counted.
pub(crate) struct CountRequest {
    pub counter: Arc<dyn PromptCounter>,
    pub place: CountedPlace,
    /// Instructions, date and mode, without messages.
    pub conversation: Conversation,
    pub limits: Limits,
    pub max_tokens: Option<usize>,
    /// The messages follow this one of those that were counted before; `None`: they are all.
    pub after: Option<MessageId>,
    /// `None`: nothing of it is in the prompt.
    pub messages: Vec<(MessageId, Option<Turn>)>,
    pub before: OmittedRow,
    pub whole: bool,
    /// Tokens generated so far of the last message, if that is being written.
    pub written: Option<u32>,
    pub draft: String,
    /// Tokens of texts that go with it.
    pub pasted: usize,
    /// Gets `None` where the message that they follow was not counted.
    pub reply: Sender<Result<Option<ContextUsage>, Failure>>,
}

/// What counted messages are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountedPlace {
    pub chat: Option<ChatId>,
    /// The model's fingerprint.
    pub model: String,
    pub thinking: bool,
}

//! Requests to a model.

use crate::params::GenerateParams;
use crate::prompt::Prompt;
use crate::signals::Signals;

/// Identifies a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Kinds of requests, the most urgent first. Answers are written together; a request of another kind runs alone, and
/// gives way to a more urgent one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// An answer that a user waits for.
    Answer,
    /// An answer that another program waits for.
    Api,
    /// A message that is not sent yet: its prompt is prefilled as far as the answer to a longer one can reuse it.
    ReadAhead,
    /// A title, which follows a conversation in memory and is removed from its cache afterwards.
    Title,
}

impl Priority {
    /// Returns true for requests that somebody waits for.
    pub fn is_answer(self) -> bool {
        self <= Priority::Api
    }
}

/// A request to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Id of its events.
    pub id: RequestId,
    /// Its kind.
    pub priority: Priority,
    /// The caller's label of the conversation.
    pub conversation: u64,
    /// The prompt.
    pub prompt: Prompt,
    /// Parameters of the answer.
    pub params: GenerateParams,
    /// Flags that are polled.
    pub signals: Signals,
}

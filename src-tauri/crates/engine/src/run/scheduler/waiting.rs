//! A request without a sequence.

use std::sync::Arc;

use inference::{ModelRequest, Priority};

use crate::grammar::AnswerRules;

/// A request that waits, with the form of its answer.
pub(super) struct WaitingRequest {
    pub request: ModelRequest,
    pub rules: Option<Arc<AnswerRules>>,
}

/// Returns the conversation whose sequences alone a request may reuse; `None` for any. A program could find out from its
/// figures with what the chats of the user begin.
pub(super) fn only_own(request: &ModelRequest) -> Option<u64> {
    (request.priority == Priority::Api).then_some(request.conversation)
}

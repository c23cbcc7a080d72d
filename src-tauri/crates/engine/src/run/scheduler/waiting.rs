//! A request without a sequence.

use std::sync::Arc;

use inference::ModelRequest;

use crate::grammar::AnswerRules;

/// A request that waits, with the form of its answer.
pub(super) struct WaitingRequest {
    pub request: ModelRequest,
    pub rules: Option<Arc<AnswerRules>>,
}

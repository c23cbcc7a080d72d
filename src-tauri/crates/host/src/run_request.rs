//! One request of a test, run to its end.

use std::sync::atomic::AtomicBool;

use chat::{ChatId, Failure, ModelHost};
use engine::{Event, Finished, GenerateParams, ModelRequest, Priority, Prompt, RequestId, Signals};

use crate::EngineModel;

/// Chat of the requests.
pub(crate) const CHAT: ChatId = ChatId(7);

/// Makes a request of [`CHAT`].
pub(crate) fn request(
    priority: Priority,
    prompt: &Prompt,
    params: &GenerateParams,
) -> ModelRequest {
    ModelRequest {
        id: RequestId(1),
        priority,
        conversation: CHAT.0.cast_unsigned(),
        prompt: prompt.clone(),
        params: params.clone(),
        signals: Signals::default(),
    }
}

/// Runs a request to its end.
pub(crate) fn run(
    model: &mut EngineModel,
    request: ModelRequest,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Finished, Failure> {
    model.submit(request)?;
    let never = AtomicBool::new(false);
    loop {
        let ended = model.step(&never, &mut |_, event| on_event(event));
        if let Some((_, result)) = ended.into_iter().next() {
            return result;
        }
    }
}

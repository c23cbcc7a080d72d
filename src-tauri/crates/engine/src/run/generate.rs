//! Generation of one answer.

use std::sync::atomic::AtomicBool;

use inference::{
    Event, Finished, GenerateParams, ModelRequest, Priority, Prompt, RequestId, Signals,
};

use crate::run::error::GenerateError;
use crate::run::kv_blocks::NoBlocks;
use crate::run::scheduler::{Scheduler, StepOptions};

/// Generates an answer. No other request may be active.
///
/// # Errors
/// Fails if the prompt is empty or fills the context, or the device fails.
pub(crate) fn generate(
    scheduler: &mut Scheduler,
    prompt: &Prompt,
    params: &GenerateParams,
    signals: &Signals,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Finished, GenerateError> {
    scheduler.submit(ModelRequest {
        id: RequestId(0),
        priority: Priority::Answer,
        conversation: 0,
        prompt: prompt.clone(),
        params: params.clone(),
        signals: signals.clone(),
    })?;
    let never = AtomicBool::new(false);
    loop {
        let mut step = StepOptions {
            preempt: &never,
            blocks: &mut NoBlocks,
        };
        let ended = scheduler.step(&mut step, &mut |_, event| on_event(event));
        if let Some((_, result)) = ended.into_iter().next() {
            return result;
        }
    }
}

#[cfg(test)]
mod tests;

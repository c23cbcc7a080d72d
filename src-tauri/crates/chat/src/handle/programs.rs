//! The verbs of other programs.

use inference::Signals;

use super::Chat;
use crate::api::{ApiJob, ApiListener, ApiRequest, ServedModel};
use crate::failure::Failure;

impl Chat {
    /// Answers another program. Does not wait: `listener` receives the progress and the end.
    pub fn answer_program(&self, request: ApiRequest, listener: ApiListener) {
        let job = ApiJob::new(request, listener);
        // If the actor has ended, the job is dropped, which ends it.
        self.post(|actor| actor.answer_program(job));
    }

    /// Ends an answer to another program: within the pass if that serves no other, else after it.
    pub fn cancel_program(&self, signals: &Signals) {
        signals.cancel();
        self.post(|actor| actor.end_for_program());
    }

    /// Returns the model that answers other programs; `None` if there is none.
    pub fn served_model(&self) -> Result<Option<ServedModel>, Failure> {
        self.ask(|actor| Ok(actor.served_model()))
    }
}

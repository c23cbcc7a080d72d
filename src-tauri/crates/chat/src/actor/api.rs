//! Requests of other programs. They wait while a model is being opened.

use std::sync::Arc;

use crate::actor::state::ChatActor;
use crate::api::{ApiJob, ServedModel};
use crate::job::Job;
use crate::view::ModelStatus;

impl ChatActor {
    pub(crate) fn answer_program(&mut self, job: ApiJob) {
        self.use_model();
        self.api.push(job.counted(&self.api_running));
    }

    /// Submits the requests that waited for a model. A pass that serves others is not ended for them.
    pub(super) fn begin_for_programs(&mut self) {
        let running = self.programs() > self.api.len();
        let mut serves_others = running || self.answers.busy();
        for job in self.api.drain(..) {
            let job = Job::Api(job);
            match std::mem::replace(&mut serves_others, true) {
                true => self.jobs.queue(job),
                false => self.jobs.submit(job),
            }
        }
    }

    /// Ends the pass of a request that was cancelled, unless it serves others.
    pub(crate) fn end_for_program(&self) {
        if self.programs() <= 1 && !self.answers.busy() {
            self.jobs.preempt();
        }
    }

    /// Returns whether a request of another program waits or runs.
    pub(super) fn answers_programs(&self) -> bool {
        self.programs() > 0
    }

    /// Returns the number of requests of other programs that wait or run.
    fn programs(&self) -> usize {
        Arc::strong_count(&self.api_running) - 1
    }

    /// Returns the model that answers other programs; `None` if there is none.
    pub(crate) fn served_model(&self) -> Option<ServedModel> {
        let name = match self.model.view().status {
            ModelStatus::Ready { model } => model.name,
            ModelStatus::Loading { model, .. }
            | ModelStatus::Checking { model }
            | ModelStatus::Ejected { model } => model.name,
            ModelStatus::None => return None,
        };
        Some(ServedModel {
            name,
            info: self.model.info().cloned(),
            counter: self.model.counter().cloned(),
        })
    }
}

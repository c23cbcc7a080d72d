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

    /// Submits the requests that waited for a model.
    pub(super) fn begin_for_programs(&mut self) {
        for job in self.api.drain(..) {
            self.jobs.submit(Job::Api(job));
        }
    }

    /// Returns whether a request of another program waits or runs.
    pub(super) fn answers_programs(&self) -> bool {
        Arc::strong_count(&self.api_running) > 1
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

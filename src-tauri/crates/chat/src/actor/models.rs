//! Opening and unloading models. An unloaded one is opened again when it is needed; if its file is gone by then, the
//! bundled model answers.

use std::time::Instant;

use crate::actor::state::ChatActor;
use crate::failure::Failure;
use crate::job::Job;
use crate::model_host::ModelChoice;
use crate::model_slot::{self, OpenReason};
use crate::view::ChatEvent;

impl ChatActor {
    pub(crate) fn open_model(&mut self, choice: ModelChoice) -> Result<(), Failure> {
        self.want(choice, OpenReason::Asked);
        Ok(())
    }

    pub(crate) fn retry_model(&mut self) -> Result<(), Failure> {
        self.open_model(model_slot::remembered(&self.stores.disk)?)
    }

    pub(super) fn want(&mut self, choice: ModelChoice, reason: OpenReason) {
        self.model.want(choice, reason);
        self.emit_model();
    }

    /// Reopens the present model: with other settings, or after it panicked.
    pub(super) fn reopen_model(&mut self) {
        if self.model.want_again() {
            self.emit_model();
        }
    }

    /// Opens the requested model.
    pub(super) fn open_wanted(&mut self) {
        let Some(request) = self.model.open_wanted() else {
            return;
        };
        self.jobs.submit(Job::Open {
            choice: request.choice,
            options: self.settings.load_options(),
            // One that is reloaded has been open since the app may have crashed over it.
            asked: matches!(
                request.reason,
                OpenReason::Asked | OpenReason::Given | OpenReason::Reload
            ),
        });
    }

    pub(super) fn emit_model(&self) {
        self.emit(ChatEvent::Model {
            model: self.model.view(),
        });
    }

    pub(crate) fn eject_model(&mut self) -> Result<(), Failure> {
        if !self.answers.is_empty() {
            return Err(Failure::other(
                "The model is writing an answer. Stop it first.",
            ));
        }
        if self.model.changes() {
            return Err(Failure::other(
                "The model is still being loaded. Try again in a moment.",
            ));
        }
        self.unload();
        Ok(())
    }

    /// Reopens the unloaded model, unless there is none or another is being opened.
    pub(crate) fn reload_ejected(&mut self) {
        if self.model.want_ejected() {
            self.emit_model();
        }
    }

    /// Notes a use of the model, which is about to be needed.
    pub(super) fn use_model(&mut self) {
        self.model.touch();
        self.reload_ejected();
    }

    /// Returns the time at which the model is unloaded unless it is used before.
    pub(super) fn unload_due(&self) -> Option<Instant> {
        let minutes = self
            .settings
            .unload_minutes
            .filter(|_| self.answers.is_empty() && !self.answers_programs());
        self.model.unload_due(self.timing.minute * minutes?)
    }

    pub(super) fn unload_if_idle(&mut self) {
        if self.unload_due().is_some_and(|due| due <= Instant::now()) {
            tracing::info!("the model is unloaded: it was not used");
            self.unload();
        }
    }

    fn unload(&mut self) {
        if self.model.eject() {
            self.jobs.submit(Job::Close);
            self.emit_model();
        }
    }
}

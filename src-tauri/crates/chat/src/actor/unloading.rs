//! Unloading of the model, and reopening it when it is needed. If its file is gone by then, the bundled model answers.

use std::time::Instant;

use crate::actor::model_slot::{EjectedModel, OpenReason};
use crate::actor::state::ChatActor;
use crate::failure::Failure;
use crate::job::Job;
use crate::model_host::ModelChoice;
use crate::view::ChatEvent;

impl ChatActor {
    pub(crate) fn eject_model(&mut self) -> Result<(), Failure> {
        if !self.answers.is_empty() {
            return Err(Failure::other(
                "The model is writing an answer. Stop it first.",
            ));
        }
        if self.model.opening() || self.model.wanted.is_some() {
            return Err(Failure::other(
                "The model is still being loaded. Try again in a moment.",
            ));
        }
        self.unload();
        Ok(())
    }

    /// Reopens the unloaded model, unless there is none or another is being opened.
    pub(crate) fn reload_ejected(&mut self) {
        if self.model.opening() || self.model.wanted.is_some() {
            return;
        }
        if let Some(ejected) = &self.model.ejected {
            self.want(ejected.choice.clone(), OpenReason::Reload);
        }
    }

    /// Notes a use of the model, which is about to be needed.
    pub(super) fn use_model(&mut self) {
        self.model.used = Instant::now();
        self.reload_ejected();
    }

    /// Returns the time at which the model is unloaded unless it is used before. The bundled model stays: it takes
    /// little memory.
    pub(super) fn unload_due(&self) -> Option<Instant> {
        let (choice, _) = self.model.open.as_ref()?;
        let minutes = self.settings.unload_minutes?;
        let is_idle =
            self.answers.is_empty() && !self.model.opening() && self.model.wanted.is_none();
        (is_idle && *choice != ModelChoice::BundledModel)
            .then(|| self.model.used + self.timing.minute * minutes)
    }

    pub(super) fn unload_if_idle(&mut self) {
        if self.unload_due().is_some_and(|due| due <= Instant::now()) {
            tracing::info!(idle = ?self.model.used.elapsed(), "the model is unloaded");
            self.unload();
        }
    }

    fn unload(&mut self) {
        let Some((choice, info)) = self.model.open.take() else {
            return;
        };
        self.model.counter = None;
        self.model.ejected = Some(EjectedModel {
            choice,
            fingerprint: info.fingerprint,
        });
        self.submit_job(Job::Close);
        self.emit(ChatEvent::Model {
            model: self.model.view(),
        });
    }
}

//! Opening models. A model that does not open leaves the present one in place.

use std::time::Instant;

use inference::Opening;

use crate::actor::model_slot::{ModelSlot, OpenReason, OpenRequest};
use crate::actor::state::{ChatActor, MODEL, MODEL_CONTENT};
use crate::failure::Failure;
use crate::job::Job;
use crate::model_host::{ModelChoice, ModelInfo};
use crate::view::ChatEvent;

impl ChatActor {
    pub(super) fn open_at_start(&mut self, given: Option<ModelChoice>, remembered: ModelChoice) {
        match given {
            Some(choice) => self.want(choice, OpenReason::Given),
            None => self.want(remembered, OpenReason::Start),
        }
    }

    pub(crate) fn open_model(&mut self, choice: ModelChoice) -> Result<(), Failure> {
        self.want(choice, OpenReason::Asked);
        Ok(())
    }

    pub(crate) fn retry_model(&mut self) -> Result<(), Failure> {
        let remembered = self.remembered()?;
        self.open_model(remembered)
    }

    /// Returns the model that was open last, which is opened at the start.
    pub(super) fn remembered(&self) -> Result<ModelChoice, Failure> {
        let row = self.stores.disk.settings().get(MODEL)?;
        let remembered = row.and_then(|value| serde_json::from_value(value).ok());
        Ok(remembered.unwrap_or(ModelChoice::BundledModel))
    }

    /// Reopens the present model: with other settings, or after it panicked.
    pub(super) fn reopen_model(&mut self) {
        let ModelSlot {
            open,
            opening,
            wanted,
            tried,
            ejected,
            ..
        } = &self.model;
        if wanted.is_some() || (ejected.is_some() && opening.is_none()) {
            // It will be opened with the settings of that time.
            return;
        }
        if let Some(OpenRequest { choice, reason }) = opening.clone() {
            self.want(choice, reason);
        } else if let Some(choice) = open.as_ref().map(|(choice, _)| choice).or(tried.as_ref()) {
            self.want(choice.clone(), OpenReason::Again);
        }
    }

    pub(super) fn want(&mut self, choice: ModelChoice, reason: OpenReason) {
        self.model.wanted = Some(OpenRequest { choice, reason });
        if self.model.opening.is_none() {
            self.model.progress = Opening::Loading(0.0);
        }
        self.emit(ChatEvent::Model {
            model: self.model.view(),
        });
    }

    /// Opens the requested model. Returns whether there was one.
    pub(super) fn open_wanted(&mut self) -> bool {
        let Some(request) = self.model.wanted.take() else {
            return false;
        };
        self.submit_job(Job::Open {
            choice: request.choice.clone(),
            options: self.settings.load_options(),
            // One that is reloaded has been open since the app may have crashed over it.
            asked: matches!(
                request.reason,
                OpenReason::Asked | OpenReason::Given | OpenReason::Reload
            ),
        });
        self.model.counter = None;
        self.model.progress = Opening::Loading(0.0);
        self.model.tried = Some(request.choice.clone());
        self.model.opening = Some(request);
        true
    }

    pub(super) fn opening(&mut self, progress: Opening) {
        self.model.progress = progress;
        self.emit(ChatEvent::Model {
            model: self.model.view(),
        });
    }

    pub(super) fn opened(&mut self, result: Result<(), Failure>, open: Option<ModelInfo>) {
        let Some(request) = self.model.opening.take() else {
            return;
        };
        let before = self.model.open.take();
        self.model.used = Instant::now();
        match result {
            Ok(()) => {
                self.model.open = open.map(|info| (request.choice.clone(), info));
                let ejected = self.model.ejected.take();
                let held = match request.reason {
                    OpenReason::Start => self.remembered_content(),
                    OpenReason::Again => before
                        .filter(|(choice, _)| *choice == request.choice)
                        .map(|(_, info)| info.fingerprint),
                    OpenReason::Reload => ejected.map(|ejected| ejected.fingerprint),
                    OpenReason::Given | OpenReason::Fallback | OpenReason::Asked => None,
                };
                if request.reason != OpenReason::Fallback {
                    let replaced = held.and_then(|held| self.replaced(&held));
                    self.model.error = replaced.map(Failure::other);
                }
                if matches!(request.reason, OpenReason::Asked | OpenReason::Given) {
                    self.remember(&request.choice);
                }
                self.remember_content();
            }
            Err(failure) => {
                tracing::warn!(%failure, "a model did not open");
                let held = before.as_ref().map(|(_, info)| info.fingerprint.clone());
                self.model.open = before.map(|(choice, _)| choice).zip(open);
                let replaced = held.and_then(|held| self.replaced(&held));
                if request.reason == OpenReason::Reload {
                    self.model.ejected = None;
                }
                // The user can fix the first of two failures at the start.
                if request.reason != OpenReason::Fallback {
                    let message = [Some(failure.message), replaced];
                    let message: Vec<_> = message.into_iter().flatten().collect();
                    self.model.error = Some(Failure::new(failure.code, message.join(" ")));
                }
                if self.model.open.is_none()
                    && self.model.ejected.is_none()
                    && self.model.wanted.is_none()
                    && let Some(next) = self.fallback(&request)
                {
                    self.want(next, OpenReason::Fallback);
                    return;
                }
            }
        }
        self.emit(ChatEvent::Model {
            model: self.model.view(),
        });
    }

    /// Returns the fallback for a startup model that did not open: the last model, then the bundled model.
    fn fallback(&self, failed: &OpenRequest) -> Option<ModelChoice> {
        let last = match failed.reason {
            OpenReason::Given => self.remembered().ok(),
            OpenReason::Start | OpenReason::Reload | OpenReason::Fallback => None,
            OpenReason::Asked | OpenReason::Again => return None,
        };
        last.into_iter()
            .chain([ModelChoice::BundledModel])
            .find(|choice| *choice != failed.choice)
    }

    /// Updates the model's info after an answer, during which its device may have changed.
    pub(super) fn moved(&mut self, now: Option<ModelInfo>) {
        let Some(((_, before), now)) = self.model.open.as_mut().zip(now) else {
            return;
        };
        if *before != now {
            *before = now;
            self.emit(ChatEvent::Model {
                model: self.model.view(),
            });
        }
    }

    /// Returns a notice if the content of the open model's file has changed.
    fn replaced(&self, held: &str) -> Option<String> {
        let (choice, now) = self.model.open.as_ref()?;
        // The bundled model changes with an update of the app.
        let ModelChoice::File(file) = choice else {
            return None;
        };
        (now.fingerprint != held).then(|| {
            let name = file.file_name().unwrap_or(file.as_os_str());
            let name = name.to_string_lossy();
            format!("{name} was replaced since it was last opened: it is another model now.")
        })
    }

    fn remember(&self, choice: &ModelChoice) {
        match serde_json::to_value(choice) {
            Ok(value) => self.keep(MODEL, &value),
            Err(error) => tracing::warn!(%error, "the choice of the model was not saved"),
        }
    }

    /// Stores the fingerprint of the startup model's file.
    fn remember_content(&self) {
        let Some((choice, info)) = &self.model.open else {
            return;
        };
        if self.remembered().is_ok_and(|it| it == *choice)
            && self.remembered_content().as_ref() != Some(&info.fingerprint)
        {
            self.keep(MODEL_CONTENT, &info.fingerprint.clone().into());
        }
    }

    fn remembered_content(&self) -> Option<String> {
        let row = self.stores.disk.settings().get(MODEL_CONTENT).ok()??;
        row.as_str().map(str::to_owned)
    }

    fn keep(&self, row: &str, value: &serde_json::Value) {
        if let Err(error) = self.stores.disk.settings().set(row, value) {
            tracing::warn!(%error, row, "what is opened at the start was not saved");
        }
    }
}

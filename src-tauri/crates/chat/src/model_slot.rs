//! The slot of the open model, and of the one being opened. A model that does not open leaves the present one in place.

use std::sync::Arc;
use std::time::{Duration, Instant};

use inference::Opening;
use store::{Store, StoreError};

use crate::failure::Failure;
use crate::model_host::{BUNDLED_MODEL, ModelChoice, ModelInfo, PromptCounter};
use crate::view::{ModelStatus, ModelView, UnopenedModel};

/// Row of the model that was opened last, which is opened at the start.
pub(crate) const MODEL: &str = "app.model";
/// Row with the fingerprint of that model's file when it was last opened.
const MODEL_CONTENT: &str = "app.model-content";

pub(crate) struct ModelSlot {
    open: Option<(ModelChoice, ModelInfo)>,
    /// Counter of the open model's prompts.
    counter: Option<Arc<dyn PromptCounter>>,
    /// The unloaded model, which is reopened when it is needed.
    ejected: Option<EjectedModel>,
    /// Last use of the model: opened, requested, or about to be.
    used: Instant,
    /// The request that the model thread is opening.
    opening: Option<OpenRequest>,
    /// The request to open next. A later one replaces it.
    wanted: Option<OpenRequest>,
    /// The model that was requested last.
    tried: Option<ModelChoice>,
    progress: Opening,
    error: Option<Failure>,
}

/// A model that was unloaded.
struct EjectedModel {
    choice: ModelChoice,
    /// Fingerprint of its file.
    fingerprint: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenRequest {
    pub choice: ModelChoice,
    pub reason: OpenReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenReason {
    /// It was open last time.
    Start,
    /// The app was started with it.
    Given,
    /// The startup model did not open.
    Fallback,
    /// The user requested it.
    Asked,
    /// The settings changed, or it panicked.
    Again,
    /// It was unloaded, and is needed again.
    Reload,
}

impl Default for ModelSlot {
    fn default() -> ModelSlot {
        ModelSlot {
            open: None,
            counter: None,
            ejected: None,
            used: Instant::now(),
            opening: None,
            wanted: None,
            tried: None,
            progress: Opening::Loading(0.0),
            error: None,
        }
    }
}

impl ModelSlot {
    /// Requests a model, which is opened next.
    pub fn want(&mut self, choice: ModelChoice, reason: OpenReason) {
        self.wanted = Some(OpenRequest { choice, reason });
        if self.opening.is_none() {
            self.progress = Opening::Loading(0.0);
        }
    }

    /// Requests the present model again: with other settings, or after it panicked. Returns whether that is a new
    /// request.
    pub fn want_again(&mut self) -> bool {
        if self.wanted.is_some() || (self.ejected.is_some() && self.opening.is_none()) {
            // It will be opened with the settings of that time.
            return false;
        }
        let open = self.open.as_ref().map(|(choice, _)| choice);
        let request = match (&self.opening, open.or(self.tried.as_ref())) {
            (Some(opening), _) => opening.clone(),
            (None, Some(choice)) => OpenRequest {
                choice: choice.clone(),
                reason: OpenReason::Again,
            },
            (None, None) => return false,
        };
        self.want(request.choice, request.reason);
        true
    }

    /// Requests the unloaded model, unless there is none or another is being opened. Returns whether it did.
    pub fn want_ejected(&mut self) -> bool {
        let ejected = self.ejected.as_ref().filter(|_| !self.changes());
        let Some(choice) = ejected.map(|ejected| ejected.choice.clone()) else {
            return false;
        };
        self.want(choice, OpenReason::Reload);
        true
    }

    /// Returns the requested model, which is being opened from now on.
    pub fn open_wanted(&mut self) -> Option<OpenRequest> {
        let request = self.wanted.take()?;
        self.counter = None;
        self.progress = Opening::Loading(0.0);
        self.tried = Some(request.choice.clone());
        self.opening = Some(request.clone());
        Some(request)
    }

    pub fn progress(&mut self, progress: Opening) {
        self.progress = progress;
    }

    /// Takes the result of the opening. If no model is open then, a fallback is requested. `store`: the one that
    /// remembers the startup model.
    pub fn opened(
        &mut self,
        result: Result<(), Failure>,
        open: Option<ModelInfo>,
        counter: Option<Arc<dyn PromptCounter>>,
        store: &Store,
    ) {
        self.counter = counter;
        let Some(request) = self.opening.take() else {
            return;
        };
        let before = self.open.take();
        self.used = Instant::now();
        match result {
            Ok(()) => {
                self.open = open.map(|info| (request.choice.clone(), info));
                let ejected = self.ejected.take();
                let held = match request.reason {
                    OpenReason::Start => remembered_content(store),
                    OpenReason::Again => before
                        .filter(|(choice, _)| *choice == request.choice)
                        .map(|(_, info)| info.fingerprint),
                    OpenReason::Reload => ejected.map(|ejected| ejected.fingerprint),
                    OpenReason::Given | OpenReason::Fallback | OpenReason::Asked => None,
                };
                if request.reason != OpenReason::Fallback {
                    let replaced = held.and_then(|held| self.replaced(&held));
                    self.error = replaced.map(Failure::other);
                }
                if matches!(request.reason, OpenReason::Asked | OpenReason::Given) {
                    remember(store, &request.choice);
                }
                self.remember_content(store);
            }
            Err(failure) => {
                tracing::warn!(%failure, "a model did not open");
                let held = before.as_ref().map(|(_, info)| info.fingerprint.clone());
                self.open = before.map(|(choice, _)| choice).zip(open);
                let replaced = held.and_then(|held| self.replaced(&held));
                if request.reason == OpenReason::Reload {
                    self.ejected = None;
                }
                // The user can fix the first of two failures at the start.
                if request.reason != OpenReason::Fallback {
                    let message = [Some(failure.message), replaced];
                    let message: Vec<_> = message.into_iter().flatten().collect();
                    self.error = Some(Failure::new(failure.code, message.join(" ")));
                }
                if self.open.is_none()
                    && self.ejected.is_none()
                    && self.wanted.is_none()
                    && let Some(next) = fallback(store, &request)
                {
                    self.want(next, OpenReason::Fallback);
                }
            }
        }
    }

    /// Updates the model's info after an answer, during which its device may have changed. Returns whether it has.
    pub fn moved(&mut self, now: Option<ModelInfo>) -> bool {
        let Some(((_, before), now)) = self.open.as_mut().zip(now) else {
            return false;
        };
        let has_changed = *before != now;
        *before = now;
        has_changed
    }

    /// Notes a use of the model.
    pub fn touch(&mut self) {
        self.used = Instant::now();
    }

    /// Unloads the model. Returns whether one was open.
    pub fn eject(&mut self) -> bool {
        let Some((choice, info)) = self.open.take() else {
            return false;
        };
        self.counter = None;
        self.ejected = Some(EjectedModel {
            choice,
            fingerprint: info.fingerprint,
        });
        true
    }

    /// Returns the time at which the model has been unused for this long. The bundled model stays: it takes little
    /// memory.
    pub fn unload_due(&self, unused: Duration) -> Option<Instant> {
        let (choice, _) = self.open.as_ref()?;
        let unloads = !self.changes() && *choice != ModelChoice::BundledModel;
        unloads.then(|| self.used + unused)
    }

    /// Returns whether a model is being opened.
    pub fn opening(&self) -> bool {
        self.opening.is_some()
    }

    /// Returns whether a model is being opened, or will be.
    pub fn changes(&self) -> bool {
        self.opening.is_some() || self.wanted.is_some()
    }

    pub fn info(&self) -> Option<&ModelInfo> {
        self.open.as_ref().map(|(_, info)| info)
    }

    pub fn counter(&self) -> Option<&Arc<dyn PromptCounter>> {
        self.counter.as_ref()
    }

    pub fn error(&self) -> Option<&Failure> {
        self.error.as_ref()
    }

    pub fn view(&self) -> ModelView {
        if let Some(OpenRequest { choice, .. }) = self.opening.as_ref().or(self.wanted.as_ref()) {
            let model = unopened(choice);
            let status = match self.progress {
                Opening::Checking => ModelStatus::Checking { model },
                Opening::Loading(done) => ModelStatus::Loading {
                    model,
                    progress: done.clamp(0.0, 1.0),
                },
            };
            return ModelView {
                status,
                error: None,
            };
        }
        let status = match (&self.open, &self.ejected) {
            (Some((_, info)), _) => ModelStatus::Ready {
                model: Box::new(info.clone()),
            },
            (None, Some(ejected)) => ModelStatus::Ejected {
                model: unopened(&ejected.choice),
            },
            (None, None) => ModelStatus::None,
        };
        ModelView {
            status,
            error: self.error.clone(),
        }
    }

    /// Returns a notice if the content of the open model's file has changed.
    fn replaced(&self, held: &str) -> Option<String> {
        let (choice, now) = self.open.as_ref()?;
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

    /// Stores the fingerprint of the startup model's file.
    fn remember_content(&self, store: &Store) {
        let Some((choice, info)) = &self.open else {
            return;
        };
        if remembered(store).is_ok_and(|it| it == *choice)
            && remembered_content(store).as_ref() != Some(&info.fingerprint)
        {
            set(store, MODEL_CONTENT, &info.fingerprint.clone().into());
        }
    }
}

/// Returns the model that was open last, which is opened at the start.
pub(crate) fn remembered(store: &Store) -> Result<ModelChoice, StoreError> {
    let row = store.settings().get(MODEL)?;
    let remembered = row.and_then(|value| serde_json::from_value(value).ok());
    Ok(remembered.unwrap_or(ModelChoice::BundledModel))
}

fn remember(store: &Store, choice: &ModelChoice) {
    match serde_json::to_value(choice) {
        Ok(value) => set(store, MODEL, &value),
        Err(error) => tracing::warn!(%error, "the choice of the model was not saved"),
    }
}

fn remembered_content(store: &Store) -> Option<String> {
    let row = store.settings().get(MODEL_CONTENT).ok()??;
    row.as_str().map(str::to_owned)
}

fn set(store: &Store, row: &str, value: &serde_json::Value) {
    if let Err(error) = store.settings().set(row, value) {
        tracing::warn!(%error, row, "what is opened at the start was not saved");
    }
}

/// Returns the fallback for a startup model that did not open: the last model, then the bundled model.
fn fallback(store: &Store, failed: &OpenRequest) -> Option<ModelChoice> {
    let last = match failed.reason {
        OpenReason::Given => remembered(store).ok(),
        OpenReason::Start | OpenReason::Reload | OpenReason::Fallback => None,
        OpenReason::Asked | OpenReason::Again => return None,
    };
    last.into_iter()
        .chain([ModelChoice::BundledModel])
        .find(|choice| *choice != failed.choice)
}

fn unopened(choice: &ModelChoice) -> UnopenedModel {
    match choice {
        ModelChoice::BundledModel => UnopenedModel {
            name: BUNDLED_MODEL.to_owned(),
            file: None,
            bundled_model: true,
        },
        ModelChoice::File(path) => UnopenedModel {
            name: path
                .file_stem()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned(),
            file: Some(path.to_string_lossy().into_owned()),
            bundled_model: false,
        },
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use inference::{Sampling, SamplingDefaults};

    use super::*;
    use crate::model_host::Device;

    pub(crate) fn info(fingerprint: &str) -> ModelInfo {
        ModelInfo {
            name: "A model".to_owned(),
            file: None,
            bundled_model: false,
            quantisation: "Q4_K_M".to_owned(),
            file_bytes: 1000,
            context_length: 4096,
            context_note: None,
            context_can_grow: false,
            longest_token: 16,
            kv_bytes: 4096,
            fingerprint: fingerprint.to_owned(),
            chat_format: "SmolLM3".to_owned(),
            can_think: true,
            can_call_tools: true,
            sampling: SamplingDefaults {
                with_thinking: Sampling::default(),
                without_thinking: Sampling::default(),
            },
            device: Device {
                on_gpu: false,
                name: "CPU".to_owned(),
                reason: String::new(),
                report: None,
            },
        }
    }

    fn file(name: &str) -> ModelChoice {
        ModelChoice::File(format!("/models/{name}.gguf").into())
    }

    /// Opens what is requested, with this result.
    fn open(
        slot: &mut ModelSlot,
        store: &Store,
        result: Result<&str, &str>,
    ) -> Option<OpenRequest> {
        let request = slot.open_wanted();
        let open = result.ok().map(info);
        let result = result.map(drop).map_err(Failure::other);
        slot.opened(result, open, None, store);
        request
    }

    #[test]
    fn a_given_model_that_does_not_open_falls_back_twice() -> Result<(), StoreError> {
        let store = Store::in_memory()?;
        remember(&store, &file("last"));
        let mut slot = ModelSlot::default();
        slot.want(file("given"), OpenReason::Given);
        for choice in [file("given"), file("last"), ModelChoice::BundledModel] {
            let tried = open(&mut slot, &store, Err(&format!("{choice:?}")));
            assert_eq!(tried.map(|request| request.choice), Some(choice));
        }
        assert!(!slot.changes());
        let error = slot.error().map(|error| error.message.clone());
        assert_eq!(error, Some(format!("{:?}", file("given"))));
        assert_eq!(remembered(&store)?, file("last"));
        Ok(())
    }

    #[test]
    fn a_file_that_was_replaced_is_noticed_at_the_next_start() -> Result<(), StoreError> {
        let store = Store::in_memory()?;
        let mut slot = ModelSlot::default();
        slot.want(file("mine"), OpenReason::Asked);
        open(&mut slot, &store, Ok("a"));
        for (fingerprint, is_replaced) in [("a", false), ("b", true), ("b", false)] {
            let mut slot = ModelSlot::default();
            slot.want(remembered(&store)?, OpenReason::Start);
            open(&mut slot, &store, Ok(fingerprint));
            assert_eq!(slot.error().is_some(), is_replaced, "{fingerprint}");
        }
        Ok(())
    }

    #[test]
    fn an_ejected_model_waits_until_it_is_needed() -> Result<(), StoreError> {
        let store = Store::in_memory()?;
        let minute = Duration::from_secs(60);
        let mut slot = ModelSlot::default();
        assert!(!slot.eject());
        slot.want(file("mine"), OpenReason::Asked);
        assert_eq!(slot.unload_due(minute), None);
        open(&mut slot, &store, Ok("a"));
        assert_eq!(slot.unload_due(minute), Some(slot.used + minute));
        assert!(slot.eject());
        assert!(
            !slot.want_again(),
            "it will be opened with other settings anyway"
        );
        assert!(slot.want_ejected());
        assert!(!slot.want_ejected(), "it is wanted already");
        // A failure at that time leaves the user with the bundled model.
        open(&mut slot, &store, Err("it is gone"));
        let next = slot.open_wanted().map(|request| request.choice);
        assert_eq!(next, Some(ModelChoice::BundledModel));
        Ok(())
    }
}

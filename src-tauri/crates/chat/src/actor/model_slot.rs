//! Slot of the open model, and of the one being opened.

use std::sync::Arc;
use std::time::Instant;

use inference::Opening;

use crate::failure::Failure;
use crate::model_host::{BUNDLED_MODEL, ModelChoice, ModelInfo, PromptCounter};
use crate::view::{ModelStatus, ModelView, UnopenedModel};

pub(crate) struct ModelSlot {
    pub(super) open: Option<(ModelChoice, ModelInfo)>,
    /// Counter of the open model's prompts.
    pub(super) counter: Option<Arc<dyn PromptCounter>>,
    /// The unloaded model, which is reopened when it is needed.
    pub(super) ejected: Option<EjectedModel>,
    /// Last use of the model: opened, requested, or about to be.
    pub(super) used: Instant,
    /// The request that the model thread is opening.
    pub(super) opening: Option<OpenRequest>,
    /// The request to open next. A later one replaces it.
    pub(super) wanted: Option<OpenRequest>,
    /// The model that was requested last.
    pub(super) tried: Option<ModelChoice>,
    pub(super) progress: Opening,
    pub(super) error: Option<Failure>,
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

/// A model that was unloaded.
pub(super) struct EjectedModel {
    pub(super) choice: ModelChoice,
    /// Fingerprint of its file.
    pub(super) fingerprint: String,
}

#[derive(Clone)]
pub(super) struct OpenRequest {
    pub(super) choice: ModelChoice,
    pub(super) reason: OpenReason,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenReason {
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

impl ModelSlot {
    pub fn opening(&self) -> bool {
        self.opening.is_some()
    }

    pub fn info(&self) -> Option<&ModelInfo> {
        self.open.as_ref().map(|(_, info)| info)
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

//! The model that is open, and the one that is being opened.

use inference::Sampling;

use crate::failure::Failure;
use crate::model_host::{ModelChoice, ModelInfo, Opening};
use crate::view::{ModelState, ModelStatus};

pub(crate) struct ModelSlot {
    pub(super) open: Option<(ModelChoice, ModelInfo)>,
    /// What the model thread opens.
    pub(super) opening: Option<OpenRequest>,
    /// What it opens next. A later wish replaces an earlier one.
    pub(super) wanted: Option<OpenRequest>,
    /// What was last asked for.
    pub(super) tried: Option<ModelChoice>,
    pub(super) progress: Opening,
    pub(super) error: Option<Failure>,
}

impl Default for ModelSlot {
    fn default() -> ModelSlot {
        ModelSlot {
            open: None,
            opening: None,
            wanted: None,
            tried: None,
            progress: Opening::Loading(0.0),
            error: None,
        }
    }
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
    /// The one to start with did not open.
    Fallback,
    /// The user asked.
    Asked,
    /// The settings changed, or it panicked.
    Again,
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

    pub fn status(&self) -> ModelStatus {
        let error = self.error.clone();
        if let Some(OpenRequest { choice, .. }) = self.opening.as_ref().or(self.wanted.as_ref()) {
            return ModelStatus {
                state: match self.progress {
                    Opening::Checking => ModelState::Checking,
                    Opening::Loading(_) => ModelState::Loading,
                },
                progress: match self.progress {
                    Opening::Checking => 0.0,
                    Opening::Loading(done) => done.clamp(0.0, 1.0),
                },
                error: None,
                ..unknown(choice)
            };
        }
        let Some((_, info)) = &self.open else {
            let state = if error.is_some() {
                ModelState::Failed
            } else {
                ModelState::None
            };
            return ModelStatus {
                state,
                error,
                ..unknown(&ModelChoice::DemoModel)
            };
        };
        let info = info.clone();
        ModelStatus {
            state: ModelState::Ready,
            name: info.name,
            file: info.file,
            demo_model: info.demo_model,
            quantisation: info.quantisation,
            file_bytes: info.file_bytes,
            context_length: info.context_length,
            context_can_grow: info.context_can_grow,
            context_note: info.context_note,
            kv_bytes: info.kv_bytes,
            fingerprint: info.fingerprint,
            template: Some(info.template),
            device: Some(info.device),
            progress: 1.0,
            error,
            can_think: info.can_think,
            sampling: info.sampling,
        }
    }
}

/// All that is known of a model before it is open.
fn unknown(choice: &ModelChoice) -> ModelStatus {
    let (name, file) = match choice {
        ModelChoice::DemoModel => ("Demo model".to_owned(), None),
        ModelChoice::File(path) => (
            path.file_stem()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned(),
            Some(path.clone()),
        ),
    };
    ModelStatus {
        state: ModelState::None,
        name,
        demo_model: file.is_none(),
        file,
        quantisation: String::new(),
        file_bytes: 0,
        context_length: 0,
        context_can_grow: false,
        context_note: None,
        kv_bytes: 0,
        fingerprint: String::new(),
        template: None,
        device: None,
        progress: 0.0,
        error: None,
        can_think: false,
        sampling: Sampling::default(),
    }
}

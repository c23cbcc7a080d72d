//! The open model, with its info for the window.

use std::sync::atomic::AtomicBool;

use chat::{Failure, FailureCode, ModelChoice, ModelInfo, Opening};
use devices::{DeviceRequest, Devices, OpenModel};
use engine::{Conversation, Engine, ModelFile, Prompt};

use super::kv_disk::KvModel;
use super::refusal;
use crate::environment;

/// A model that is open.
pub(super) struct OpenedModel {
    pub(super) model: OpenModel,
    pub(super) info: ModelInfo,
    pub(super) choice: ModelChoice,
    pub(super) options: chat::ModelOptions,
    /// Identity of its KV blocks, if they can be stored.
    pub(super) kv: Option<KvModel>,
    /// Fingerprint of its file before and after loading; `None` if they differ.
    content: Option<String>,
}

/// A closed model that can be reopened.
pub(super) struct ClosedModel {
    file: ModelFile,
    choice: ModelChoice,
    options: chat::ModelOptions,
    content: Option<String>,
}

impl ClosedModel {
    /// Reopens it unchanged, even if its file was removed or renamed meanwhile. If the file was changed, its weights do
    /// not match the header that was read, so all of it is read again.
    ///
    /// # Errors
    /// Returns a sentence for the user.
    pub(super) fn reopen(self, devices: Option<&Devices>) -> Result<OpenedModel, Failure> {
        let is_same = self.content.is_some() && self.content == self.file.content_hash();
        let file = match self.file.path().filter(|_| !is_same) {
            Some(path) => {
                ModelFile::open(path).map_err(|error| refusal::of(&self.choice, &error))?
            }
            None => self.file,
        };
        OpenedModel::new(file, &self.choice, &self.options, devices, &mut |_| {})
    }
}

impl OpenedModel {
    /// Opens a model.
    ///
    /// # Errors
    /// Returns a sentence for the user.
    pub(super) fn new(
        file: ModelFile,
        choice: &ModelChoice,
        options: &chat::ModelOptions,
        devices: Option<&Devices>,
        on_progress: &mut dyn FnMut(Opening),
    ) -> Result<Self, Failure> {
        let request = requested(options)?;
        let load = engine::LoadOptions {
            // A long context is for files of the user; with YaRN the bundled model answers worse.
            allow_yarn: *choice != ModelChoice::BundledModel,
            ..load_options(options)
        };
        let content = file.content_hash();
        let mut model = devices::open(devices, &file, &request, &load, on_progress)
            .map_err(|error| refusal::of(choice, &error))?;
        let info = info(&model, choice);
        // If the file was changed meanwhile, the loaded content is unknown.
        let content = content.filter(|content| file.content_hash().as_ref() == Some(content));
        let kv = content.as_ref().and_then(|_| kv_model(&mut model.engine));
        Ok(Self {
            model,
            info,
            choice: choice.clone(),
            options: options.clone(),
            kv,
            content,
        })
    }

    /// Frees its memory.
    pub(super) fn close(self) -> ClosedModel {
        ClosedModel {
            file: self.model.engine.file().clone(),
            choice: self.choice,
            options: self.options,
            content: self.content,
        }
    }

    /// Renders the prompt of a conversation.
    pub(super) fn prompt(
        &self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, Failure> {
        let prompt = self.model.engine.prompt_cancellable(conversation, cancel);
        prompt.map_err(|error| Failure::new(FailureCode::BadForm, error.to_string()))
    }
}

/// Returns the device of the flags, else of the environment, else of the settings.
///
/// # Errors
/// Fails if the value is not a device.
pub fn requested(options: &chat::ModelOptions) -> Result<DeviceRequest, Failure> {
    let invalid = |error: devices::UnknownDevice| {
        Failure::new(FailureCode::Other, format!("Device: {error}."))
    };
    let chosen = options.device.parse().map_err(invalid)?;
    environment::requested_device(chosen).map_err(invalid)
}

/// Returns the options, in which the environment has precedence over the settings; an invalid value is noted in
/// [`info`].
pub fn load_options(options: &chat::ModelOptions) -> engine::LoadOptions {
    let threads = environment::threads().ok().flatten().or(options.threads);
    let context = environment::context().ok().flatten();
    let context = context.or(options.context_length);
    engine::LoadOptions {
        threads: threads.map(|threads| threads as usize),
        context: context.map(|tokens| tokens as usize),
        kv: options.kv_type,
        ..engine::LoadOptions::default()
    }
}

fn kv_model(engine: &mut Engine) -> Option<KvModel> {
    let block = engine.session().block()?;
    let identity = engine.kv_identity()?;
    Some(KvModel { identity, block })
}

pub(super) fn info(model: &OpenModel, choice: &ModelChoice) -> ModelInfo {
    let engine = &model.engine;
    let summary = engine.summary();
    ModelInfo {
        name: match choice {
            // The file itself has the name of a training run.
            ModelChoice::BundledModel => chat::BUNDLED_MODEL.to_owned(),
            ModelChoice::File(_) => summary.name.clone(),
        },
        file: match choice {
            ModelChoice::BundledModel => None,
            ModelChoice::File(file) => Some(file.to_string_lossy().into_owned()),
        },
        bundled_model: *choice == ModelChoice::BundledModel,
        quantisation: summary.quantisation.clone(),
        file_bytes: summary.file_bytes,
        context_length: summary.context_length,
        context_note: context_note(summary.context_note.clone()),
        context_can_grow: summary.context_can_grow,
        longest_token: engine.tokenizer().longest_token(),
        kv_bytes: engine.full_kv_bytes(),
        fingerprint: summary.fingerprint.clone(),
        chat_format: summary.protocol.to_string(),
        can_think: summary.can_think,
        can_call_tools: summary.can_call_tools,
        sampling: summary.sampling.clone(),
        device: device_info(model),
    }
}

fn context_note(of_length: Option<String>) -> Option<String> {
    let ignored = environment::context().err().map(|error| error.ignored());
    let notes: Vec<_> = of_length.into_iter().chain(ignored).collect();
    (!notes.is_empty()).then(|| notes.join(" "))
}

pub(super) fn device_info(model: &OpenModel) -> chat::Device {
    let device = model.engine.device();
    let reason = model.explanation().to_string();
    chat::Device {
        on_gpu: device.on_gpu,
        name: device.name.clone(),
        reason: match environment::threads() {
            Ok(_) => reason,
            Err(error) => format!("{reason}. {}", error.ignored().trim_end_matches('.')),
        },
        report: model.report().map(str::to_owned),
    }
}

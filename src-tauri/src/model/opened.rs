//! The model that is open, with what the window shows of it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chat::{Failure, FailureCode, ModelChoice, ModelInfo, Opening};
use devices::{DeviceRequest, Devices, OpenModel, OpenStep, device_from_env};
use engine::{Conversation, Engine, ModelFile, Prompt, PromptError, TemplateSandbox, TemplateUse};

use super::kv_disk::KvModel;
use super::refusal;
use crate::environment;

/// A model that is open.
pub(super) struct OpenedModel {
    pub(super) model: OpenModel,
    pub(super) info: ModelInfo,
    pub(super) choice: ModelChoice,
    pub(super) options: chat::ModelOptions,
    /// Where its own chat template runs, if that is used.
    pub(super) sandbox: Option<Arc<dyn TemplateSandbox>>,
    /// What its KV cache is kept under, where blocks of it can be kept.
    pub(super) kv: Option<KvModel>,
    /// What its file held before and after it was loaded; `None` where that differs.
    content: Option<String>,
}

/// A model that was closed: what is needed to open it once more.
pub(super) struct ClosedModel {
    file: ModelFile,
    choice: ModelChoice,
    options: chat::ModelOptions,
    sandbox: Option<Arc<dyn TemplateSandbox>>,
    content: Option<String>,
}

impl ClosedModel {
    /// Opens it again: as it was, even where its file was removed or renamed meanwhile. Where the file was changed, its
    /// weights are others than the header that was read, so all of it is read again.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(super) fn reopen(self, devices: Option<&Devices>) -> Result<OpenedModel, Failure> {
        let is_same = self.content.is_some() && self.content == self.file.content_hash();
        let file = match self.file.path().filter(|_| !is_same) {
            Some(path) => {
                ModelFile::open(path).map_err(|error| refusal::of(&self.choice, &error))?
            }
            None => self.file,
        };
        let (options, sandbox) = (&self.options, self.sandbox);
        OpenedModel::new(file, &self.choice, options, sandbox, devices, &mut |_| {})
    }
}

impl OpenedModel {
    /// Opens a model.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(super) fn new(
        file: ModelFile,
        choice: &ModelChoice,
        options: &chat::ModelOptions,
        sandbox: Option<Arc<dyn TemplateSandbox>>,
        devices: Option<&Devices>,
        on_progress: &mut dyn FnMut(Opening),
    ) -> Result<Self, Failure> {
        let request = requested(options)?;
        let load = engine::LoadOptions {
            sandbox: sandbox.clone(),
            // A long context is set for a file of the user's; with YaRN the demo model answers worse.
            allow_yarn: *choice != ModelChoice::DemoModel,
            ..load_options(options)
        };
        let on_progress = &mut |step| {
            on_progress(match step {
                OpenStep::Checking => Opening::Checking,
                OpenStep::Loading(done) => Opening::Loading(done),
            });
        };
        let content = file.content_hash();
        let mut model = devices::open(devices, &file, &request, &load, on_progress)
            .map_err(|error| refusal::of(choice, &error))?;
        let info = info(&model, choice);
        // Where the file was changed meanwhile, it is not known what was loaded.
        let content = content.filter(|content| file.content_hash().as_ref() == Some(content));
        let kv = content.as_ref().and_then(|_| kv_model(&mut model.engine));
        Ok(Self {
            model,
            info,
            choice: choice.clone(),
            options: options.clone(),
            sandbox,
            kv,
            content,
        })
    }

    /// Gives its memory back.
    pub(super) fn close(self) -> ClosedModel {
        ClosedModel {
            file: self.model.engine.file().clone(),
            choice: self.choice,
            options: self.options,
            sandbox: self.sandbox,
            content: self.content,
        }
    }

    /// Whether this very model is asked for, with nothing changed but whose own templates are used. Then its weights
    /// need not be loaded again.
    pub(super) fn differs_in_template_only(
        &self,
        choice: &ModelChoice,
        options: &chat::ModelOptions,
        fingerprint: &str,
    ) -> bool {
        let same_otherwise = chat::ModelOptions {
            own_templates: options.own_templates.clone(),
            ..self.options.clone()
        };
        self.choice == *choice
            && self.info.fingerprint == fingerprint
            && self.options != *options
            && same_otherwise == *options
    }

    pub(super) fn set_sandbox(
        &mut self,
        sandbox: Option<Arc<dyn TemplateSandbox>>,
        options: &chat::ModelOptions,
    ) {
        self.model.engine.set_sandbox(sandbox.clone());
        self.sandbox = sandbox;
        self.options = options.clone();
        self.info.can_think = self.model.engine.summary().can_think;
        self.info.template = template_status(&self.model.engine);
    }

    /// The prompt of a conversation. Why there is none is noted, too, where the template is why.
    pub(super) fn prompt(
        &mut self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, Failure> {
        let prompt = self.model.engine.prompt_cancellable(conversation, cancel);
        self.info.template.fault = match &prompt {
            Err(PromptError::Template(error)) => Some(error.to_string()),
            _ => None,
        };
        prompt.map_err(|error| {
            let is_own = self.info.template.used == chat::TemplateChoice::Own;
            let message = match error {
                PromptError::Template(_) | PromptError::Continue if is_own => format!(
                    "The model file's own chat template gave no prompt: {error}. To go on, use the built-in protocol: \
                     the model's card has a switch."
                ),
                _ => error.to_string(),
            };
            Failure::new(FailureCode::Other, message)
        })
    }
}

/// The device that the environment asks for, or else the settings.
///
/// # Errors
/// When one of them is no device.
pub fn requested(options: &chat::ModelOptions) -> Result<DeviceRequest, Failure> {
    let invalid = |error: devices::UnknownDevice| {
        Failure::new(FailureCode::Other, format!("Device: {error}."))
    };
    let chosen = options.device.parse().map_err(invalid)?;
    device_from_env(chosen).map_err(invalid)
}

/// What the environment asks for goes before the settings; a value that makes no sense is noted in [`info`].
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
        name: summary.name.clone(),
        file: match choice {
            ModelChoice::DemoModel => None,
            ModelChoice::File(file) => Some(file.to_string_lossy().into_owned()),
        },
        demo_model: *choice == ModelChoice::DemoModel,
        quantisation: summary.quantisation.clone(),
        file_bytes: summary.file_bytes,
        context_length: summary.context_length,
        context_note: context_note(summary.context_note.clone()),
        context_can_grow: summary.context_can_grow,
        longest_token: engine.tokenizer().longest_token(),
        kv_bytes: engine.full_kv_bytes(),
        fingerprint: summary.fingerprint.clone(),
        template: template_status(engine),
        can_think: summary.can_think,
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

fn template_status(engine: &Engine) -> chat::TemplateStatus {
    let template = engine.template();
    chat::TemplateStatus {
        used: match template.origin() {
            TemplateUse::BuiltIn => chat::TemplateChoice::BuiltIn,
            TemplateUse::Known => chat::TemplateChoice::Known,
            TemplateUse::Unknown => chat::TemplateChoice::Unknown,
            TemplateUse::Own => chat::TemplateChoice::Own,
        },
        fault: template.fault().map(ToString::to_string),
    }
}

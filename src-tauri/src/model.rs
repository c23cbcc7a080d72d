//! The engine as chat's `ModelHost`.

mod refusal;
mod template;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chat::{Failure, FailureCode, ModelChoice, ModelHost, ModelInfo, Opening};
use devices::{CrashMarkers, DeviceRequest, Devices, OpenModel, OpenStep, Work};
use engine::{
    Conversation, Event, Finished, GenerateError, GenerateParams, ModelFile, Prompt,
    TemplateSandbox,
};

use crate::{demo_model, sandbox, test_hooks};

/// At most one model, in memory once.
#[derive(Default)]
pub struct EngineModel {
    open: Option<OpenedModel>,
    /// Without it no GPU is used unless one is asked for.
    devices: Option<Devices>,
    /// Where files' own chat templates run; without it none does.
    sandbox: Option<Arc<dyn TemplateSandbox>>,
    /// Where it is marked that a model is being opened.
    markers: Option<CrashMarkers>,
}

struct OpenedModel {
    model: OpenModel,
    info: ModelInfo,
    choice: ModelChoice,
    options: chat::ModelOptions,
    /// Where its own chat template runs, if that is used.
    sandbox: Option<Arc<dyn TemplateSandbox>>,
}

impl ModelHost for EngineModel {
    fn refusal(&self, choice: &ModelChoice) -> Option<Failure> {
        let crashes = self.markers.as_ref()?.crashes(Work::Opening);
        crashes.contains(choice).then(|| {
            let name = name_of(choice);
            let message =
                format!("{name} was not opened: the app ended the last time it was opened.");
            Failure::new(FailureCode::Crashed, message)
        })
    }

    fn open(
        &mut self,
        choice: &ModelChoice,
        options: &chat::ModelOptions,
        on_progress: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure> {
        let markers = self.markers.clone();
        let mark = markers
            .as_ref()
            .and_then(|markers| markers.begin(Work::Opening, choice));
        let opened = self.open_marked(choice, options, on_progress);
        drop(mark);
        if let Some(markers) = markers {
            // It has come to an end this time.
            markers.forget(Work::Opening, choice);
        }
        opened
    }

    fn info(&self) -> Option<&ModelInfo> {
        self.open.as_ref().map(|open| &open.info)
    }

    fn prompt(
        &mut self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, Failure> {
        let open = self.open.as_mut().ok_or_else(no_model)?;
        open.prompt(conversation, cancel)
    }

    fn generate(
        &mut self,
        prompt: &Prompt,
        params: &GenerateParams,
        cancel: &AtomicBool,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Finished, Failure> {
        let devices = self.devices.as_ref();
        let open = self.open.as_mut().ok_or_else(no_model)?;
        let finished = open.model.run(devices, |engine| {
            engine.generate(prompt, params, cancel, on_event)
        });
        // A GPU that has failed has left the model to the CPU.
        open.info.device = device_info(&open.model);
        finished.map_err(|error| generation(&error))
    }
}

impl EngineModel {
    /// A model whose device `devices` choose.
    pub fn choosing(devices: Option<Devices>, markers: CrashMarkers) -> Self {
        let sandbox = sandbox::of_this_program().inspect_err(
            |error| tracing::error!(%error, "no chat template of unknown text can run"),
        );
        Self {
            open: None,
            devices,
            sandbox: sandbox.ok(),
            markers: Some(markers),
        }
    }

    fn open_marked(
        &mut self,
        choice: &ModelChoice,
        options: &chat::ModelOptions,
        on_progress: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure> {
        if *choice != ModelChoice::DemoModel {
            test_hooks::hold_opening();
        }
        let file =
            ModelFile::open(&file_of(choice)?).map_err(|error| refusal::of(choice, &error))?;
        let fingerprint = &file.summary().fingerprint;
        let sandbox = self.sandbox_for(options, fingerprint);
        if let Some(open) = &mut self.open
            && open.differs_in_template_only(choice, options, fingerprint)
        {
            open.set_sandbox(sandbox, options);
            return Ok(open.info.clone());
        }
        // The file is good. Two models may be more than the memory holds, so the old one goes first,
        // and comes back should the new one not find room.
        let before = self.open.take().map(OpenedModel::into_parts);
        let devices = self.devices.as_ref();
        match OpenedModel::new(file, choice, options, sandbox, devices, on_progress) {
            Ok(open) => Ok(self.open.insert(open).info.clone()),
            Err(failure) => {
                if let Some((file, choice, options, sandbox)) = before {
                    match OpenedModel::new(file, &choice, &options, sandbox, devices, &mut |_| {}) {
                        Ok(open) => self.open = Some(open),
                        Err(error) => tracing::error!("the model before is gone too: {error}"),
                    }
                }
                Err(failure)
            }
        }
    }
}

fn no_model() -> Failure {
    Failure::new(FailureCode::Other, "No model is open.")
}

impl OpenedModel {
    fn new(
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
            // A long context is set for a file of the user's; stretched to half of it, the demo model answers worse.
            stretch: *choice != ModelChoice::DemoModel,
            ..load_options(options)
        };
        let on_progress = &mut |step| {
            on_progress(match step {
                OpenStep::Checking => Opening::Checking,
                OpenStep::Loading(done) => Opening::Loading(done),
            });
        };
        let model = devices::open(devices, &file, &request, &load, on_progress)
            .map_err(|error| refusal::of(choice, &error))?;
        let info = info(&model, choice);
        Ok(Self {
            model,
            info,
            choice: choice.clone(),
            options: options.clone(),
            sandbox,
        })
    }

    /// What is needed to open it once more, without its weights.
    fn into_parts(
        self,
    ) -> (
        ModelFile,
        ModelChoice,
        chat::ModelOptions,
        Option<Arc<dyn TemplateSandbox>>,
    ) {
        let file = self.model.engine.file().clone();
        (file, self.choice, self.options, self.sandbox)
    }
}

fn file_of(choice: &ModelChoice) -> Result<PathBuf, Failure> {
    match choice {
        ModelChoice::File(file) => Ok(file.clone()),
        ModelChoice::DemoModel => demo_model::file().ok_or_else(|| {
            let message = "The demo model is missing; please install Goldcrest again.";
            Failure::new(FailureCode::BadModel, message)
        }),
    }
}

/// The device that the environment asks for, or else the settings.
fn requested(options: &chat::ModelOptions) -> Result<DeviceRequest, Failure> {
    let invalid = |error: devices::UnknownDevice| {
        Failure::new(FailureCode::Other, format!("Device: {error}."))
    };
    let chosen = options.device.parse().map_err(invalid)?;
    DeviceRequest::of_environment(chosen).map_err(invalid)
}

fn load_options(options: &chat::ModelOptions) -> engine::LoadOptions {
    engine::LoadOptions {
        threads: options.threads.map(|threads| threads as usize),
        context: options.context_length.map(|tokens| tokens as usize),
        kv: options.kv_type,
        ..engine::LoadOptions::default()
    }
}

/// Begins a sentence.
fn name_of(choice: &ModelChoice) -> String {
    match choice {
        ModelChoice::DemoModel => "The demo model".into(),
        ModelChoice::File(file) => file_name(file),
    }
}

fn file_name(file: &Path) -> String {
    file.file_name()
        .unwrap_or(file.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn info(model: &OpenModel, choice: &ModelChoice) -> ModelInfo {
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
        context_note: summary.context_note.clone(),
        context_can_grow: summary.context_can_grow,
        longest_token: engine.tokenizer().longest_token(),
        kv_bytes: engine.full_kv_bytes(),
        fingerprint: summary.fingerprint.clone(),
        template: template::info(engine),
        can_think: summary.can_think,
        sampling: summary.sampling.clone(),
        device: device_info(model),
    }
}

fn device_info(model: &OpenModel) -> chat::Device {
    let device = model.engine.device();
    chat::Device {
        on_gpu: device.on_gpu,
        name: device.name.clone(),
        reason: model.explanation().to_string(),
        report: model.report().map(str::to_owned),
    }
}

fn generation(error: &GenerateError) -> Failure {
    tracing::warn!(%error, "generation failed");
    let code = match error {
        GenerateError::TooLong { .. } => FailureCode::TooLong,
        _ => FailureCode::Other,
    };
    Failure::new(code, error.to_string())
}

#[cfg(test)]
mod first_screen;
#[cfg(all(test, unix))]
mod on_gpu;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod tests;

//! The engine as chat's `ModelHost`.

mod refusal;
mod template;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chat::{Failure, FailureCode, ModelChoice, ModelHost, ModelInfo, Opening};
use devices::{CrashMarkers, DeviceRequest, Devices, OpenModel, OpenStep, Work};
use engine::{
    Event, GenerateError, GenerateParams, KeepThinking, KvType, ModelFile, Part, TemplateSandbox,
};

use crate::{demo_model, sandbox, test_hooks};

/// At most one model, in memory once.
#[derive(Default)]
pub struct EngineModel {
    open: Option<Open>,
    /// Without it no GPU is used unless one is asked for.
    devices: Option<Devices>,
    /// Where files' own chat templates run; without it none does.
    sandbox: Option<Arc<dyn TemplateSandbox>>,
    /// Where it is marked that a model is being opened.
    markers: Option<CrashMarkers>,
}

struct Open {
    model: OpenModel,
    info: ModelInfo,
    choice: ModelChoice,
    options: chat::LoadOptions,
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
        options: &chat::LoadOptions,
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

    fn count(&mut self, turn: &chat::Turn, cancel: &AtomicBool) -> Result<usize, Failure> {
        let open = self.open.as_mut().ok_or_else(no_model)?;
        Ok(open.prompt(turn, cancel)?.ids.len())
    }

    fn generate(
        &mut self,
        turn: &chat::Turn,
        cancel: &AtomicBool,
        on_piece: &mut dyn FnMut(chat::Piece<'_>),
    ) -> Result<chat::Finish, Failure> {
        let devices = self.devices.as_ref();
        let open = self.open.as_mut().ok_or_else(no_model)?;
        // It was counted before and fits, so that this takes no time to speak of.
        let prompt = open.prompt(turn, &AtomicBool::new(false))?;
        let defaults = &open.model.engine.summary().sampling;
        let params = params(turn, defaults, prompt.starts_in);
        let finished = open.model.run(devices, |engine| {
            engine.generate(&prompt.ids, &params, cancel, &mut |event| {
                on_piece(piece(event));
            })
        });
        // A GPU that has failed has left the model to the CPU.
        open.info.device = device_info(&open.model);
        let finished = finished.map_err(|error| generation(&error))?;
        Ok(finish(finished, &open.info))
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
        options: &chat::LoadOptions,
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
        let before = self.open.take().map(Open::into_parts);
        let devices = self.devices.as_ref();
        match Open::new(file, choice, options, sandbox, devices, on_progress) {
            Ok(open) => Ok(self.open.insert(open).info.clone()),
            Err(failure) => {
                if let Some((file, choice, options, sandbox)) = before {
                    match Open::new(file, &choice, &options, sandbox, devices, &mut |_| {}) {
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
    Failure::new(FailureCode::NoModel, "No model is open.")
}

impl Open {
    fn new(
        file: ModelFile,
        choice: &ModelChoice,
        options: &chat::LoadOptions,
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
        chat::LoadOptions,
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
fn requested(options: &chat::LoadOptions) -> Result<DeviceRequest, Failure> {
    let invalid = |error: devices::UnknownDevice| {
        Failure::new(FailureCode::Invalid, format!("Device: {error}."))
    };
    let chosen = options.device.parse().map_err(invalid)?;
    DeviceRequest::of_environment(chosen).map_err(invalid)
}

fn load_options(options: &chat::LoadOptions) -> engine::LoadOptions {
    engine::LoadOptions {
        threads: options.threads.map(|threads| threads as usize),
        context: options.context_length.map(|tokens| tokens as usize),
        kv: match options.kv_type {
            chat::KvType::F16 => KvType::F16,
            chat::KvType::Q8_0 => KvType::Q8_0,
        },
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
            ModelChoice::File(file) => Some(file.clone()),
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
        sampling: chat::Sampling {
            temperature: summary.sampling.temperature,
            top_p: summary.sampling.top_p,
            top_k: u32::try_from(summary.sampling.top_k).unwrap_or(0),
            min_p: summary.sampling.min_p,
            repeat_penalty: summary.sampling.repeat_penalty,
            seed: None,
        },
        device: device_info(model),
    }
}

fn device_info(model: &OpenModel) -> chat::Device {
    let device = model.engine.device();
    chat::Device {
        kind: if device.on_gpu {
            chat::DeviceKind::Gpu
        } else {
            chat::DeviceKind::Cpu
        },
        name: device.name.clone(),
        reason: model.explanation().to_string(),
        report: model.report().map(str::to_owned),
    }
}

fn conversation(turn: &chat::Turn) -> engine::Conversation {
    let last = turn.history.len().saturating_sub(1);
    let messages = turn
        .history
        .iter()
        .enumerate()
        .map(|(at, message)| engine::Turn {
            role: match message.role {
                chat::Role::User => engine::Role::User,
                chat::Role::Assistant => engine::Role::Assistant,
            },
            text: message.text.clone(),
            thinking: message.thinking.clone(),
            ids: message.ids.clone(),
            open: turn.resume && at == last,
        });
    engine::Conversation {
        messages: messages.collect(),
        instructions: turn.instructions.clone(),
        thinking: turn.thinking,
        today: turn.today,
        tools: Vec::new(),
        // chat decides which thinking is still sent, by leaving it out.
        keep_thinking: KeepThinking::All,
    }
}

fn params(turn: &chat::Turn, defaults: &engine::Sampling, starts_in: Part) -> GenerateParams {
    GenerateParams {
        sampling: sampling(&turn.sampling, defaults),
        max_tokens: turn.max_tokens,
        starts_in,
        lookup: turn.lookup,
    }
}

/// How tokens are chosen; what chat does not know of is as the model's file has it.
fn sampling(sampling: &chat::Sampling, defaults: &engine::Sampling) -> engine::Sampling {
    engine::Sampling {
        temperature: sampling.temperature,
        top_k: sampling.top_k as usize,
        top_p: sampling.top_p,
        min_p: sampling.min_p,
        repeat_penalty: sampling.repeat_penalty,
        seed: sampling.seed,
        ..defaults.clone()
    }
}

fn piece(event: Event<'_>) -> chat::Piece<'_> {
    match event {
        Event::Prefill {
            done,
            total,
            cached,
        } => chat::Piece::Reading {
            done,
            total,
            cached,
        },
        Event::Token { id, piece, part } => chat::Piece::Token {
            id,
            text: piece,
            part: match part {
                Part::Thinking => chat::Part::Thinking,
                Part::Answer => chat::Part::Answer,
                Part::Control => chat::Part::Control,
            },
        },
    }
}

fn generation(error: &GenerateError) -> Failure {
    tracing::warn!(%error, "generation failed");
    let code = match error {
        GenerateError::TooLong { .. } => FailureCode::TooLong,
        _ => FailureCode::Generation,
    };
    Failure::new(code, error.to_string())
}

fn finish(finished: engine::Finished, info: &ModelInfo) -> chat::Finish {
    let stats = finished.stats;
    let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
    chat::Finish {
        reason: match finished.reason {
            engine::StopReason::EndOfTurn => chat::StopReason::EndOfTurn,
            engine::StopReason::MaxTokens => chat::StopReason::MaxTokens,
            engine::StopReason::ContextFull => chat::StopReason::ContextFull,
            engine::StopReason::Cancelled => chat::StopReason::Cancelled,
        },
        stats: chat::Stats {
            prompt_tokens: count(stats.prompt),
            cached_tokens: count(stats.cached),
            tokens: count(stats.generated),
            thinking_tokens: count(stats.thinking),
            first_token_ms: (stats.first_token_s * 1000.0).round() as u32,
            tokens_per_second: stats.decode_rate as f32,
            read_per_second: stats.prefill_rate as f32,
            drafted_tokens: count(stats.drafted),
            accepted_tokens: count(stats.accepted),
            seed: stats.seed,
            model: info.name.clone(),
            device: info.device.name.clone(),
        },
    }
}

#[cfg(test)]
mod first_screen;
#[cfg(all(test, unix))]
mod on_gpu;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod tests;

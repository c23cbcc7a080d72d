//! The engine as chat's `ModelHost`, with the device, the files and the variables of the environment that it takes.

pub mod bundled_model;
pub mod context_options;
mod counter;
pub mod environment;
mod kv_disk;
mod opened;
mod power;
pub mod refusal;
pub mod test_hooks;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chat::{
    API, AtEnd, Chat, ChatId, Failure, FailureCode, ModelChoice, ModelHost, ModelInfo, Opening,
    PromptCounter,
};
use devices::{CrashMarkers, Devices, Work};
use engine::{
    Constraint, Conversation, Event, Finished, GenerateError, KvBlocks, ModelFile, ModelRequest,
    NoBlocks, Priority, Prompt, RequestId, Signals, StepOptions,
};

use crate::power::Power;
use counter::{BlocksOnDisk, EngineCounter, SequencesInMemory};
use kv_disk::KvDisk;
use opened::{OpenedModel, device_info};
pub use opened::{load_options, requested};

/// At most one model, in memory once.
#[derive(Default)]
pub struct EngineModel {
    open: Option<OpenedModel>,
    /// Devices; without them no GPU is used unless one is requested.
    devices: Option<Devices>,
    /// Crash markers for opening a model.
    markers: Option<CrashMarkers>,
    /// Store for KV caches that outlive the app; without it prompts are prefilled again.
    kv_disk: Option<KvDisk>,
    /// Power supply: on battery, nothing is read ahead.
    power: Power,
    /// The message that is read ahead, and its flags.
    ahead: Option<(RequestId, Signals)>,
    /// Sequences in memory, for [`EngineCounter`].
    in_memory: SequencesInMemory,
}

impl ModelHost for EngineModel {
    fn refusal(&self, choice: &ModelChoice) -> Option<Failure> {
        let crashes = self.markers.as_ref()?.crashes(Work::Opening);
        crashes.contains(choice).then(|| {
            let name = refusal::name_of(choice);
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
            // This opening has ended.
            markers.forget(Work::Opening, choice);
        }
        opened
    }

    fn close(&mut self) {
        (self.open, self.ahead) = (None, None);
        self.note_sequences();
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

    fn text_prompt(&mut self, text: &str) -> Result<Prompt, Failure> {
        let open = self.open.as_ref().ok_or_else(no_model)?;
        let tokenizer = open.model.engine.tokenizer();
        let start = tokenizer.prompt_start();
        let ids = start.into_iter().chain(tokenizer.encode(text, false));
        Ok(Prompt::of_ids(ids.collect()))
    }

    fn submit(&mut self, mut request: ModelRequest) -> Result<(), Failure> {
        if test_hooks::requires_calls()
            && let Some(Constraint::Calls { required, .. }) = &mut request.params.constraint
        {
            *required = true;
        }
        let open = self.open.as_mut().ok_or_else(no_model)?;
        if request.priority == Priority::ReadAhead {
            self.ahead = Some((request.id, request.signals.clone()));
        }
        let submitted = open.model.engine.submit(request);
        submitted.map_err(|error| generation(&error))
    }

    fn step(
        &mut self,
        preempt: &AtomicBool,
        on_event: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Vec<(RequestId, Result<Finished, Failure>)> {
        let Some(open) = &mut self.open else {
            return Vec::new();
        };
        if let Some((_, ahead)) = &self.ahead
            && (self.power.0)()
        {
            ahead.cancel.store(true, Ordering::Relaxed);
        }
        let disk = self.kv_disk.as_mut().zip(open.kv.as_ref());
        let mut on_disk = disk.map(|(disk, kv)| disk.blocks(kv));
        let mut none = NoBlocks;
        let blocks: &mut dyn KvBlocks = match &mut on_disk {
            Some(blocks) => blocks,
            None => &mut none,
        };
        let mut step = StepOptions { preempt, blocks };
        let ended = open.model.step(self.devices.as_ref(), &mut step, on_event);
        self.ahead
            .take_if(|(ahead, _)| ended.iter().any(|(id, _)| id == ahead));
        if !ended.is_empty() {
            // A failed GPU has left the model to the CPU.
            open.info.device = device_info(&open.model);
            self.note_sequences();
        }
        let failed = |error| generation(&error);
        let ended = ended.into_iter();
        ended.map(|(id, end)| (id, end.map_err(failed))).collect()
    }

    fn save_caches(&mut self) -> bool {
        let open = self.open.as_mut();
        let Some((open, disk)) = open.zip(self.kv_disk.as_mut()) else {
            return false;
        };
        let Some(kv) = &open.kv else { return false };
        let session = open.model.engine.session();
        let more = session.store_block(&mut disk.blocks(kv));
        more.inspect_err(|error| tracing::debug!(%error, "a KV cache was not stored"))
            .unwrap_or(false)
    }

    fn make_room(&mut self) {
        if let Some(disk) = &mut self.kv_disk {
            disk.make_room();
        }
    }

    fn relabel(&mut self, from: ChatId, to: ChatId) {
        if let Some(open) = &mut self.open {
            let (from, to) = (from.0.cast_unsigned(), to.0.cast_unsigned());
            open.model.engine.relabel(from, to);
        }
    }

    fn forget(&mut self, chats: &[ChatId]) {
        if let Some(open) = &mut self.open {
            let engine = &mut open.model.engine;
            engine.retain(|label| !chats.iter().any(|chat| chat.0.cast_unsigned() == label));
        }
        self.note_sequences();
    }

    fn retain_chats(&mut self, chats: &[ChatId]) {
        let chats: Vec<u64> = chats.iter().map(|chat| chat.0.cast_unsigned()).collect();
        if let Some(open) = &mut self.open {
            let api = API.0.cast_unsigned();
            let engine = &mut open.model.engine;
            engine.retain(|label| label == api || chats.contains(&label));
        }
        if let Some(disk) = &mut self.kv_disk {
            disk.retain(&chats);
        }
        self.note_sequences();
    }

    fn counter(&self) -> Option<Arc<dyn PromptCounter>> {
        let open = self.open.as_ref()?;
        let disk = self.kv_disk.as_ref().zip(open.kv.as_ref());
        let disk = disk.map(|(disk, model)| BlocksOnDisk {
            folder: disk.folder(),
            identity: model.identity.clone(),
            block: model.block,
        });
        self.note_sequences();
        Some(Arc::new(EngineCounter {
            encoder: open.model.engine.prompt_encoder(),
            memory: self.in_memory.clone(),
            disk,
        }))
    }
}

impl EngineModel {
    /// Makes a host whose device `devices` choose.
    pub fn choosing(devices: Option<Devices>) -> Self {
        Self {
            devices,
            ..Self::default()
        }
    }

    /// Adds crash markers for opening a model.
    pub fn marking(self, markers: CrashMarkers) -> Self {
        Self {
            markers: Some(markers),
            ..self
        }
    }

    /// Adds KV caches in a folder that outlive the host.
    pub fn keeping_caches(self, folder: &Path) -> Self {
        Self {
            kv_disk: KvDisk::open(folder),
            ..self
        }
    }

    /// Publishes the sequences in memory for the counting thread.
    fn note_sequences(&self) {
        let open = self.open.as_ref();
        let sequences = open.map(|open| open.model.engine.sequences());
        self.in_memory.set(sequences.into_iter().flatten());
    }

    fn open_marked(
        &mut self,
        choice: &ModelChoice,
        options: &chat::ModelOptions,
        on_progress: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure> {
        if *choice != ModelChoice::BundledModel {
            test_hooks::hold_opening();
        }
        let file =
            ModelFile::open(&file_of(choice)?).map_err(|error| refusal::of(choice, &error))?;
        // The file is valid. Two models may exceed the memory, so the old one is closed first, and reopened should the
        // new one not fit.
        let before = self.open.take().map(OpenedModel::close);
        let devices = self.devices.as_ref();
        match OpenedModel::new(file, choice, options, devices, on_progress) {
            Ok(open) => Ok(self.open.insert(open).info.clone()),
            Err(failure) => {
                match before.map(|before| before.reopen(devices)) {
                    Some(Ok(open)) => self.open = Some(open),
                    Some(Err(error)) => {
                        tracing::error!("could not reopen the previous model: {error}");
                    }
                    None => {}
                }
                Err(failure)
            }
        }
    }
}

/// Closes a chat. Work of its model does not count as a crash, unless it did not stop: then a GPU may hang.
pub fn close(chat: &Chat, markers: &CrashMarkers) {
    if chat.shutdown() != AtEnd::Stuck {
        markers.withdraw();
    }
}

fn no_model() -> Failure {
    Failure::new(FailureCode::NoModel, "No model is open.")
}

fn file_of(choice: &ModelChoice) -> Result<PathBuf, Failure> {
    match choice {
        ModelChoice::File(file) => Ok(file.clone()),
        ModelChoice::BundledModel => bundled_model::file().ok_or_else(|| {
            let message = "The small model that comes with Goldcrest is missing or damaged. Get SmolLM3-3B, or open \
                           a model that you have.";
            Failure::new(FailureCode::BadModel, message)
        }),
    }
}

fn generation(error: &GenerateError) -> Failure {
    let code = match error {
        GenerateError::TooLong { .. } => FailureCode::TooLong,
        GenerateError::Schema(_) | GenerateError::Form(_) | GenerateError::Empty => {
            FailureCode::BadForm
        }
        _ => FailureCode::Other,
    };
    // The sentence may quote what a program sent.
    tracing::warn!(?code, "generation failed");
    tracing::debug!(%error, "generation failed");
    Failure::new(code, error.to_string())
}

#[cfg(test)]
mod first_screen;
#[cfg(all(test, target_os = "linux"))]
mod freed_memory;
#[cfg(all(test, unix))]
mod on_gpu;
#[cfg(test)]
mod reopening;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod run_request;
#[cfg(test)]
mod steering;
#[cfg(test)]
mod temporary;
#[cfg(test)]
mod tests;

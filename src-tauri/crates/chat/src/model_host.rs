//! What chat asks of a model. The shell implements it over the engine; tests script it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use inference::{
    Conversation, EncodedMessage, Event, Finished, GenerateParams, KvType, Prompt, PromptFrame,
    Sampling, Signals, Turn,
};
use serde::{Deserialize, Serialize};
use store::ChatId;

use crate::failure::Failure;
use crate::text;

/// How far a model that is being opened has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Opening {
    /// A device is tried out before it is used.
    Checking,
    /// So much is loaded, 0 to 1.
    Loading(f32),
}

/// A model, or the place where one can be opened. It lives on the model thread alone.
///
/// A panic in any of these becomes a [`Failure`], after which the model is opened again.
pub trait ModelHost: Send {
    /// Why this model is opened only when the user asks for it, and not at a start: the app may
    /// have crashed over it.
    fn refusal(&self, _model: &ModelChoice) -> Option<Failure> {
        None
    }

    /// Opens a model in place of the present one. On `Err` the present one goes on.
    fn open(
        &mut self,
        model: &ModelChoice,
        options: &ModelOptions,
        on_progress: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure>;

    /// Closes the model that is open, and frees its memory.
    fn close(&mut self);

    /// The model that is open. Answering may change where it computes.
    fn info(&self) -> Option<&ModelInfo>;

    /// The prompt of a conversation. Fails within 100 ms once `cancel` is set.
    fn prompt(
        &mut self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, Failure>;

    /// Generates an answer, and returns within 100 ms once `signals.cancel` is set, also while it reads the
    /// prompt. Once `signals.answer_now` is set, the answer follows what was thought so far.
    ///
    /// Every generated token is reported once and in order, except the end of turn, which is not
    /// reported. The ids reported are stored and come back as [`Turn::ids`](inference::Turn::ids).
    fn generate(
        &mut self,
        prompt: &Prompt,
        params: &GenerateParams,
        signals: Signals<'_>,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Finished, Failure>;

    /// As [`ModelHost::generate`], but what is kept of the chats is as before: the next prompt of the chat that was
    /// answered last finds all that it would have found. `None` where that cannot be, because `prompt` does not go on from
    /// that chat.
    fn generate_aside(
        &mut self,
        _prompt: &Prompt,
        _params: &GenerateParams,
        _cancel: &AtomicBool,
        _on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Option<Finished>, Failure> {
        Ok(None)
    }

    /// Before a prompt of `chat` is generated from, or read ahead: takes up again what was read of it before. Calls
    /// `on_progress` with the number of tokens that are there. Returns within 100 ms once `cancel` is set.
    fn resume(
        &mut self,
        _chat: ChatId,
        _prompt: &Prompt,
        _cancel: &AtomicBool,
        _on_progress: &mut dyn FnMut(usize),
    ) {
    }

    /// Reads as much of a prompt of `chat` as the answer to a longer one can use; a question at its end is not sent yet.
    /// Returns within 100 ms once `cancel` is set.
    fn read_ahead(&mut self, _chat: ChatId, _prompt: &Prompt, _cancel: &AtomicBool) {}

    /// Does one step of what waits for idle time: what was read of the chats is kept for the next start. `evaluates`: also
    /// what takes the model longer than writing to a disk. False when nothing is left to do. Returns within 100 ms once
    /// `cancel` is set.
    fn work_while_idle(&mut self, _evaluates: bool, _cancel: &AtomicBool) -> bool {
        false
    }

    /// The disk is full, and a chat is worth more than what is kept to save time.
    fn make_room(&mut self) {}

    /// A chat goes on as another one: what is in memory of it is the other's from now on.
    fn relabel(&mut self, _from: ChatId, _to: ChatId) {}

    /// Chats were deleted, and may be restored: no more of them is kept.
    fn forget(&mut self, _chats: &[ChatId]) {}

    /// Erases what is kept of all chats but these.
    fn retain_chats(&mut self, _chats: &[ChatId]) {}

    /// Counts prompts of the model that is open; `None`: how full the context is, is not shown.
    fn counter(&self) -> Option<Arc<dyn PromptCounter>> {
        None
    }
}

/// Counts prompts message by message beside the model thread, while that may be at work.
pub trait PromptCounter: Send + Sync {
    /// What the model's prompts have around the messages of a conversation, which has none here.
    fn frame(&self, conversation: &Conversation) -> Result<PromptFrame, Failure>;

    /// A message as it stands in a prompt of this frame.
    fn message(&self, frame: &PromptFrame, turn: &Turn) -> EncodedMessage;

    /// The number of tokens of a text.
    fn count(&self, text: &str) -> usize;

    /// How many of a prompt's first tokens need not be read: their keys and values are in memory, or on the disk. The first
    /// `settled` are of the conversation up to its last answer.
    fn cached(&self, prompt: &[u32], settled: usize) -> usize;
}

/// Which model to open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelChoice {
    /// The small model that comes with the app.
    DemoModel,
    /// A GGUF file of the user's.
    File(PathBuf),
}

/// How to open it: the part of the settings that needs the model loaded again when it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOptions {
    /// `auto`, `cpu`, `gpu` or `gpu:ID`.
    pub device: String,
    /// Threads to compute with; `None`: as many as suit the machine.
    pub threads: Option<u32>,
    /// Tokens of context; `None`: as many as suit the model and the machine.
    pub context_length: Option<u32>,
    /// How exactly keys and values are kept.
    pub kv_type: KvType,
    /// Fingerprints of the files whose own chat template is used though its text is unknown.
    pub own_templates: Vec<String>,
}

/// A model that is open.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// The name.
    pub name: String,
    /// The path of the file, to be shown; `None` for the demo model.
    pub file: Option<String>,
    /// Whether this is the demo model.
    pub demo_model: bool,
    /// For example `Q4_K_M`.
    pub quantisation: String,
    /// Size of the file in bytes.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub file_bytes: u64,
    /// Tokens that prompt and answer may have together.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub context_length: usize,
    /// A note for the user on that length: that it is not what was asked for, or longer than trained.
    pub context_note: Option<String>,
    /// Whether the settings could make it longer.
    pub context_can_grow: bool,
    /// Bytes of the longest text that one token stands for.
    #[serde(skip)]
    pub longest_token: usize,
    /// Memory that the keys and values of a full context take, in bytes.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub kv_bytes: u64,
    /// Names the file's content: stored token ids are used again only under the same fingerprint.
    pub fingerprint: String,
    /// Which chat template writes its prompts.
    pub template: TemplateStatus,
    /// Whether its template has a thinking mode.
    pub can_think: bool,
    /// How its file asks for tokens to be chosen.
    pub sampling: Sampling,
    /// Where it computes.
    pub device: Device,
}

impl ModelInfo {
    /// What files and drivers call themselves goes into rows and events, so it has an end.
    pub(crate) fn with_names_cut(mut self) -> ModelInfo {
        for name in [
            &mut self.name,
            &mut self.quantisation,
            &mut self.device.name,
        ] {
            *name = text::cut(name, text::MAX_NAME);
        }
        self
    }
}

/// The chat template that writes a model's prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct TemplateStatus {
    /// Which one it is.
    pub used: TemplateChoice,
    /// Why it gave no prompt when it was last asked for one.
    pub fault: Option<String>,
}

/// Which chat template is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum TemplateChoice {
    /// The built-in one: the file brings none.
    BuiltIn,
    /// The file's, whose text is known.
    Known,
    /// The built-in one, in place of the file's, whose text is unknown.
    Unknown,
    /// The file's, whose text is unknown, as the user wishes.
    Own,
}

/// Where a model computes, and why there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Whether it is a GPU.
    pub on_gpu: bool,
    /// For example `CPU, AVX-512 VNNI, 2 threads`.
    pub name: String,
    /// Why this device and no other.
    pub reason: String,
    /// What is known of a GPU that does not work, in plain text.
    pub report: Option<String>,
}

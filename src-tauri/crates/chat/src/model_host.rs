//! Interface to a model. The shell implements it over the engine; tests script it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use inference::{
    Conversation, EncodedMessage, Event, Finished, KvType, ModelRequest, Opening, Prompt,
    PromptFrame, RequestId, SamplingDefaults, Turn,
};
use serde::{Deserialize, Serialize};
use store::ChatId;

use crate::failure::Failure;
use crate::text;

/// Placeholder for the chat that a first message will begin: SQLite counts from 1. It has drafts only, so nothing of it is
/// kept on the disk.
pub const NEW_CHAT: ChatId = ChatId(0);

/// A model, or a slot in which one can be opened. It lives on the model thread only.
///
/// A panic in any of these methods becomes a [`Failure`], after which the model is opened again.
pub trait ModelHost: Send {
    /// Returns the reason for opening this model only on request, and not at a start: the app may have crashed over it.
    fn refusal(&self, _model: &ModelChoice) -> Option<Failure> {
        None
    }

    /// Opens a model in place of the present one. On `Err` the present one stays open.
    fn open(
        &mut self,
        model: &ModelChoice,
        options: &ModelOptions,
        on_progress: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure>;

    /// Closes the open model, and frees its memory.
    fn close(&mut self);

    /// Returns the open model. Its device may change while it answers.
    fn info(&self) -> Option<&ModelInfo>;

    /// Renders the prompt of a conversation. Fails within 100 ms once `cancel` is set.
    fn prompt(
        &mut self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, Failure>;

    /// Returns a prompt of plain text, without a template.
    fn text_prompt(&mut self, _text: &str) -> Result<Prompt, Failure> {
        Err(Failure::other("This model takes conversations only."))
    }

    /// Submits a request, which [`ModelHost::step`] runs. Its conversation is a chat's id.
    fn submit(&mut self, request: ModelRequest) -> Result<(), Failure>;

    /// Runs what the submitted requests need next: a pass, or the restoring of a cache. Returns the requests that ended.
    ///
    /// Returns within 100 ms once the only request in a pass is cancelled, or once `preempt` is set, unless an answer is
    /// alone in a pass, or the pass before was preempted.
    ///
    /// Every generated token is reported once and in order, except the end of turn, which is not reported. The ids
    /// reported are stored and come back as [`Turn::ids`](inference::Turn::ids).
    fn step(
        &mut self,
        preempt: &AtomicBool,
        on_event: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Vec<(RequestId, Result<Finished, Failure>)>;

    /// Saves a part of the chats' caches for the next start. Returns false if nothing is left to save. Returns within
    /// 100 ms.
    fn save_caches(&mut self) -> bool {
        false
    }

    /// Frees disk space: the disk is full, and a chat is worth more than a cache.
    fn make_room(&mut self) {}

    /// Transfers the memory of a chat to another id.
    fn relabel(&mut self, _from: ChatId, _to: ChatId) {}

    /// Stops caching chats that were deleted, and may be restored.
    fn forget(&mut self, _chats: &[ChatId]) {}

    /// Erases the caches of all other chats.
    fn retain_chats(&mut self, _chats: &[ChatId]) {}

    /// Returns the counter of the open model's prompts; `None` if the usage of the context is not shown.
    fn counter(&self) -> Option<Arc<dyn PromptCounter>> {
        None
    }
}

/// Counts prompts message by message beside the model thread, also while that is busy.
pub trait PromptCounter: Send + Sync {
    /// Returns the frame of the prompts of a conversation, which has no messages here.
    fn frame(&self, conversation: &Conversation) -> Result<Arc<PromptFrame>, Failure>;

    /// Encodes a message as it stands in a prompt of this frame.
    fn message(&self, frame: &PromptFrame, turn: &Turn) -> Arc<EncodedMessage>;

    /// Encodes a text, in which no control tokens are recognised.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// Returns the bytes of a token; empty for an unknown one.
    fn bytes(&self, id: u32) -> Vec<u8>;

    /// Counts the tokens of a text.
    fn count(&self, text: &str) -> usize;

    /// Returns how many leading tokens of a prompt need no prefill: their keys and values are in memory or on the disk.
    fn cached(&self, prompt: &[u32]) -> usize;
}

/// Name of the model that comes with the app.
pub const BUNDLED_MODEL: &str = "SmolLM2-135M-Instruct";

/// Selection of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelChoice {
    /// The small model that comes with the app. Databases of earlier versions have its former name.
    #[serde(alias = "demomodel")]
    BundledModel,
    /// A GGUF file of the user.
    File(PathBuf),
}

/// Options for opening a model: the part of the settings whose change reloads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOptions {
    /// `auto`, `cpu`, `gpu` or `gpu:ID`.
    pub device: String,
    /// Threads to compute with; `None`: chosen for the machine.
    pub threads: Option<u32>,
    /// Tokens of context; `None`: chosen for the model and the machine.
    pub context_length: Option<u32>,
    /// Storage type of keys and values.
    pub kv_type: KvType,
}

/// An open model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// Name of the model.
    pub name: String,
    /// Path of the file, for display; `None` for the bundled model.
    pub file: Option<String>,
    /// True for the bundled model.
    pub bundled_model: bool,
    /// Quantisation, such as `Q4_K_M`.
    pub quantisation: String,
    /// Size of the file in bytes.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub file_bytes: u64,
    /// Maximum tokens of prompt and answer together.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub context_length: usize,
    /// Note for the user about that length: not the requested one, or longer than trained.
    pub context_note: Option<String>,
    /// True if the settings could make it longer.
    pub context_can_grow: bool,
    /// Bytes of the longest token.
    #[serde(skip)]
    pub longest_token: usize,
    /// Bytes of the keys and values of a full context.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub kv_bytes: u64,
    /// Fingerprint of the file's content: stored token ids are reused only under the same one.
    pub fingerprint: String,
    /// Chat format of its prompts, and what is uncertain about it.
    pub chat_format: String,
    /// True if its chat format has a thinking mode.
    pub can_think: bool,
    /// True if its chat format has calls of tools, and its template offers them.
    pub can_call_tools: bool,
    /// Sampling parameters of its file, else of its chat format.
    pub sampling: SamplingDefaults,
    /// Device on which it computes.
    pub device: Device,
}

impl ModelInfo {
    /// Truncates names: those in files and drivers have no length limit, and go into rows and events.
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

/// Device of a model, with the reason for its choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// True for a GPU.
    pub on_gpu: bool,
    /// Name, such as `CPU, AVX-512 VNNI, 2 threads`.
    pub name: String,
    /// Reason for the choice of this device.
    pub reason: String,
    /// Diagnosis of a GPU that does not work, in plain text.
    pub report: Option<String>,
}

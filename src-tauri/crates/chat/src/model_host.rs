//! What chat asks of a model. The shell implements it over the engine; tests script it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use store::Role;

use crate::failure::Failure;
use crate::settings::Sampling;
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
        options: &LoadOptions,
        on_progress: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure>;

    /// The model that is open. Answering may change where it computes.
    fn info(&self) -> Option<&ModelInfo>;

    /// How many tokens the prompt of this turn has. Fails within 100 ms once `cancel` is set.
    fn count(&mut self, turn: &Turn, cancel: &AtomicBool) -> Result<usize, Failure>;

    /// Answers a turn, and returns within 100 ms once `cancel` is set, also while it reads the
    /// prompt.
    ///
    /// Every generated token is reported once and in order, except the end of turn, which is not
    /// reported. The ids reported are stored and come back as [`HistoryMessage::ids`].
    fn generate(
        &mut self,
        turn: &Turn,
        cancel: &AtomicBool,
        on_piece: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Finish, Failure>;
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
pub struct LoadOptions {
    /// `auto`, `cpu`, `gpu`, `gpu:ID`, `cuda`, `cuda:N` or `metal`.
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

/// How exactly a model keeps the keys and values of what it has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvType {
    /// In 16 bits.
    #[default]
    F16,
    /// In 8 bits: about half the memory.
    Q8_0,
}

/// A model that is open.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// The name for people.
    pub name: String,
    /// Where the file lies; `None` for the demo model.
    pub file: Option<PathBuf>,
    /// Whether this is the demo model.
    pub demo_model: bool,
    /// For example `Q4_K_M`.
    pub quantisation: String,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Tokens that prompt and answer may have together.
    pub context_length: usize,
    /// A note for the user on that length: that it is not what was asked for, or longer than trained.
    pub context_note: Option<String>,
    /// Whether the settings could make it longer.
    pub context_can_grow: bool,
    /// Bytes of the longest text that one token stands for.
    pub longest_token: usize,
    /// Memory that the keys and values of a full context take, in bytes.
    pub kv_bytes: u64,
    /// Names the file's content: stored token ids are used again only under the same fingerprint.
    pub fingerprint: String,
    /// Which chat template writes its prompts.
    pub template: Template,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Which one it is.
    pub used: TemplateUse,
    /// Why it gave no prompt when it was last asked for one.
    pub fault: Option<String>,
}

/// Which chat template is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateUse {
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kind of device.
    pub kind: DeviceKind,
    /// For example `CPU, AVX-512 VNNI, 2 threads`.
    pub name: String,
    /// Why this device and no other.
    pub reason: String,
    /// What is known of a GPU that does not work, in plain text.
    pub report: Option<String>,
}

/// The kinds of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A GPU through Vulkan or Metal.
    Gpu,
    /// A GPU through CUDA.
    Cuda,
    /// A GPU through Metal.
    Metal,
}

/// All that a model needs to answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The conversation so far, oldest first. It ends with the user's message, or with the answer
    /// to go on with.
    pub history: Vec<HistoryMessage>,
    /// The user's own instructions.
    pub instructions: Option<String>,
    /// Whether the model is to think first.
    pub thinking: bool,
    /// The date in the prompt: that of the chat's first day, so that its prompt never
    /// changes.
    pub today: Date,
    /// How to choose tokens.
    pub sampling: Sampling,
    /// The most tokens to generate; `None`: until the context is full.
    pub max_tokens: Option<usize>,
    /// Whether to guess text that repeats the context. It changes the speed, not the answer.
    pub lookup: bool,
    /// Whether the last message of `history` is a partial answer to be continued.
    pub resume: bool,
}

/// One message of a [`Turn`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryMessage {
    /// Who wrote it.
    pub role: Role,
    /// Its text, without the thinking.
    pub text: String,
    /// The thinking, where it is to be sent again.
    pub thinking: Option<String>,
    /// The ids as generated, thinking included, where the same model made them and they are to be
    /// sent verbatim.
    pub ids: Option<Vec<u32>>,
}

/// What a model reports while it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// `done` of `total` prompt tokens are read, of which `cached` needed no reading.
    Reading {
        /// Tokens read or cached.
        done: usize,
        /// Tokens of the prompt.
        total: usize,
        /// Tokens that were in the cache.
        cached: usize,
    },
    /// One token was generated.
    Token {
        /// Its id.
        id: u32,
        /// The whole characters that it completes; may be empty.
        text: &'a str,
        /// Where its text belongs.
        part: Part,
    },
}

/// Where a token belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// To the thinking.
    Thinking,
    /// To the answer.
    Answer,
    /// To neither: a tag such as `<think>`. Its text is not shown.
    Control,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// Why it ended.
    pub reason: StopReason,
    /// What it took.
    pub stats: Stats,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended its turn.
    EndOfTurn,
    /// [`Turn::max_tokens`] were generated.
    MaxTokens,
    /// The context is full.
    ContextFull,
    /// It was cancelled.
    Cancelled,
}

/// What an answer took. Of an answer that was continued: its last part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of those, the ones that needed no reading.
    pub cached_tokens: u32,
    /// Tokens generated.
    pub tokens: u32,
    /// Of those, the ones that were thinking.
    pub thinking_tokens: u32,
    /// From the start to the first token, in ms.
    pub first_token_ms: u32,
    /// Tokens generated per second.
    pub tokens_per_second: f32,
    /// Prompt tokens read per second.
    pub read_per_second: f32,
    /// Tokens that were guessed from the context.
    #[serde(default)]
    pub drafted_tokens: u32,
    /// Of those, the ones that were right.
    #[serde(default)]
    pub accepted_tokens: u32,
    /// The seed that was used.
    pub seed: u64,
    /// The model's name.
    pub model: String,
    /// The device's name.
    pub device: String,
}

impl Stats {
    pub(crate) fn with_names_cut(mut self) -> Stats {
        self.model = text::cut(&self.model, text::MAX_NAME);
        self.device = text::cut(&self.device, text::MAX_NAME);
        self
    }
}

//! What crosses between Rust and the page. `ui/src/host/bindings.ts` is generated from it.
//!
//! Times are unix seconds, durations milliseconds, identifiers rows of the store. specta, which
//! writes the TypeScript, exists in tests alone.

use serde::{Deserialize, Serialize};

use crate::error::WireError;

/// A line of the sidebar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ChatSummary {
    pub id: u32,
    pub title: String,
    pub created_at: u32,
    pub updated_at: u32,
    /// An answer is being written in it.
    pub writing: bool,
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    User,
    Assistant,
    System,
    Tool,
}

/// How far a message got. `Limit`: the token limit was reached, or the context is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum MessageState {
    Writing,
    Done,
    Stopped,
    Interrupted,
    Limit,
    Failed,
}

/// What an answer cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    pub prompt_tokens: u32,
    pub cached_tokens: u32,
    pub tokens: u32,
    pub thinking_tokens: u32,
    pub first_token_ms: u32,
    pub tokens_per_second: f64,
    pub read_per_second: f64,
    /// Tokens guessed from the context, and those of them that were right.
    pub drafted_tokens: u32,
    pub accepted_tokens: u32,
    pub seed: u32,
    pub model: String,
    pub device: String,
}

/// What was left out of a prompt so that it fits: the oldest messages, and answers' thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    pub messages: u32,
    pub thinking: u32,
}

/// One message of the tree, with what the page needs to draw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub id: u32,
    pub parent: Option<u32>,
    pub role: Role,
    pub text: String,
    pub thinking: Option<String>,
    pub thinking_ms: Option<u32>,
    /// Thinking was asked for.
    pub thinks: bool,
    pub state: MessageState,
    pub stats: Option<Stats>,
    pub error: Option<WireError>,
    /// What the model was not given, when its context was too small for all that was said.
    pub omitted: Option<Omitted>,
    pub created_at: u32,
    /// All versions of this message, itself among them, oldest first.
    pub siblings: Vec<u32>,
    /// The number of the last delta that is in `text` and `thinking`.
    pub seq: u32,
}

/// A chat on the screen: the shown branch, root first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ChatView {
    pub chat: ChatSummary,
    /// The message behind which `messages` begin: those up to it are as they were. Null: the branch is whole.
    pub after: Option<u32>,
    pub messages: Vec<Message>,
    pub draft: Draft,
}

/// The kind of device that computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    Cpu,
    Gpu,
    Cuda,
    Metal,
}

/// Where the model runs, and why there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Device {
    pub kind: DeviceKind,
    pub name: String,
    pub reason: String,
    /// What is known of a GPU that does not work, to be copied.
    pub report: Option<String>,
}

/// Which chat template is used. `Unknown`: the built-in one, as the file's text is unknown. `Own`: the file's all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum TemplateUse {
    BuiltIn,
    Known,
    Unknown,
    Own,
}

/// The chat template of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Template {
    pub used: TemplateUse,
    /// Why it gave no prompt when it was last asked for one.
    pub fault: Option<String>,
}

/// Whether there is a model to talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum ModelState {
    None,
    Checking,
    Loading,
    Ready,
    Failed,
}

/// The model, for the status pill and its page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ModelStatus {
    pub state: ModelState,
    pub name: String,
    /// The user's own file; none for the demo model.
    pub file: Option<String>,
    pub demo_model: bool,
    pub quantisation: String,
    pub size_mb: f64,
    pub context_length: u32,
    /// Whether a longer one can be chosen.
    pub context_can_grow: bool,
    /// That this is not what was asked for, or longer than the model was trained for.
    pub context_note: Option<String>,
    /// What the keys and values of a full context take.
    pub kv_mb: f64,
    /// Names the file's content; empty while it loads.
    pub fingerprint: String,
    pub template: Option<Template>,
    pub device: Option<Device>,
    /// 0 to 1 while loading.
    pub progress: f64,
    pub error: Option<WireError>,
    pub can_think: bool,
    pub sampling: SamplingDefaults,
}

/// How a model's file asks for the next token to be chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct SamplingDefaults {
    pub temperature: f64,
    pub top_p: f64,
    pub top_k: u32,
    pub min_p: f64,
    pub repeat_penalty: f64,
}

/// How the next token is chosen; null: as the model's file asks for it, and a new seed for each answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sampling {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    pub min_p: Option<f64>,
    pub repeat_penalty: Option<f64>,
    pub seed: Option<u32>,
}

/// Which colours the page wears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum Theme {
    System,
    Light,
    Dark,
}

/// The key that sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum SendWith {
    Enter,
    CtrlEnter,
}

/// How exactly the model keeps the keys and values of what it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "snake_case")]
pub enum KvType {
    F16,
    Q8_0,
}

/// The user's choices. A change of device, threads, context or `kv_type` loads the model anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    pub theme: Theme,
    /// `auto`, `cpu`, `gpu`, `gpu:ID`, `cuda`, `cuda:N` or `metal`.
    pub device: String,
    pub threads: Option<u32>,
    pub context_length: Option<u32>,
    pub kv_type: KvType,
    /// Fingerprints of the files whose own chat template is used though its text is unknown.
    pub own_templates: Vec<String>,
    pub sampling: Sampling,
    pub max_tokens: Option<u32>,
    /// Text that repeats the context is guessed.
    pub lookup: bool,
    pub instructions: String,
    pub thinking: bool,
    pub send_with: SendWith,
    /// How large the page is drawn, in percent.
    pub zoom: u32,
    pub show_stats: bool,
}

/// What was written but not sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Draft {
    pub text: String,
    /// Long texts that were pasted, to be sent with it.
    pub pastes: Vec<String>,
    /// Messages to be sent when the present answer is done, the first one first.
    pub queue: Vec<QueuedMessage>,
}

/// A message that waits for the answer before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueuedMessage {
    pub text: String,
    pub pastes: Vec<String>,
    pub thinking: bool,
}

/// The drafts that the page has to know at start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Drafts {
    pub new_chat: Draft,
}

/// Why the app did not start. `InUse`: another Goldcrest has the data folder; `Held`: another
/// program has the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum StartProblemKind {
    Damaged,
    Missing,
    Newer,
    Foreign,
    Unreadable,
    ReadOnly,
    FolderNotWritable,
    Held,
    DiskFull,
    InUse,
    Other,
}

/// A copy that can be put in the database's place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct DatabaseCopy {
    pub name: String,
    /// The ISO date when it was made; none: before an update of the app.
    pub day: Option<String>,
    pub size_mb: f64,
    pub chats: u32,
}

/// What is wrong, and what can be done about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct StartProblem {
    pub kind: StartProblemKind,
    pub message: String,
    pub folder: String,
    /// Those that are whole, the newest first.
    pub copies: Vec<DatabaseCopy>,
    /// The name that the database would get; none where there is none, or another in its place would not help.
    pub kept_as: Option<String>,
    /// The database is damaged in a part that opening does not read, and can be used as it is.
    pub opens: bool,
}

/// Whether there is a snapshot to ask for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Startup {
    Ready,
    Problem(StartProblem),
}

/// Everything that the page needs to draw itself at start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub version: String,
    pub data_folder: String,
    pub log_file: String,
    pub first_start: bool,
    pub chats: Vec<ChatSummary>,
    pub current: Option<u32>,
    pub settings: Settings,
    pub model: ModelStatus,
    pub drafts: Drafts,
    /// The most threads that may be set.
    pub max_threads: u32,
}

/// A place where the searched words stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    pub chat: u32,
    pub title: String,
    /// None when the title matched.
    pub message: Option<u32>,
    /// Plain text, with each hit between U+E000 and U+E001.
    pub snippet: String,
    pub at: u32,
}

/// What an answer is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    Waiting,
    Reading,
    Thinking,
    Writing,
}

/// What the host tells the page without being asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum HostEvent {
    Model {
        status: ModelStatus,
    },
    ChatChanged {
        chat: ChatSummary,
    },
    ChatRemoved {
        chat: u32,
    },
    Stage {
        chat: u32,
        message: u32,
        stage: Stage,
        done: u32,
        total: u32,
    },
    /// Text to append; to be applied only when `seq` follows the message's own.
    Delta {
        chat: u32,
        message: u32,
        seq: u32,
        thinking: String,
        text: String,
        tokens: u32,
        tokens_per_second: f64,
    },
    Ended {
        chat: u32,
        message: Message,
    },
    /// The day's copy of the chats was not made; the sentence says why, and what to do.
    CopyFailed {
        error: WireError,
    },
    /// A file is held over the window.
    Dragging {
        over: bool,
    },
}

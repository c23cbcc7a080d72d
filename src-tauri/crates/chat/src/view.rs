//! What the window shows, and the events that keep it true.

use std::path::PathBuf;

use inference::{Role, Sampling, Stats};
use serde::{Deserialize, Serialize};
use store::{ChatId, Draft, MessageId, MessageState};

use crate::failure::Failure;
use crate::model_host::{Device, ModelInfo, Template};
use crate::settings::Settings;
use crate::text;

/// Everything the window needs to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Whether no chat was ever begun here.
    pub first_start: bool,
    /// All chats, the latest first.
    pub chats: Vec<ChatSummary>,
    /// The chat that was open last.
    pub current: Option<ChatId>,
    /// The settings.
    pub settings: Settings,
    /// The model.
    pub model: ModelStatus,
    /// What was written, and not sent, where a new chat begins.
    pub new_chat_draft: Draft,
}

/// A chat in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSummary {
    /// Its id.
    pub id: ChatId,
    /// Its title.
    pub title: String,
    /// Unix seconds.
    pub created_at: i64,
    /// Unix seconds of the last message.
    pub updated_at: i64,
    /// Whether an answer is being written, or waits to be.
    pub writing: bool,
}

/// An open chat.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatView {
    /// The chat.
    pub chat: ChatSummary,
    /// The message behind which `messages` begin: those up to it are as they were. `None`: the branch is whole.
    pub after: Option<MessageId>,
    /// The shown branch, root first.
    pub messages: Vec<Message>,
    /// What was written and not sent.
    pub draft: Draft,
}

/// A message as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// The message that it follows.
    pub parent: Option<MessageId>,
    /// Who wrote it.
    pub role: Role,
    /// Its text.
    pub text: String,
    /// What the model thought.
    pub thinking: Option<String>,
    /// How long it thought.
    pub thinking_ms: Option<u32>,
    /// Whether it was asked to think.
    pub thinks: bool,
    /// How far it is.
    pub state: MessageState,
    /// What it took.
    pub stats: Option<AnswerStats>,
    /// Why it failed.
    pub error: Option<Failure>,
    /// What of the conversation the model was not given, when its context was too small for all of
    /// it.
    pub omitted: Option<Omitted>,
    /// Unix seconds.
    pub created_at: i64,
    /// All messages that follow the same parent, oldest first, this one included.
    pub siblings: Vec<MessageId>,
    /// The number of the last [`ChatEvent::Delta`] that this text includes.
    pub seq: u32,
}

/// The figures of an answer, and what it was generated with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerStats {
    /// The figures.
    #[serde(flatten)]
    pub figures: Stats,
    /// The model's name.
    pub model: String,
    /// The device's name.
    pub device: String,
}

impl AnswerStats {
    pub(crate) fn new(figures: Stats, model: Option<&ModelInfo>) -> AnswerStats {
        let cut = |name: &String| text::cut(name, text::MAX_NAME);
        AnswerStats {
            figures,
            model: model.map(|model| cut(&model.name)).unwrap_or_default(),
            device: model
                .map(|model| cut(&model.device.name))
                .unwrap_or_default(),
        }
    }
}

/// What was left out of a prompt, so that it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Omitted {
    /// Messages left out, the oldest ones.
    pub messages: u32,
    /// Answers sent without their thinking.
    pub thinking: u32,
}

/// A place where a search found something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The chat.
    pub chat: ChatId,
    /// The chat's title.
    pub title: String,
    /// The message; `None`: it is in the title.
    pub message: Option<MessageId>,
    /// Plain text around the hit; the hits stand between U+E000 and U+E001.
    pub snippet: String,
    /// Unix seconds of the message or the chat.
    pub at: i64,
}

/// The model as the window shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelStatus {
    /// What it is doing.
    pub state: ModelState,
    /// The name of the model that is open, or being opened.
    pub name: String,
    /// Its file; `None` for the demo model.
    pub file: Option<PathBuf>,
    /// Whether it is the demo model.
    pub demo_model: bool,
    /// For example `Q4_K_M`; empty while loading.
    pub quantisation: String,
    /// Size of the file in bytes; 0 while loading.
    pub file_bytes: u64,
    /// Tokens of context; 0 while loading.
    pub context_length: usize,
    /// Whether a longer context can be chosen.
    pub context_can_grow: bool,
    /// A note on that length: that it is not what was asked for, or longer than trained.
    pub context_note: Option<String>,
    /// Memory that the keys and values of a full context take, in bytes; 0 while loading.
    pub kv_bytes: u64,
    /// Names the file's content; empty while loading.
    pub fingerprint: String,
    /// The chat template that writes its prompts; `None` while loading.
    pub template: Option<Template>,
    /// Where it computes; `None` while loading.
    pub device: Option<Device>,
    /// While loading: the fraction done, 0 to 1.
    pub progress: f32,
    /// Why the last model that was asked for did not open. The state says whether another goes on.
    pub error: Option<Failure>,
    /// Whether it has a thinking mode.
    pub can_think: bool,
    /// How tokens are chosen where the user has changed nothing.
    pub sampling: Sampling,
}

/// What the model is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelState {
    /// There is none.
    None,
    /// It is to be opened, and the device on which it may go is tried out.
    Checking,
    /// It is being opened.
    Loading,
    /// It is open.
    Ready,
    /// It did not open, and no other is open.
    Failed,
}

/// What happened. Events come in order, from one thread.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatEvent {
    /// The model's status changed.
    Model(ModelStatus),
    /// A chat is new, has a new title, or began or ceased to write.
    ChatChanged(ChatSummary),
    /// A chat was deleted.
    ChatRemoved(ChatId),
    /// An answer came a step further.
    Stage {
        /// The chat.
        chat: ChatId,
        /// The answer.
        message: MessageId,
        /// The step.
        stage: Stage,
        /// While reading: tokens read.
        done: u32,
        /// While reading: tokens to read.
        total: u32,
    },
    /// An answer grew. Apply it only when `seq` follows the message's.
    Delta {
        /// The chat.
        chat: ChatId,
        /// The answer.
        message: MessageId,
        /// Counts from 1 each time an answer begins or is continued.
        seq: u32,
        /// Appended to the thinking.
        thinking: String,
        /// Appended to the text.
        text: String,
        /// Tokens generated so far.
        tokens: u32,
        /// Their rate.
        tokens_per_second: f32,
    },
    /// An answer ended, in whatever way.
    Ended {
        /// The chat.
        chat: ChatId,
        /// The answer, whole.
        message: Message,
    },
    /// The day's copy of the database was not made: the file is damaged, or it cannot be written.
    CopyFailed(Failure),
}

/// The steps of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// For the model to load, or for another answer.
    Waiting,
    /// The prompt.
    Reading,
    /// Before the answer.
    Thinking,
    /// The answer.
    Writing,
}

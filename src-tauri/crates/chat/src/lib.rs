//! The product's verbs, and the one thread that owns the model.
//!
//! [`Chat`] is the handle: each verb is a request to the *actor*, a thread that owns the [`Store`] and answers at once.
//! The actor keeps the queue of answers and submits jobs to the *model thread*, which owns the [`ModelHost`], runs several
//! answers together and reports their progress. The two share no data, only flags: two of each answer cancel it and end
//! its thinking, one preempts idle work. A third thread counts the usage of the context by a [`PromptCounter`] of the open model.
//!
//! The actor routes verbs and reports to parts that own their data and do not know it: [`stores`], [`answers`],
//! [`model_slot`], [`read_ahead`], [`context_counter`], [`copies`], [`upkeep`] and [`undo_stack`]. A part takes what it
//! needs as arguments and returns what happened. Only the actor submits jobs and emits events.
//!
//! The model itself is behind [`ModelHost`]: this crate knows no engine, and tests script one.

#![warn(missing_docs)]

mod actor;
mod answer_buffer;
mod answers;
mod api;
mod app_row;
mod bin;
mod branches;
mod calling;
mod clock;
mod context;
mod context_counter;
mod copies;
mod counting;
mod daily;
mod daily_copy;
mod failure;
mod fit;
mod folders;
mod handle;
mod importing;
mod job;
mod limits;
mod model_host;
mod model_slot;
mod model_thread;
mod panics;
pub mod preset;
mod read_ahead;
mod reading;
mod relocation;
mod rounds;
mod running_import;
mod settings;
mod showing;
mod slash;
mod stores;
mod summary;
mod text;
mod timing;
mod title;
mod titling;
mod turn;
mod undo_stack;
mod upkeep;
mod view;

pub use actor::AtEnd;
pub use api::{API, ApiEvent, ApiListener, ApiPrompt, ApiRequest, ServedModel};
pub use app_row::AppRow;
pub use clock::{Clock, SystemClock, now};
pub use context::ContextUsage;
pub use failure::{Failure, FailureCode, nothing_imported};
pub use handle::Chat;
pub use importing::{ImportCounts, Importing};
pub use inference::{
    EncodedMessage, KvType, Opening, Part, Parts, Role, Sampling, SamplingDefaults, ToolOutcome,
};
pub use limits::MAX_TEXT;
pub use model_host::{
    BUNDLED_MODEL, Device, ModelChoice, ModelHost, ModelInfo, ModelOptions, NEW_CHAT, PromptCounter,
};
pub use preset::{Preset, PresetContent};
pub use relocation::relocate;
pub use running_import::RunningImport;
pub use settings::names::setting_names;
pub use settings::{
    AllowedTool, CONTEXT_LENGTHS, SamplingSettings, SendWith, Settings, Theme, max_threads,
};
pub use slash::{SLASH_COMMANDS, SlashCommand, SlashName, SlashPlace, Typed};
pub use store::{
    ChatHits, ChatId, ChatPreset, DeletedMessage, Draft, DraftPlace, FolderId, LengthWish,
    MessageId, MessageState, PresetId, QueuedMessage, SearchAnswer, SearchHit, WindowRow,
};
pub use timing::Timing;
pub use view::{
    AnswerStats, CallStatus, CallView, ChatEvent, ChatSnapshot, ChatSummary, ChatView, Consent,
    Folder, Message, ModelStatus, ModelView, Omitted, ReadFrom, Stage, ToolView, Undone,
    UnopenedModel,
};

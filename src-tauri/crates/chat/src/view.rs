//! State of the window, and the events that keep it up to date.

use std::borrow::Cow;

use inference::{Parts, Role, Stats};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{ChatId, ChatPreset, Draft, FolderId, LengthWish, MessageId, MessageState};

use crate::failure::Failure;
use crate::model_host::ModelInfo;
use crate::preset::Preset;
use crate::settings::Settings;
use crate::text;
use tools::{Effects, ToolInfo, ToolSource};

/// Initial state of a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ChatSnapshot {
    /// True if no chat was ever begun here.
    pub first_start: bool,
    /// Chats that are not deleted: temporary ones first, then the most recent first.
    pub chats: Vec<ChatSummary>,
    /// The folders in the user's order.
    pub folders: Vec<Folder>,
    /// The chat that was open last.
    pub current: Option<ChatId>,
    /// The settings.
    pub settings: Settings,
    /// The model.
    pub model: ModelView,
    /// Unsent draft of a new chat.
    pub new_chat_draft: Draft,
    /// All presets, in the order of their names.
    pub presets: Vec<Preset>,
    /// Preset chosen for the next new chat; `None`: that of the settings.
    pub new_chat_preset: Option<ChatPreset>,
}

/// A chat in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ChatSummary {
    /// Its id.
    pub id: ChatId,
    /// Its title.
    pub title: String,
    /// Unix seconds.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub created_at: i64,
    /// Unix seconds of the last message.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub updated_at: i64,
    /// True while an answer is written or queued.
    pub writing: bool,
    /// Chat whose summary this one began with.
    pub continues: Option<ChatId>,
    /// Folder that contains it.
    pub folder: Option<FolderId>,
    /// True if it is pinned to the top of the list.
    pub pinned: bool,
    /// True if the list hides it.
    pub archived: bool,
    /// True if it is in memory only. It has no title before its first message.
    pub temporary: bool,
    /// Unix seconds from which it is purged; `None` if it is not deleted.
    #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
    pub purge_at: Option<i64>,
}

/// A folder of chats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Folder {
    /// Its id.
    pub id: FolderId,
    /// Name, unique among the folders.
    pub name: String,
    /// True if the list hides its chats.
    pub collapsed: bool,
}

/// An open chat.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ChatView {
    /// The chat.
    pub chat: ChatSummary,
    /// Message after which `messages` begin: those up to it are unchanged. `None`: the branch is complete.
    pub after: Option<MessageId>,
    /// The shown branch, root first.
    pub messages: Vec<Message>,
    /// Unsent draft.
    pub draft: Draft,
    /// Preset and instructions of the chat; `None`: the settings apply.
    pub preset: Option<ChatPreset>,
}

/// A message for display.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Message that it follows.
    pub parent: Option<MessageId>,
    /// Its author.
    pub role: Role,
    /// Its parts.
    pub parts: Parts,
    /// Milliseconds of thinking.
    pub thinking_ms: Option<u32>,
    /// True if thinking was requested.
    pub thinks: bool,
    /// Requested length.
    pub length: Option<LengthWish>,
    /// Id of the guide's topic that the text is taken from, if no model wrote it.
    pub guide: Option<String>,
    /// State of the message.
    pub state: MessageState,
    /// Figures of the answer.
    pub stats: Option<AnswerStats>,
    /// Reason for a failure.
    pub error: Option<Failure>,
    /// Parts of the conversation that the model was not given because its context was too small.
    pub omitted: Option<Omitted>,
    /// Point from which the model read, if that was not the start.
    pub read_from: Option<ReadFrom>,
    /// Unix seconds.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub created_at: i64,
    /// All messages that follow the same parent, oldest first, this one included.
    pub siblings: Vec<MessageId>,
    /// Number of the last [`ChatEvent::Delta`] that this text includes.
    pub seq: u32,
    /// Calls that wait or run. Others without a result were not run.
    pub calls: Vec<CallView>,
}

/// A call that waits or runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct CallView {
    /// Id of the call.
    pub id: String,
    /// Its status.
    pub status: CallStatus,
    /// The tool.
    pub tool: ToolView,
    /// Reason for asking each time; `None` if the user can choose not to be asked again.
    pub asks_because: Option<String>,
}

/// Status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum CallStatus {
    /// It waits for the user's consent.
    Asks,
    /// It runs.
    Runs,
}

/// A tool, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ToolView {
    /// Name by which the model calls it.
    pub name: String,
    /// Name for the user.
    pub title: String,
    /// Description for the model.
    pub description: String,
    /// Its origin.
    pub source: ToolSource,
    /// Its effects.
    pub effects: Effects,
}

impl From<&ToolInfo> for ToolView {
    fn from(info: &ToolInfo) -> ToolView {
        ToolView {
            name: info.definition.name.clone(),
            title: info.title.clone(),
            description: info.definition.description.clone(),
            source: info.source.clone(),
            effects: info.effects,
        }
    }
}

/// The user's decision about a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Consent {
    /// It may run.
    Once,
    /// It may run, and others of the tool in this chat.
    InChat,
    /// It may run, and others of the tool in all chats.
    Always,
    /// It may not run.
    Denied {
        /// A word to the model; may be empty.
        reason: String,
    },
}

impl Message {
    /// Returns its text.
    pub fn text(&self) -> String {
        self.parts.text().into_owned()
    }

    /// Returns its thinking.
    pub fn thinking(&self) -> Option<String> {
        self.parts.thinking().map(Cow::into_owned)
    }
}

/// Figures of an answer, with its model and device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
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
    /// Reads stored figures; earlier versions stored snake case, and the first ones no drafts.
    pub(crate) fn from_stored(stored: Value) -> Option<AnswerStats> {
        let Value::Object(fields) = stored else {
            return None;
        };
        let drafts = ["draftedTokens", "acceptedTokens"];
        let mut all: Map<String, Value> = drafts
            .map(|key| (key.to_owned(), 0.into()))
            .into_iter()
            .collect();
        all.extend(
            fields
                .into_iter()
                .map(|(key, value)| (camel_case(&key), value)),
        );
        serde_json::from_value(Value::Object(all)).ok()
    }

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

fn camel_case(key: &str) -> String {
    let mut words = key.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        name.extend(first.chars().flat_map(char::to_uppercase));
        name.push_str(rest);
    }
    name
}

/// Parts of a prompt that were left out so that it fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    /// Messages left out, the oldest ones.
    pub messages: u32,
    /// Answers sent without their thinking.
    pub thinking: u32,
}

/// A change that was undone or redone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct Undone {
    /// Description of the change, such as `deleted “Title”`.
    pub label: String,
    /// Restored item, such as `“Title”`.
    pub restored: Option<String>,
    /// Chat that it concerns.
    pub chat: Option<ChatId>,
    /// Settings, if they have changed.
    pub settings: Option<Box<Settings>>,
}

/// Point from which the model read for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ReadFrom {
    /// First message that it was given; `None`: all were.
    pub message: Option<MessageId>,
    /// First message that it was given with its thinking; `None`: all were.
    pub thinking: Option<MessageId>,
    /// True if the user wants everything to be read again for the next answer.
    pub again: bool,
}

/// The model, for display.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ModelView {
    /// Status of the model that is open, or being opened.
    pub status: ModelStatus,
    /// Reason why the last requested model did not open. The status says whether another is open.
    pub error: Option<Failure>,
}

/// Status of the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(
    tag = "state",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum ModelStatus {
    /// There is none.
    None,
    /// The device is being checked before the model is opened.
    Checking {
        /// Name and file.
        model: UnopenedModel,
    },
    /// It is being opened.
    Loading {
        /// Name and file.
        model: UnopenedModel,
        /// Fraction done, 0 to 1.
        progress: f32,
    },
    /// It was unloaded, by the user or after an idle time. The next message reopens it.
    Ejected {
        /// Name and file.
        model: UnopenedModel,
    },
    /// It is open.
    Ready {
        /// The model.
        model: Box<ModelInfo>,
    },
}

impl ModelStatus {
    /// Returns the open model.
    pub fn ready(&self) -> Option<&ModelInfo> {
        match self {
            ModelStatus::Ready { model } => Some(model),
            _ => None,
        }
    }

    /// Returns whether a model is being opened.
    pub fn is_opening(&self) -> bool {
        matches!(
            self,
            ModelStatus::Checking { .. } | ModelStatus::Loading { .. }
        )
    }
}

/// Model that is not open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct UnopenedModel {
    /// Name derived from the file's.
    pub name: String,
    /// Path of the file, for display; `None` for the bundled model.
    pub file: Option<String>,
    /// True for the bundled model.
    pub bundled_model: bool,
}

/// Events of the chats. They come in order, from one thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum ChatEvent {
    /// The model's status changed.
    Model {
        /// The model.
        model: ModelView,
    },
    /// A chat was created or renamed, or its answer began or ended.
    ChatChanged {
        /// The chat.
        chat: ChatSummary,
    },
    /// Chats were pinned, archived, moved or restored, or such a change was undone.
    ChatsChanged {
        /// The chats.
        chats: Vec<ChatSummary>,
    },
    /// Chats were deleted.
    ChatsRemoved {
        /// The chats.
        chats: Vec<ChatId>,
    },
    /// The folders, their names or their order changed.
    FoldersChanged {
        /// All folders, in order.
        folders: Vec<Folder>,
    },
    /// An answer entered its next stage.
    Stage {
        /// The chat.
        chat: ChatId,
        /// The answer.
        message: MessageId,
        /// The step.
        stage: Stage,
    },
    /// An answer grew. Apply it only if `seq` follows the message's.
    Delta {
        /// The chat.
        chat: ChatId,
        /// The answer.
        message: MessageId,
        /// Counts from 1 each time an answer begins or is continued.
        seq: u32,
        /// Appended parts. The first one continues the last part of the message, if that is of the same kind.
        parts: Parts,
        /// Tokens generated so far.
        tokens: u32,
        /// Their rate.
        tokens_per_second: f32,
    },
    /// The calls of an answer changed, or it goes on after them.
    Called {
        /// The chat.
        chat: ChatId,
        /// The answer so far.
        message: Box<Message>,
    },
    /// The settings changed by another way than the window's.
    SettingsChanged {
        /// The settings.
        settings: Box<Settings>,
    },
    /// Tools were added, changed or removed.
    ToolsChanged,
    /// An answer ended, for whatever reason.
    Ended {
        /// The chat.
        chat: ChatId,
        /// The complete answer.
        message: Box<Message>,
    },
    /// Presets were added, changed or deleted.
    Presets {
        /// All of them.
        presets: Vec<Preset>,
    },
    /// The preset of a chat was chosen.
    PresetChosen {
        /// The chat; `None`: the next new one.
        chat: Option<ChatId>,
        /// Choice; `None`: the settings apply.
        preset: Option<ChatPreset>,
    },
    /// The daily copy of the database failed: the file is damaged, or the copy cannot be written.
    CopyFailed {
        /// Reason and remedy.
        error: Failure,
    },
}

/// Stages of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum Stage {
    /// Waits for the model to load, for another answer, or for the prompt to be rendered.
    Waiting,
    /// Prefills the prompt.
    #[serde(rename_all = "camelCase")]
    Reading {
        /// Tokens of the prompt that are in the cache.
        done: u32,
        /// Tokens of the prompt.
        total: u32,
        /// Tokens that were in the cache before, and cost no time now.
        cached: u32,
        /// Estimated seconds for the rest, once this model's rate is known.
        seconds_left: Option<u32>,
    },
    /// Generates the thinking.
    Thinking,
    /// Generates the answer.
    Writing,
    /// Generates a call of a tool.
    Calling,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_that_an_earlier_version_stored_are_read() {
        let stored = json!({
            "prompt_tokens": 101, "cached_tokens": 40, "tokens": 23, "thinking_tokens": 7, "first_token_ms": 1235,
            "tokens_per_second": 16.25, "read_per_second": 84.5, "seed": 77, "model": "m", "device": "d",
        });
        let read = AnswerStats::from_stored(stored);
        let expected = AnswerStats {
            figures: Stats {
                prompt_tokens: 101,
                cached_tokens: 40,
                tokens: 23,
                thinking_tokens: 7,
                thinking_cut: None,
                repeated: false,
                shared: false,
                first_token_ms: 1235.0,
                tokens_per_second: 16.25,
                read_per_second: 84.5,
                drafted_tokens: 0,
                accepted_tokens: 0,
                seed: 77,
            },
            model: "m".into(),
            device: "d".into(),
        };
        assert_eq!(read, Some(expected.clone()));
        let written = serde_json::to_value(&expected).expect("plain data");
        assert_eq!(AnswerStats::from_stored(written), Some(expected));
    }
}

//! What the window shows, and the events that keep it true.

use inference::{Role, Stats};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{ChatId, ChatPreset, Draft, FolderId, LengthWish, MessageId, MessageState};

use crate::failure::Failure;
use crate::model_host::ModelInfo;
use crate::preset::Preset;
use crate::settings::Settings;
use crate::text;

/// Everything the window needs to begin.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ChatSnapshot {
    /// Whether no chat was ever begun here.
    pub first_start: bool,
    /// All chats that are not deleted, temporary ones first, then the latest first.
    pub chats: Vec<ChatSummary>,
    /// The folders in the user's order.
    pub folders: Vec<Folder>,
    /// The chat that was open last.
    pub current: Option<ChatId>,
    /// The settings.
    pub settings: Settings,
    /// The model.
    pub model: ModelView,
    /// What was written, and not sent, where a new chat begins.
    pub new_chat_draft: Draft,
    /// All presets, in the order of their names.
    pub presets: Vec<Preset>,
    /// What was chosen for the next new chat; `None`: it begins with the preset of the settings.
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
    /// Whether an answer is being written, or waits to be.
    pub writing: bool,
    /// The chat of which it began with a summary, if it did.
    pub continues: Option<ChatId>,
    /// The folder in which it is.
    pub folder: Option<FolderId>,
    /// Whether it stands at the top of the list.
    pub pinned: bool,
    /// Whether the list leaves it out.
    pub archived: bool,
    /// Whether it is in memory alone. It has no title before its first message.
    pub temporary: bool,
    /// Unix seconds from which on it is removed for good; `None`: it is not deleted.
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
    /// Its name, which no other has.
    pub name: String,
    /// Whether the list hides what is in it.
    pub collapsed: bool,
}

/// An open chat.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ChatView {
    /// The chat.
    pub chat: ChatSummary,
    /// The message behind which `messages` begin: those up to it are as they were. `None`: the branch is whole.
    pub after: Option<MessageId>,
    /// The shown branch, root first.
    pub messages: Vec<Message>,
    /// What was written and not sent.
    pub draft: Draft,
    /// What it is answered with; `None`: what the settings say.
    pub preset: Option<ChatPreset>,
}

/// A message as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
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
    /// How long it was asked to be.
    pub length: Option<LengthWish>,
    /// How far it is.
    pub state: MessageState,
    /// What it took.
    pub stats: Option<AnswerStats>,
    /// Why it failed.
    pub error: Option<Failure>,
    /// What of the conversation the model was not given, when its context was too small for all of
    /// it.
    pub omitted: Option<Omitted>,
    /// Where the model began to read for it, where that was not at the start.
    pub read_from: Option<ReadFrom>,
    /// Unix seconds.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub created_at: i64,
    /// All messages that follow the same parent, oldest first, this one included.
    pub siblings: Vec<MessageId>,
    /// The number of the last [`ChatEvent::Delta`] that this text includes.
    pub seq: u32,
}

/// The figures of an answer, and what it was generated with.
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
    /// As they were stored; earlier versions stored snake case, and the first ones no drafts.
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

/// What was left out of a prompt, so that it fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    /// Messages left out, the oldest ones.
    pub messages: u32,
    /// Answers sent without their thinking.
    pub thinking: u32,
}

/// A change that was undone, or made again.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct Undone {
    /// What had been done, such as `deleted “Title”`.
    pub label: String,
    /// What had been removed and is there again, such as `“Title”`.
    pub restored: Option<String>,
    /// The chat that it concerns.
    pub chat: Option<ChatId>,
    /// The settings, where they have changed.
    pub settings: Option<Box<Settings>>,
}

/// Where the model began to read for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ReadFrom {
    /// The first message that it was given; `None`: all were.
    pub message: Option<MessageId>,
    /// The first message that it was given with its thinking; `None`: all were.
    pub thinking: Option<MessageId>,
    /// The user wants all to be read again for the next answer.
    pub again: bool,
}

/// The model as the window shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ModelView {
    /// The model that is open, or being opened.
    pub status: ModelStatus,
    /// Why the last model that was asked for did not open. The status says whether another goes on.
    pub error: Option<Failure>,
}

/// What the model is doing.
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
    /// It is to be opened, and the device on which it may go is checked.
    Checking {
        /// What is known of it.
        model: UnopenedModel,
    },
    /// It is being opened.
    Loading {
        /// What is known of it.
        model: UnopenedModel,
        /// The fraction done, 0 to 1.
        progress: f32,
    },
    /// It was unloaded, by the user or after a while without use. The next message opens it again.
    Ejected {
        /// What is known of it.
        model: UnopenedModel,
    },
    /// It is open.
    Ready {
        /// The model.
        model: Box<ModelInfo>,
    },
}

impl ModelStatus {
    /// The model that is open.
    pub fn ready(&self) -> Option<&ModelInfo> {
        match self {
            ModelStatus::Ready { model } => Some(model),
            _ => None,
        }
    }

    /// Whether a model is being opened.
    pub fn is_opening(&self) -> bool {
        matches!(
            self,
            ModelStatus::Checking { .. } | ModelStatus::Loading { .. }
        )
    }
}

/// What is known of a model before it is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct UnopenedModel {
    /// Its name, by its file's.
    pub name: String,
    /// The path of its file, to be shown; `None` for the demo model.
    pub file: Option<String>,
    /// Whether it is the demo model.
    pub demo_model: bool,
}

/// What happened. Events come in order, from one thread.
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
    /// A chat is new, has a new title, or began or ceased to write.
    ChatChanged {
        /// The chat.
        chat: ChatSummary,
    },
    /// Chats were pinned, archived, moved or restored, or the like was undone.
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
    /// An answer came a step further.
    Stage {
        /// The chat.
        chat: ChatId,
        /// The answer.
        message: MessageId,
        /// The step.
        stage: Stage,
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
        message: Box<Message>,
    },
    /// Presets were added, changed or deleted.
    Presets {
        /// All of them.
        presets: Vec<Preset>,
    },
    /// What a chat is answered with was chosen.
    PresetChosen {
        /// The chat; `None`: the next new one.
        chat: Option<ChatId>,
        /// What it is; `None`: what is usual.
        preset: Option<ChatPreset>,
    },
    /// The day's copy of the database was not made: the file is damaged, or it cannot be written.
    CopyFailed {
        /// Why, and what to do.
        error: Failure,
    },
}

/// The steps of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum Stage {
    /// For the model to load, for another answer, or for the prompt to be made.
    Waiting,
    /// The prompt.
    #[serde(rename_all = "camelCase")]
    Reading {
        /// Tokens of the prompt that are read.
        done: u32,
        /// Tokens of the prompt.
        total: u32,
        /// Tokens that were read before, and cost no time now.
        cached: u32,
        /// Seconds that the rest takes, once it is known how fast this model reads.
        seconds_left: Option<u32>,
    },
    /// Before the answer.
    Thinking,
    /// The answer.
    Writing,
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

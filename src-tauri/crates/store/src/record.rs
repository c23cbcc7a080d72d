//! Chats as they leave a database and come into one: with all messages, and without the ids of that database.

use inference::Role;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::table::message::{ErrorRow, LengthWish, MessageState};

/// A chat, without its messages. A column of the table that is not here is lost in an export: `tests/store/records.rs`
/// compares them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatRecord {
    /// What names it in every database.
    pub uid: String,
    /// Its title.
    pub title: String,
    /// The ISO date that the model sees in it.
    pub today: String,
    /// Unix seconds.
    pub created_at: i64,
    /// Unix seconds of the last message.
    pub updated_at: i64,
    /// The last message of the shown branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<u32>,
    /// The name of the folder in which it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Unix seconds; `None`: it is not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_at: Option<i64>,
    /// Unix seconds; `None`: it is not archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<i64>,
    /// The uid of the chat that it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// What was chosen for it; `None`: nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_preset: Option<ChosenPreset>,
}

/// A folder, which its name names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FolderRecord {
    /// Its name.
    pub name: String,
    /// Whether the list hides what is in it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub collapsed: bool,
    /// Unix seconds.
    pub created_at: i64,
}

/// A preset, which its name names.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PresetRecord {
    /// Its name.
    pub name: String,
    /// Its instructions; empty: it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// Whether answers are thought about; `None`: as the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// How tokens are chosen, as it is stored.
    pub sampling: Box<RawValue>,
}

/// What was chosen for a chat to be answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChosenPreset {
    /// The name of a preset; `None`: what the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Instructions of its own; empty: it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
}

/// A message. Others are named by their place in the chat, which counts from 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageRecord {
    /// Its place.
    pub id: u32,
    /// The message that it follows, which has an earlier place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// Which message that follows it was shown last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<u32>,
    /// Who wrote it.
    pub role: Role,
    /// Its state. One that is being written leaves as [`MessageState::Interrupted`].
    pub state: MessageState,
    /// Its text.
    pub text: String,
    /// Whether it was asked to think.
    #[serde(default, skip_serializing_if = "is_false")]
    pub thinks: bool,
    /// How long it was asked to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_wish: Option<LengthWish>,
    /// The thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// How long it thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_ms: Option<u32>,
    /// The ids generated, in files of earlier versions. They are passed over: the model would read them in place of the
    /// text that the user sees.
    #[serde(default, skip_serializing)]
    pub tokens: IgnoredAny,
    /// The fingerprint of the model that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Statistics, as they are stored: a number that is read and written may change in its last digit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Box<RawValue>>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRow>,
    /// The first message that its prompt had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<u32>,
    /// The first message whose thinking its prompt had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_from: Option<u32>,
    /// Messages that its prompt left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted_messages: u32,
    /// Answers that its prompt had without their thinking.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted_thinking: u32,
    /// Of a question: the message of another chat up to which its answers are given from that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_leaf: Option<MessagePlace>,
    /// Whether what its prompt left out is read again for the next answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_again: bool,
    /// Unix seconds.
    pub created_at: i64,
}

/// A message of another chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessagePlace {
    /// The uid of its chat.
    pub chat: String,
    /// Its place there.
    pub message: u32,
}

impl ChatRecord {
    /// A chat in no folder.
    #[must_use]
    pub fn new(
        uid: String,
        title: String,
        today: String,
        at: i64,
        leaf: Option<u32>,
    ) -> ChatRecord {
        ChatRecord {
            uid,
            title,
            today,
            created_at: at,
            updated_at: at,
            leaf,
            folder: None,
            pinned_at: None,
            archived_at: None,
            continues: None,
            chosen_preset: None,
        }
    }
}

impl MessageRecord {
    /// A whole message that follows the one before it.
    #[must_use]
    pub fn new(id: u32, role: Role, text: String, created_at: i64) -> MessageRecord {
        MessageRecord {
            id,
            parent: id.checked_sub(1).filter(|parent| *parent > 0),
            shown: None,
            role,
            state: MessageState::Done,
            text,
            thinks: false,
            length_wish: None,
            thinking: None,
            thinking_ms: None,
            tokens: IgnoredAny,
            model: None,
            stats: None,
            error: None,
            kept_from: None,
            thinking_from: None,
            omitted_messages: 0,
            omitted_thinking: 0,
            prompt_leaf: None,
            read_again: false,
            created_at,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// A chat with all its messages.
#[derive(Debug, Clone)]
pub struct WholeChat {
    /// The chat.
    pub chat: ChatRecord,
    /// Its messages by place.
    pub messages: Vec<MessageRecord>,
}

/// The uid of a later state of a chat, which is imported beside the earlier one.
#[must_use]
pub fn later_uid(uid: &str, number: usize) -> String {
    format!("{uid}#{number}")
}

impl WholeChat {
    /// The first thing that is wrong with the places that messages name, if any.
    pub fn fault(&self) -> Option<String> {
        let count = u32::try_from(self.messages.len()).unwrap_or(u32::MAX);
        let is_there = |place: Option<u32>| place.is_none_or(|place| (1..=count).contains(&place));
        if !is_there(self.chat.leaf) {
            return Some("the last message of its shown branch is not there".to_owned());
        }
        for (place, message) in (1_u32..).zip(&self.messages) {
            let is_before =
                |other: Option<u32>| other.is_none_or(|other| (1..place).contains(&other));
            if message.id != place {
                return Some(format!("message {place} has the id {}", message.id));
            }
            if !is_before(message.parent)
                || !is_before(message.kept_from)
                || !is_before(message.thinking_from)
            {
                return Some(format!("message {place} names one that is not before it"));
            }
            let follows = |shown: u32| {
                let shown = self.messages.get(shown as usize - 1);
                shown.is_some_and(|shown| shown.parent == Some(place))
            };
            if !is_there(message.shown) || !message.shown.is_none_or(follows) {
                return Some(format!("message {place} names one that does not follow it"));
            }
            if !matches!(message.role, Role::User | Role::Assistant) {
                return Some(format!("message {place} is by “{}”", message.role.name()));
            }
        }
        None
    }
}

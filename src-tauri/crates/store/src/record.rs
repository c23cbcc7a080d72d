//! Chats in the form in which they are exported and imported: with all messages except deleted ones, and without the ids
//! of a database.

use inference::{Parts, Role};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::table::message::{ErrorRow, LengthWish, MessageState};

/// A chat, without its messages. A column of the table that is missing here is lost in an export:
/// `tests/store/records.rs` compares them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatRecord {
    /// Id that is unique across databases.
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
    /// Name of its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Unix seconds; `None` if it is not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_at: Option<i64>,
    /// Unix seconds; `None` if it is not archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<i64>,
    /// Uid of the chat that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// Chosen preset; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_preset: Option<ChosenPreset>,
}

/// A folder, identified by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FolderRecord {
    /// Its name.
    pub name: String,
    /// True if the list hides its chats.
    #[serde(default, skip_serializing_if = "is_false")]
    pub collapsed: bool,
    /// Unix seconds.
    pub created_at: i64,
}

/// A preset, identified by its name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PresetRecord {
    /// Its name.
    pub name: String,
    /// Its instructions; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// Thinking of answers; `None`: the settings apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// Sampling parameters, as they are stored.
    pub sampling: Box<RawValue>,
    /// Names of the tools that are on; `None`: the settings apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// Preset and instructions of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChosenPreset {
    /// Name of a preset; `None`: the settings apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Its own instructions; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// Names of the tools that are on; `None`: the settings apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// A message. Others are referred to by their position in the chat, from 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageRecord {
    /// Its position.
    pub id: u32,
    /// Position of its parent, which is earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// Child that was shown last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<u32>,
    /// Its author.
    pub role: Role,
    /// Its state. A message in progress is exported as [`MessageState::Interrupted`].
    pub state: MessageState,
    /// Its parts. In a file they are a text, and thinking if there is some, or else a list.
    #[serde(flatten, with = "content")]
    pub parts: Parts,
    /// True if thinking was requested.
    #[serde(default, skip_serializing_if = "is_false")]
    pub thinks: bool,
    /// Requested length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_wish: Option<LengthWish>,
    /// Milliseconds of thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_ms: Option<u32>,
    /// Generated ids, in files of earlier versions. They are ignored: the model would read them in place of the text
    /// that the user sees.
    #[serde(default, skip_serializing)]
    pub tokens: IgnoredAny,
    /// Fingerprint of its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Id of the guide's topic that the text is taken from, if no model wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide: Option<String>,
    /// Statistics in their stored form: a number may change in its last digit when it is read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Box<RawValue>>,
    /// Reason for a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRow>,
    /// First message in its prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<u32>,
    /// First message whose thinking was in its prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_from: Option<u32>,
    /// Messages that its prompt left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted_messages: u32,
    /// Answers that its prompt had without their thinking.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted_thinking: u32,
    /// Leaf of the source branch in another chat, if it is a question whose answers are given from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_leaf: Option<MessagePlace>,
    /// True if the next answer reads the parts that its prompt left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_again: bool,
    /// Unix seconds.
    pub created_at: i64,
}

/// A message of another chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessagePlace {
    /// Uid of its chat.
    pub chat: String,
    /// Its position there.
    pub message: u32,
}

impl ChatRecord {
    /// Makes a chat in no folder.
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
    /// Makes a complete message that follows the one before it.
    #[must_use]
    pub fn new(id: u32, role: Role, text: String, created_at: i64) -> MessageRecord {
        MessageRecord {
            id,
            parent: id.checked_sub(1).filter(|parent| *parent > 0),
            shown: None,
            role,
            state: MessageState::Done,
            parts: Parts::of_text(text),
            thinks: false,
            length_wish: None,
            thinking_ms: None,
            tokens: IgnoredAny,
            model: None,
            guide: None,
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

mod content {
    use std::borrow::Cow;

    use inference::{Part, Parts};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// The parts of a message in a file. Earlier versions know no list.
    #[derive(Serialize, Deserialize)]
    struct RecordContent<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thinking: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parts: Option<Cow<'a, Parts>>,
    }

    pub fn serialize<S: Serializer>(parts: &Parts, to: S) -> Result<S::Ok, S::Error> {
        let (thinking, text) = match &parts.0[..] {
            [] => (None, ""),
            [Part::Text { text }] => (None, &**text),
            [Part::Thinking { text }] => (Some(text), ""),
            [Part::Thinking { text: thinking }, Part::Text { text }] => (Some(thinking), &**text),
            _ => {
                let content = RecordContent {
                    text: None,
                    thinking: None,
                    parts: Some(Cow::Borrowed(parts)),
                };
                return content.serialize(to);
            }
        };
        let content = RecordContent {
            text: Some(Cow::Borrowed(text)),
            thinking: thinking.map(|text| Cow::Borrowed(&**text)),
            parts: None,
        };
        content.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Parts, D::Error> {
        match RecordContent::deserialize(from)? {
            RecordContent {
                text: None,
                thinking: None,
                parts: Some(parts),
            } => Ok(parts.into_owned()),
            RecordContent {
                text: Some(text),
                thinking,
                parts: None,
            } => Ok(Parts::of_answer(
                thinking.map(Cow::into_owned),
                text.into_owned(),
            )),
            _ => Err(Error::custom("a message has either a text or parts")),
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
    /// Its messages by position.
    pub messages: Vec<MessageRecord>,
}

/// Returns the uid of a later state of a chat, which is imported beside the earlier one.
#[must_use]
pub fn later_uid(uid: &str, number: usize) -> String {
    format!("{uid}#{number}")
}

impl WholeChat {
    /// Returns the first invalid reference among the messages, if any.
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
        }
        None
    }
}

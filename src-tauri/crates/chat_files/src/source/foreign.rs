//! JSON of other programs: a chat, or a list of them. Which program it was is seen from the keys.

use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer,
};

use super::chatgpt::Mapping;
use super::claude::ClaudeMessage;
use super::draft::About;
use super::lm_studio::VersionedTurn;
use super::moment::{Moment, seconds};
use super::{Source, chatgpt, claude, lm_studio};
use crate::file_reading::FileReading;
use crate::read_error::ReadError;

/// A chat of any of them. What is not read is not kept.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ForeignChat {
    // ChatGPT
    pub mapping: Option<Mapping>,
    pub current_node: Option<String>,
    pub title: Option<String>,
    pub create_time: Option<f64>,
    pub update_time: Option<f64>,
    pub conversation_id: Option<String>,
    pub id: Option<String>,
    // Claude
    pub chat_messages: Option<Vec<ClaudeMessage>>,
    pub uuid: Option<String>,
    pub created_at: Option<Moment>,
    pub updated_at: Option<Moment>,
    pub current_leaf_message_uuid: Option<String>,
    // Claude and LM Studio
    pub name: Option<String>,
    // LM Studio
    pub messages: Option<Vec<VersionedTurn>>,
    #[serde(rename = "createdAt")]
    pub created_ms: Option<f64>,
}

pub(crate) fn read(
    name: &str,
    input: impl BufRead,
    reading: &mut FileReading<'_>,
) -> Result<(), ReadError> {
    let mut json = serde_json::Deserializer::from_reader(input);
    let mut found = ChatVisitor {
        name,
        reading,
        known: 0,
        error: None,
    };
    let read = json.deserialize_any(&mut found);
    let (known, error) = (found.known, found.error.take());
    if let Some(error) = error {
        return Err(error);
    }
    let read = read.and_then(|()| json.end());
    let error = read.as_ref().err();
    if known == 0 && error.is_none_or(|error| error.is_data() || error.is_syntax()) {
        return Err(ReadError::Unknown {
            file: name.to_owned(),
        });
    }
    read.map_err(|error| ReadError::json(name, error))
}

/// Takes the chats of a file one at a time.
struct ChatVisitor<'a, 'r> {
    name: &'a str,
    reading: &'a mut FileReading<'r>,
    /// Chats of a program that is known.
    known: usize,
    /// Why it ended; serde's own error only stops the reading.
    error: Option<ReadError>,
}

impl ChatVisitor<'_, '_> {
    fn take(&mut self, chat: ForeignChat) -> Result<(), ReadError> {
        let zone = self.reading.zone;
        let (source, whole) = match chat {
            ForeignChat {
                mapping: Some(mapping),
                ..
            } => {
                let id = chat.conversation_id.or(chat.id);
                let about = About::of(
                    Source::ChatGpt,
                    id,
                    chat.title,
                    chat.create_time.and_then(seconds),
                    chat.update_time.and_then(seconds),
                );
                let current = chat.current_node.as_deref();
                (
                    Source::ChatGpt,
                    chatgpt::chat(mapping, current, about, zone),
                )
            }
            ForeignChat {
                chat_messages: Some(messages),
                ..
            } => {
                let about = About::of(
                    Source::Claude,
                    chat.uuid,
                    chat.name,
                    chat.created_at.as_ref().and_then(Moment::seconds),
                    chat.updated_at.as_ref().and_then(Moment::seconds),
                );
                let leaf = chat.current_leaf_message_uuid.as_deref();
                (Source::Claude, claude::chat(messages, leaf, about, zone))
            }
            ForeignChat {
                messages: Some(messages),
                ..
            } => {
                // Its files are named after that moment.
                let id = chat.created_ms.map(|moment| moment.to_string());
                let created_at = chat.created_ms.and_then(seconds);
                let about = About::of(Source::LmStudio, id, chat.name, created_at, None);
                (Source::LmStudio, lm_studio::chat(messages, about, zone))
            }
            _ if self.known > 0 => return Ok(()),
            _ => {
                return Err(ReadError::Unknown {
                    file: self.name.to_owned(),
                });
            }
        };
        self.known += 1;
        self.reading.foreign(source, whole)
    }

    fn take_or_stop<E: serde::de::Error>(&mut self, chat: ForeignChat) -> Result<(), E> {
        self.take(chat).map_err(|error| {
            self.error = Some(error);
            E::custom("stopped")
        })
    }
}

impl<'de> Visitor<'de> for &mut ChatVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a chat, or a list of chats")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let chat = ForeignChat::deserialize(MapAccessDeserializer::new(map))?;
        self.take_or_stop(chat)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(&mut *self)?.is_some() {}
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for &mut ChatVisitor<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let chat = ForeignChat::deserialize(deserializer)?;
        self.take_or_stop(chat)
    }
}

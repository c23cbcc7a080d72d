//! JSON of other programs: a chat, a list of them, or several of either behind one another. Which program it was is seen from
//! the keys.

use std::fmt;
use std::io::BufRead;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::draft::{ForeignChat, Outcome};
use super::value::{Budget, ForeignValue, ValueSeed};
use super::{Source, chatgpt, claude, lm_studio, openai};
use crate::file_reading::{FileReading, Omissions};
use crate::read_error::ReadError;

/// Values that are looked at before a file is taken for one of no known program.
const UNKNOWN_VALUES: usize = 1000;

pub(crate) fn read(
    name: &str,
    input: impl BufRead,
    reading: &mut FileReading<'_>,
) -> Result<(), ReadError> {
    let mut json = serde_json::Deserializer::from_reader(input);
    let mut found = ChatVisitor {
        name,
        reading,
        chats: 0,
        values: 0,
        unread: Omissions::default(),
        error: None,
    };
    let read = loop {
        match json.end() {
            Ok(()) => break Ok(()),
            Err(error) if error.is_io() => break Err(error),
            // There is more.
            Err(_) => {}
        }
        if let Err(error) = json.deserialize_any(&mut found) {
            break Err(error);
        }
    };
    if let Some(error) = found.error.take() {
        return Err(error);
    }
    let (chats, values, unread) = (found.chats, found.values, found.unread);
    let file = name.to_owned();
    match read {
        Err(error) if error.is_io() || error.is_eof() || chats > 0 => {
            Err(ReadError::json(name, error))
        }
        Err(_) => Err(ReadError::Unknown { file }),
        Ok(()) if values == 0 => Err(ReadError::Empty { file }),
        Ok(()) if chats == 0 => Err(ReadError::Unknown { file }),
        Ok(()) => {
            reading.tally.unread_chats.append(unread);
            Ok(())
        }
    }
}

/// Takes the chats of a file one at a time.
struct ChatVisitor<'a, 'r> {
    name: &'a str,
    reading: &'a mut FileReading<'r>,
    /// Chats of a program that is known.
    chats: usize,
    /// Values that should be chats.
    values: usize,
    /// Those that are none.
    unread: Omissions,
    /// Why it ended; serde's own error only stops the reading.
    error: Option<ReadError>,
}

impl ChatVisitor<'_, '_> {
    fn take<E: Error>(&mut self, chat: &ForeignValue, budget: &Budget) -> Result<(), E> {
        self.values += 1;
        let taken = match self.read(chat) {
            Some((source, mut read)) => {
                self.chats += 1;
                if budget.is_spent() {
                    read.outcome = Outcome::TooLarge;
                }
                self.reading.foreign(source, read)
            }
            None => self.pass_over(),
        };
        taken.map_err(|error| {
            self.error = Some(error);
            E::custom("stopped")
        })
    }

    fn read(&self, chat: &ForeignValue) -> Option<(Source, ForeignChat)> {
        let zone = self.reading.zone;
        if chatgpt::is_chat(chat) {
            Some((Source::ChatGpt, chatgpt::chat(chat, zone)))
        } else if claude::is_chat(chat) {
            Some((Source::Claude, claude::chat(chat, zone)))
        } else if !chat.has("messages") {
            None
        } else if lm_studio::is_chat(chat) {
            Some((Source::LmStudio, lm_studio::chat(chat, zone)))
        } else {
            Some((Source::OpenAi, openai::chat(chat, zone)))
        }
    }

    /// A value that is no chat of a known program.
    fn pass_over(&mut self) -> Result<(), ReadError> {
        self.reading.counter.begin_chat();
        let place = format!("number {} in {}", figures::count(self.values), self.name);
        self.unread.add(1, place);
        if self.chats == 0 && self.values >= UNKNOWN_VALUES {
            let file = self.name.to_owned();
            return Err(ReadError::Unknown { file });
        }
        Ok(())
    }

    fn take_other<E: Error>(&mut self) -> Result<(), E> {
        self.take(&ForeignValue::Null, &Budget::default())
    }
}

impl<'de> Visitor<'de> for &mut ChatVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a chat, or a list of chats")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let budget = Budget::default();
        let chat = ValueSeed::new(&budget).deserialize(MapAccessDeserializer::new(map))?;
        self.take(&chat, &budget)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(&mut *self)?.is_some() {}
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.take_other()
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.take_other()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.take_other()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.take_other()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.take_other()
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.take_other()
    }
}

impl<'de> DeserializeSeed<'de> for &mut ChatVisitor<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let budget = Budget::default();
        let chat = ValueSeed::new(&budget).deserialize(deserializer)?;
        self.take(&chat, &budget)
    }
}

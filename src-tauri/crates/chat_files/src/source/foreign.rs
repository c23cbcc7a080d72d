//! JSON of other programs: a chat, a list of them, or several of either behind one another. The keys tell the program.

use std::io::BufRead;

use serde::de::DeserializeSeed;

use super::draft::{ForeignChat, Outcome};
use super::elements::{Elements, NextElement, Position};
use super::value::{Budget, ForeignValue, ValueSeed};
use super::{Source, chatgpt, claude, lm_studio, openai};
use crate::file_reading::{FileReading, Omissions};
use crate::input::Refusal;
use crate::read_error::ReadError;

/// Values that are tried before a file counts as unknown.
const UNKNOWN_VALUES: usize = 1000;

/// Reads the chats of a file. A value that cannot be parsed is skipped if its end is found; otherwise the rest of the
/// file is skipped.
pub(crate) fn read(
    name: &str,
    input: impl BufRead,
    reading: &mut FileReading<'_>,
) -> Result<(), ReadError> {
    let mut elements = Elements::new(input);
    let mut found = FoundChats {
        name,
        reading,
        chats: 0,
        values: 0,
        unread: Omissions::default(),
    };
    let file = || name.to_owned();
    let failed = |error| ReadError::input(name, &error);
    let mut damage: Option<Position> = None;
    let lost = loop {
        match elements.next().map_err(failed)? {
            NextElement::Value => {}
            NextElement::Stray => continue,
            NextElement::End => break None,
            NextElement::CutOff if damage.is_none() => {
                return Err(ReadError::CutOff { file: file() });
            }
            NextElement::CutOff => break damage,
        }
        let budget = Budget::default();
        let error = match parse(&mut elements, &budget) {
            Ok(chat) => {
                found.take(&chat, &budget)?;
                continue;
            }
            Err(error) if error.is_io() => return Err(ReadError::json(name, error)),
            Err(error) => error,
        };
        if error.is_eof() && damage.is_none() && elements.is_at_end().map_err(failed)? {
            return Err(ReadError::CutOff { file: file() });
        }
        let place = elements.position();
        damage.get_or_insert(place);
        match elements.skip() {
            Ok(true) => found.leave_out()?,
            Ok(false) => break Some(place),
            Err(error) => match Refusal::of(&error) {
                Some(Refusal::ChatTooLarge) => break Some(place),
                _ => return Err(failed(error)),
            },
        }
    };
    let FoundChats {
        chats,
        values,
        unread,
        ..
    } = found;
    if chats > 0 {
        reading.tally.unread_chats.append(unread);
        if let Some(place) = lost {
            let place = format!("{name} after {place}");
            reading.tally.damaged_files.add(1, place);
        }
        return Ok(());
    }
    if values == 0 && damage.is_none() {
        return Err(ReadError::Empty { file: file() });
    }
    Err(ReadError::Unknown { file: file() })
}

fn parse(
    elements: &mut Elements<impl BufRead>,
    budget: &Budget,
) -> Result<ForeignValue, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_reader(elements.value());
    let value = ValueSeed::new(budget).deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

/// The chats found in a file so far.
struct FoundChats<'a, 'r> {
    name: &'a str,
    reading: &'a mut FileReading<'r>,
    /// Chats of a known program.
    chats: usize,
    /// Values that should be chats.
    values: usize,
    /// Values that are not chats.
    unread: Omissions,
}

impl FoundChats<'_, '_> {
    fn take(&mut self, chat: &ForeignValue, budget: &Budget) -> Result<(), ReadError> {
        let Some((source, mut read)) = self.read(chat) else {
            return self.leave_out();
        };
        self.values += 1;
        self.chats += 1;
        if budget.is_spent() {
            read.outcome = Outcome::TooLarge;
        }
        self.reading.foreign(source, read)
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

    /// Counts a value that is not a chat of a known program, or cannot be parsed.
    fn leave_out(&mut self) -> Result<(), ReadError> {
        self.values += 1;
        self.reading.counter.begin_chat();
        let place = format!("number {} in {}", figures::count(self.values), self.name);
        self.unread.add(1, place);
        if self.chats == 0 && self.values >= UNKNOWN_VALUES {
            let file = self.name.to_owned();
            return Err(ReadError::Unknown { file });
        }
        Ok(())
    }
}

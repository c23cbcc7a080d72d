//! What is being read, and who hears of it.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use store::{FolderRecord, PresetRecord, WholeChat};

use crate::input::Counter;
use crate::limits::cut_long_texts;
use crate::options::OnProgress;
use crate::read_error::ReadError;
use crate::source::Source;

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// The programs that exported it.
    pub sources: Vec<Source>,
    /// Chats without a message, which are left out.
    pub empty: usize,
    /// Texts that were longer than a message can be, and were cut.
    pub cut: usize,
}

/// What is in a file.
pub enum Item {
    /// A folder in which chats are.
    Folder(FolderRecord),
    /// A preset with which chats are answered.
    Preset(PresetRecord),
    /// A chat.
    Chat(WholeChat),
}

/// What is being read, and who hears of it.
pub(crate) struct FileReading<'a> {
    pub zone: &'a TimeZone,
    pub counter: Counter,
    pub total: u64,
    pub tally: Tally,
    pub progress: &'a mut OnProgress<'a>,
    pub each: &'a mut dyn FnMut(Item) -> bool,
}

impl FileReading<'_> {
    /// Hands a chat on.
    pub fn chat(&mut self, mut whole: WholeChat) -> Result<(), ReadError> {
        self.counter.begin_chat();
        self.tally.cut += cut_long_texts(&mut whole);
        let goes_on = (self.progress)(self.counter.read().min(self.total), self.total);
        if goes_on && (self.each)(Item::Chat(whole)) {
            Ok(())
        } else {
            Err(ReadError::Stopped)
        }
    }

    /// Hands something else on.
    pub fn item(&mut self, item: Item) -> Result<(), ReadError> {
        if (self.each)(item) {
            Ok(())
        } else {
            Err(ReadError::Stopped)
        }
    }

    /// A chat of another program; `None`: it has no messages.
    pub fn foreign(&mut self, source: Source, whole: Option<WholeChat>) -> Result<(), ReadError> {
        self.source(source);
        match whole {
            Some(whole) => self.chat(whole),
            None => {
                self.tally.empty += 1;
                Ok(())
            }
        }
    }

    pub fn source(&mut self, source: Source) {
        if !self.tally.sources.contains(&source) {
            self.tally.sources.push(source);
        }
    }
}

//! What is being read, and who hears of it.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use store::{FolderRecord, PresetRecord, WholeChat};

use crate::input::Counter;
use crate::limits::{cut_long_texts, shortened, title};
use crate::read_error::ReadError;
use crate::source::Source;
use crate::source::draft::{ForeignChat, Outcome};

/// Names that a report gives of what was left out.
const MOST_NAMES: usize = 5;
/// Characters of such a name.
const LONGEST_NAME: usize = 60;

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
    /// Messages that could not be read, by their chats.
    pub unread_messages: Omissions,
    /// Chats that could not be read.
    pub unread_chats: Omissions,
    /// Chats with more messages or more text than a chat can have.
    pub large_chats: Omissions,
    /// Files of a folder or an archive that have no chats of a known program.
    pub unknown_files: Omissions,
    /// Files of which the rest is damaged, each with the place.
    pub damaged_files: Omissions,
    /// Sequences of bytes that are no UTF-8 and became U+FFFD, by their files.
    pub replaced: Omissions,
}

/// Items that an import leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Omissions {
    /// How much that is.
    pub count: usize,
    /// Where it was, or what: the first few, as a sentence names them.
    pub names: Vec<String>,
    /// How many more names there would be.
    pub others: usize,
}

impl Omissions {
    /// Adds what a title names.
    pub(crate) fn add_titled(&mut self, count: usize, of: &str) {
        let of = title(of);
        let name = if of.is_empty() {
            "a chat without a title".to_owned()
        } else {
            format!("“{}”", shortened(&of, LONGEST_NAME))
        };
        self.add(count, name);
    }

    /// Adds what a file, or a place in one, names.
    pub(crate) fn add(&mut self, count: usize, name: String) {
        self.count += count;
        if self.names.len() < MOST_NAMES {
            self.names.push(name);
        } else {
            self.others += 1;
        }
    }

    /// Adds what another one has.
    pub(crate) fn append(&mut self, other: Omissions) {
        self.count += other.count;
        let names = other.names.len();
        let room = MOST_NAMES.saturating_sub(self.names.len()).min(names);
        self.names.extend(other.names.into_iter().take(room));
        self.others += other.others + names - room;
    }
}

/// What is in a file.
pub enum Item {
    /// A file begins, or a folder of files: its name.
    File(String),
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
    pub counter: Counter<'a>,
    pub tally: Tally,
    pub each: &'a mut dyn FnMut(Item) -> bool,
}

impl FileReading<'_> {
    /// Hands a chat on.
    pub fn chat(&mut self, mut whole: WholeChat) -> Result<(), ReadError> {
        self.counter.begin_chat();
        self.tally.cut += cut_long_texts(&mut whole);
        if self.counter.goes_on() && (self.each)(Item::Chat(whole)) {
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

    /// Hands on a chat of another program, or counts why it is left out.
    pub fn foreign(&mut self, source: Source, chat: ForeignChat) -> Result<(), ReadError> {
        self.source(source);
        self.counter.begin_chat();
        let ForeignChat { title, unread, .. } = chat;
        let tally = &mut self.tally;
        match chat.outcome {
            Outcome::Whole(whole) => {
                if unread > 0 {
                    tally.unread_messages.add_titled(unread, &title);
                }
                return self.chat(*whole);
            }
            Outcome::TooLarge => tally.large_chats.add_titled(1, &title),
            Outcome::Empty if unread > 0 => tally.unread_chats.add_titled(1, &title),
            Outcome::Empty => tally.empty += 1,
        }
        Ok(())
    }

    /// Counts what became U+FFFD of a file.
    pub fn replaced(&mut self, count: usize, file: &str) {
        if count > 0 {
            self.tally.replaced.add(count, file.to_owned());
        }
    }

    pub fn source(&mut self, source: Source) {
        if !self.tally.sources.contains(&source) {
            self.tally.sources.push(source);
        }
    }
}

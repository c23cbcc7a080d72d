//! The result of reading files, and the context of a read in progress.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use store::{FolderRecord, PresetRecord, WholeChat};

use crate::input::Counter;
use crate::limits::{cut_long_texts, shortened, title};
use crate::read_error::ReadError;
use crate::source::Source;
use crate::source::draft::{ForeignChat, Outcome};

/// Maximum number of names in a report of omissions.
const MOST_NAMES: usize = 5;
/// Maximum length of such a name, in characters.
const LONGEST_NAME: usize = 60;

/// Result of a read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// The programs that exported it.
    pub sources: Vec<Source>,
    /// Chats without a message, which are skipped.
    pub empty: usize,
    /// Texts that were longer than a message can be, and were truncated.
    pub cut: usize,
    /// Messages that could not be read, by their chats.
    pub unread_messages: Omissions,
    /// Chats that could not be read.
    pub unread_chats: Omissions,
    /// Chats with more messages or more text than a chat can have.
    pub large_chats: Omissions,
    /// Files of a folder or an archive that have no chats of a known program.
    pub unknown_files: Omissions,
    /// Files with a damaged rest, each with its position.
    pub damaged_files: Omissions,
    /// Invalid UTF-8 sequences that became U+FFFD, by their files.
    pub replaced: Omissions,
}

/// Items that an import skips.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Omissions {
    /// Number of items.
    pub count: usize,
    /// Their places or titles: the first few, as a sentence names them.
    pub names: Vec<String>,
    /// Number of further names.
    pub others: usize,
}

impl Omissions {
    /// Adds items under a title.
    pub(crate) fn add_titled(&mut self, count: usize, of: &str) {
        let of = title(of);
        let name = if of.is_empty() {
            "a chat without a title".to_owned()
        } else {
            format!("“{}”", shortened(&of, LONGEST_NAME))
        };
        self.add(count, name);
    }

    /// Adds items under a file, or a place in one.
    pub(crate) fn add(&mut self, count: usize, name: String) {
        self.count += count;
        if self.names.len() < MOST_NAMES {
            self.names.push(name);
        } else {
            self.others += 1;
        }
    }

    /// Adds the omissions of another list.
    pub(crate) fn append(&mut self, other: Omissions) {
        self.count += other.count;
        let names = other.names.len();
        let room = MOST_NAMES.saturating_sub(self.names.len()).min(names);
        self.names.extend(other.names.into_iter().take(room));
        self.others += other.others + names - room;
    }
}

/// An item of a file.
pub enum Item {
    /// Start of a file or of a folder of files: its name.
    File(String),
    /// A folder for chats.
    Folder(FolderRecord),
    /// A preset for chats.
    Preset(PresetRecord),
    /// A chat.
    Chat(WholeChat),
}

/// A read in progress: its counters, its result, and the receiver of its items.
pub(crate) struct FileReading<'a> {
    pub zone: &'a TimeZone,
    pub counter: Counter<'a>,
    pub tally: Tally,
    pub each: &'a mut dyn FnMut(Item) -> bool,
}

impl FileReading<'_> {
    /// Passes a chat on.
    pub fn chat(&mut self, mut whole: WholeChat) -> Result<(), ReadError> {
        self.counter.begin_chat();
        self.tally.cut += cut_long_texts(&mut whole);
        if self.counter.goes_on() && (self.each)(Item::Chat(whole)) {
            Ok(())
        } else {
            Err(ReadError::Stopped)
        }
    }

    /// Passes another item on.
    pub fn item(&mut self, item: Item) -> Result<(), ReadError> {
        if (self.each)(item) {
            Ok(())
        } else {
            Err(ReadError::Stopped)
        }
    }

    /// Passes on a chat of another program, or counts the reason that it is skipped.
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

    /// Counts the sequences of a file that became U+FFFD.
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

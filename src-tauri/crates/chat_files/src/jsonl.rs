//! Our own format. The first line names it; the folders and presets follow. A chat is a line, each of its messages is a
//! line behind it, and the last line counts both, so that truncation is detected. A file may contain several exports,
//! one behind the other.
//!
//! An unknown key is an error: ignoring it would lose data.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use store::{ChatRecord, FolderRecord, MessageRecord, PresetRecord, WholeChat};

use crate::file_reading::{FileReading, Item, Omissions};
use crate::limits::{CHAT_LINES, CHAT_MESSAGES};
use crate::read_error::{ReadError, without_place};

/// The name in the first line.
pub(crate) const NAME: &str = "goldcrest-chats";
/// Raised by a change that older versions cannot read.
const VERSION: u32 = 3;
/// Maximum bytes of a line: a message has 4 MB at most, and its tokens.
const LONGEST_LINE: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
struct FileHeader {
    format: String,
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Line {
    Folder(FolderRecord),
    Preset(PresetRecord),
    Chat(ChatRecord),
    Message(MessageRecord),
    End(LineCounts),
}

#[derive(Default, PartialEq, Eq, Serialize, Deserialize)]
struct LineCounts {
    chats: u64,
    messages: u64,
}

/// The lines of a chat's messages.
#[derive(Default)]
struct ChatLines {
    messages: usize,
    bytes: usize,
}

impl ChatLines {
    fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes;
    }

    /// Returns true if the chat is too large to be read again.
    fn are_too_many(&self) -> bool {
        self.bytes > CHAT_LINES || self.messages > CHAT_MESSAGES
    }
}

/// An export in progress.
#[derive(Default)]
pub(crate) struct Lines {
    counts: LineCounts,
    too_large: Omissions,
}

impl Lines {
    pub fn begin(
        out: &mut dyn Write,
        folders: Vec<FolderRecord>,
        presets: Vec<PresetRecord>,
    ) -> io::Result<Lines> {
        let header = FileHeader {
            format: NAME.to_owned(),
            version: VERSION,
        };
        line(out, &header)?;
        for folder in folders {
            line(out, &Line::Folder(folder))?;
        }
        for preset in presets {
            line(out, &Line::Preset(preset))?;
        }
        Ok(Lines::default())
    }

    pub fn chat(&mut self, out: &mut dyn Write, whole: &WholeChat) -> io::Result<()> {
        self.counts.chats += 1;
        self.counts.messages += whole.messages.len() as u64;
        line(out, &Line::Chat(whole.chat.clone()))?;
        let mut lines = ChatLines::default();
        for message in &whole.messages {
            lines.add(line(out, &Line::Message(message.clone()))?);
        }
        if lines.are_too_many() {
            self.too_large.add_titled(1, &whole.chat.title);
        }
        Ok(())
    }

    /// Ends the file. Returns the chats that are too large to be read again.
    pub fn end(self, out: &mut dyn Write) -> io::Result<Omissions> {
        line(out, &Line::End(self.counts))?;
        Ok(self.too_large)
    }
}

/// Writes a line; returns its length in bytes.
fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<usize> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    out.write_all(&line)?;
    Ok(line.len())
}

/// Reads a file whose first line names this format.
pub(crate) fn read(
    name: &str,
    input: &mut dyn BufRead,
    reading: &mut FileReading<'_>,
) -> Result<(), ReadError> {
    let mut lines = InputLines {
        name,
        input,
        number: 0,
        text: Vec::new(),
    };
    let mut header: FileHeader = lines.next()?.ok_or_else(|| lines.cut_off())?;
    loop {
        read_one(&header, &mut lines, reading)?;
        match lines.next()? {
            Some(next) => header = next,
            None => return Ok(()),
        }
    }
}

/// Reads one export, behind its header.
fn read_one(
    header: &FileHeader,
    lines: &mut InputLines<'_>,
    reading: &mut FileReading<'_>,
) -> Result<(), ReadError> {
    if header.format != NAME {
        return Err(lines.wrong("what follows is not a Goldcrest export"));
    }
    if header.version > VERSION {
        return Err(ReadError::Newer {
            file: lines.name.to_owned(),
            found: header.version,
            known: VERSION,
        });
    }
    let mut counts = LineCounts::default();
    let mut incoming: Option<IncomingLines> = None;
    loop {
        match lines.next()?.ok_or_else(|| lines.cut_off())? {
            Line::Folder(folder) => reading.item(Item::Folder(folder))?,
            Line::Preset(preset) => reading.item(Item::Preset(preset))?,
            Line::Message(message) => {
                let Some(incoming) = &mut incoming else {
                    return Err(lines.wrong("a message without its chat"));
                };
                counts.messages += 1;
                incoming.add(message, lines.text.len());
                if incoming.lines.are_too_many() {
                    reading.counter.begin_chat();
                }
            }
            Line::Chat(chat) => {
                counts.chats += 1;
                hand_on(incoming.replace(IncomingLines::of(chat)), lines, reading)?;
            }
            Line::End(end) => {
                hand_on(incoming.take(), lines, reading)?;
                return if end == counts {
                    Ok(())
                } else {
                    Err(lines.wrong("the counts do not match"))
                };
            }
        }
    }
}

/// A chat with lines that are still to be read.
struct IncomingLines {
    whole: WholeChat,
    lines: ChatLines,
}

impl IncomingLines {
    fn of(chat: ChatRecord) -> IncomingLines {
        let messages = Vec::new();
        IncomingLines {
            whole: WholeChat { chat, messages },
            lines: ChatLines::default(),
        }
    }

    /// Adds a message whose line has this many bytes.
    fn add(&mut self, message: MessageRecord, bytes: usize) {
        self.lines.add(bytes);
        if self.lines.are_too_many() {
            self.whole.messages = Vec::new();
        } else {
            self.whole.messages.push(message);
        }
    }
}

fn hand_on(
    incoming: Option<IncomingLines>,
    lines: &InputLines<'_>,
    reading: &mut FileReading<'_>,
) -> Result<(), ReadError> {
    let Some(IncomingLines { whole, lines: read }) = incoming else {
        return Ok(());
    };
    if read.are_too_many() {
        reading.counter.begin_chat();
        reading.tally.large_chats.add_titled(1, &whole.chat.title);
        return Ok(());
    }
    match whole.fault() {
        Some(fault) => Err(lines.wrong(&fault)),
        None => reading.chat(whole),
    }
}

struct InputLines<'a> {
    name: &'a str,
    input: &'a mut dyn BufRead,
    number: u64,
    text: Vec<u8>,
}

impl InputLines<'_> {
    /// Reads the next line; `None` at the end of the file. Empty lines are skipped.
    fn next<T: for<'de> Deserialize<'de>>(&mut self) -> Result<Option<T>, ReadError> {
        loop {
            self.text.clear();
            self.number += 1;
            let mut limited = io::Read::take(&mut *self.input, LONGEST_LINE);
            let read = limited.read_until(b'\n', &mut self.text);
            read.map_err(|error| ReadError::input(self.name, &error))?;
            let Some(last) = self.text.last() else {
                return Ok(None);
            };
            let is_whole = *last == b'\n';
            if !is_whole && self.text.len() as u64 == LONGEST_LINE {
                return Err(self.wrong("the line is too long"));
            }
            if self.text.trim_ascii().is_empty() {
                continue;
            }
            return match serde_json::from_slice(&self.text) {
                Ok(value) => Ok(Some(value)),
                // An edited file may have no line break at its end.
                Err(_) if !is_whole => Err(self.cut_off()),
                Err(error) => {
                    let place = format!("line {}, column {}", self.number, error.column());
                    Err(ReadError::damaged(
                        self.name,
                        &place,
                        &without_place(&error),
                    ))
                }
            };
        }
    }

    fn wrong(&self, detail: &str) -> ReadError {
        ReadError::damaged(self.name, &format!("line {}", self.number), detail)
    }

    fn cut_off(&self) -> ReadError {
        ReadError::CutOff {
            file: self.name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use store::Role;

    use super::*;

    #[test]
    fn a_chat_has_as_many_lines_as_it_may_and_no_more() {
        let chat = ChatRecord::new("u".into(), "Birds".into(), "2026-03-05".into(), 1, None);
        let message = |id| MessageRecord::new(id, Role::User, "Hi".into(), 1);
        let mut incoming = IncomingLines::of(chat);
        let mut add = |id, bytes| {
            incoming.add(message(id), bytes);
            (incoming.whole.messages.len(), incoming.lines.are_too_many())
        };
        assert_eq!(add(1, CHAT_LINES - 1), (1, false));
        assert_eq!(add(2, 1), (2, false));
        assert_eq!(add(3, 1), (0, true));
        assert_eq!(add(4, 1), (0, true));
        let messages = CHAT_MESSAGES;
        let mut most = ChatLines { messages, bytes: 0 };
        assert!(!most.are_too_many());
        most.add(1);
        assert!(most.are_too_many());
    }

    #[test]
    fn the_size_of_a_line_is_that_which_is_read() {
        let mut out = Vec::new();
        let written = line(&mut out, &Line::End(LineCounts::default())).expect("memory");
        assert_eq!(written, out.len());
    }
}

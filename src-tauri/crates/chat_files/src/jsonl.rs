//! Our own format. The first line names it, then come the folders and presets. A chat is a line, each of its messages is one
//! behind it, and the last line counts both, so that a file that was cut off is known for one. Several exports may stand in
//! one file, one behind the other.
//!
//! A key that this version does not know is an error: to leave it out would lose it.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use store::{ChatRecord, FolderRecord, MessageRecord, PresetRecord, WholeChat};

use crate::file_reading::{FileReading, Item};
use crate::limits::CHAT_MESSAGES;
use crate::read_error::{ReadError, without_place};

/// The name in the first line.
pub(crate) const NAME: &str = "goldcrest-chats";
/// Grows with what an older version could not read.
const VERSION: u32 = 1;
/// Bytes of a line: a message has 4 MB at most, and its tokens.
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

/// What is being written.
pub(crate) struct Lines(LineCounts);

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
        Ok(Lines(LineCounts::default()))
    }

    pub fn chat(&mut self, out: &mut dyn Write, whole: &WholeChat) -> io::Result<()> {
        self.0.chats += 1;
        self.0.messages += whole.messages.len() as u64;
        line(out, &Line::Chat(whole.chat.clone()))?;
        for message in &whole.messages {
            line(out, &Line::Message(message.clone()))?;
        }
        Ok(())
    }

    pub fn end(self, out: &mut dyn Write) -> io::Result<()> {
        line(out, &Line::End(self.0))
    }
}

fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
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

/// One export, behind its header.
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
    let mut whole: Option<WholeChat> = None;
    loop {
        match lines.next()?.ok_or_else(|| lines.cut_off())? {
            Line::Folder(folder) => reading.item(Item::Folder(folder))?,
            Line::Preset(preset) => reading.item(Item::Preset(preset))?,
            Line::Message(message) => {
                let Some(whole) = &mut whole else {
                    return Err(lines.wrong("a message without its chat"));
                };
                counts.messages += 1;
                if whole.messages.len() == CHAT_MESSAGES {
                    let file = lines.name.to_owned();
                    return Err(ReadError::TooLarge { file });
                }
                whole.messages.push(message);
            }
            Line::Chat(chat) => {
                counts.chats += 1;
                let messages = Vec::new();
                hand_on(whole.replace(WholeChat { chat, messages }), lines, reading)?;
            }
            Line::End(end) => {
                hand_on(whole.take(), lines, reading)?;
                return if end == counts {
                    Ok(())
                } else {
                    Err(lines.wrong("the counts do not match"))
                };
            }
        }
    }
}

fn hand_on(
    whole: Option<WholeChat>,
    lines: &InputLines<'_>,
    reading: &mut FileReading<'_>,
) -> Result<(), ReadError> {
    let Some(whole) = whole else {
        return Ok(());
    };
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
    /// `None` at the end of the file. Empty lines are left out.
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
                // What was edited may have no line break at its end.
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

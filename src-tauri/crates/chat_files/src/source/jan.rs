//! Jan: a folder per chat with `thread.json` and `messages.jsonl`.
//!
//! Reads texts, thinking, the text of attachments (`inline_file_contents`), and notes of images, recordings and files.
//! Tool calls and their results are read if an answer has nothing else. Skips instructions, assistants, models,
//! settings, projects, and the images themselves. The rest of a truncated line is lost; two messages on one line are
//! two.

use std::io::{self, BufRead, Read};
use std::path::Path;

use jiff::tz::TimeZone;
use serde::de::DeserializeSeed;
use store::{MessageState, Role};

use super::Source;
use super::draft::{About, ChatDraft, ForeignChat, Outcome, Said};
use super::value::{Budget, ForeignValue, ValueSeed};

pub(crate) const THREAD: &str = "thread.json";
pub(crate) const MESSAGES: &str = "messages.jsonl";

/// Maximum bytes of a line: an image is in the line of its message.
const LONGEST_LINE: u64 = 64 << 20;

/// Returns true if a file is one of the two of a chat.
pub(crate) fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let folder = path.parent().unwrap_or(Path::new("."));
    matches!(name, Some(THREAD | MESSAGES)) && folder.join(THREAD).is_file()
}

/// A chat whose thread is read, but not its messages.
pub(crate) struct Thread {
    value: Option<ForeignValue>,
    budget: Budget,
}

impl Thread {
    /// Reads `thread.json`. If it is damaged, the messages are read all the same.
    pub fn read(input: impl Read) -> io::Result<Thread> {
        let budget = Budget::default();
        let mut json = serde_json::Deserializer::from_reader(input);
        let value = match ValueSeed::new(&budget).deserialize(&mut json) {
            Ok(value) => Some(value).filter(ForeignValue::is_object),
            Err(error) if error.is_io() => return Err(error.into()),
            Err(_) => None,
        };
        Ok(Thread { value, budget })
    }

    /// Reads the messages and returns the chat. `folder` is its name if the thread has none.
    pub fn chat(
        self,
        folder: &str,
        messages: Option<&mut dyn BufRead>,
        zone: &TimeZone,
    ) -> io::Result<ForeignChat> {
        let mut draft = ChatDraft::default();
        let mut last = None;
        if let Some(messages) = messages {
            let mut line = Vec::new();
            loop {
                line.clear();
                let read = Read::take(&mut *messages, LONGEST_LINE).read_until(b'\n', &mut line)?;
                if read == 0 {
                    break;
                }
                self.add_line(&line, &mut last, &mut draft);
            }
        }
        let thread = self.value.as_ref().unwrap_or(&ForeignValue::Null);
        let id = thread.label("id").unwrap_or_else(|| folder.to_owned());
        let title = thread.label("title").unwrap_or_default();
        let created = thread
            .moment("created")
            .or_else(|| thread.moment("created_at"));
        if self.value.is_none() && last.is_none() {
            draft.unread += 1;
        }
        let unread = draft.unread;
        if self.budget.is_spent() {
            return Ok(ForeignChat {
                title,
                unread,
                outcome: Outcome::TooLarge,
            });
        }
        let about = About {
            source: Source::Jan,
            id: Some(id).filter(|id| !id.is_empty()),
            title,
            created_at: created,
            updated_at: thread.moment("updated"),
        };
        Ok(draft.finish(about, last, zone))
    }

    /// Adds the messages of a line, usually one.
    fn add_line(&self, line: &[u8], last: &mut Option<u32>, draft: &mut ChatDraft) {
        let mut json = serde_json::Deserializer::from_slice(line);
        while json.end().is_err() {
            let Ok(message) = ValueSeed::new(&self.budget).deserialize(&mut json) else {
                draft.unread += 1;
                return;
            };
            let is_bare = message.get("content").is_some_and(ForeignValue::is_bare);
            let role = match message.text("role").filter(|_| !is_bare) {
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                // Instructions, and results of tools.
                Some(_) => continue,
                None => {
                    draft.unread += 1;
                    continue;
                }
            };
            let said = said(&message, role);
            if !said.is_empty() {
                *last = Some(draft.add(*last, role, said));
            }
        }
    }
}

fn said(message: &ForeignValue, role: Role) -> Said {
    let state = match message.text("status") {
        Some("stopped") => Some(MessageState::Stopped),
        Some("error") => Some(MessageState::Failed),
        _ => None,
    };
    let mut said = Said {
        at: message.moment("created_at"),
        state,
        ..Said::default()
    };
    for part in message.items("content") {
        add_part(part, &mut said);
    }
    let metadata = message.get("metadata");
    let files = metadata.map_or(&[][..], |metadata| metadata.items("inline_file_contents"));
    for file in files {
        let name = file.label("name").unwrap_or_default();
        let text = file.text("content").unwrap_or_default();
        said.document("Attachment", &name, "text", text);
    }
    if role == Role::Assistant {
        said.split_thinking();
    }
    said
}

fn add_part(part: &ForeignValue, said: &mut Said) {
    // An object with its value, or in some versions the text itself.
    let text = part.get("text").unwrap_or(part);
    let words = text
        .as_text()
        .or_else(|| text.text("value"))
        .unwrap_or_default();
    let name = part.label("name").or_else(|| text.label("name"));
    let name = name.unwrap_or_default();
    match part.text("type").unwrap_or("text") {
        "reasoning" => said.thought(words),
        "image_url" | "image" | "image_file" => said.note("Image", &name),
        "input_audio" => said.note("Audio", &name),
        "file" | "pdf" => said.note("Attachment", &name),
        "tool_call" => {
            let tool = part.label("tool_name").unwrap_or_default();
            let json = |key| part.get(key).map(ForeignValue::to_json).unwrap_or_default();
            said.tool("Tool", &tool, "json", &json("input"));
            said.tool("Result", &tool, "json", &json("output"));
        }
        _ => said.paragraph(words),
    }
}

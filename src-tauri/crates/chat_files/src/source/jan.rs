//! Jan: a folder per chat with `thread.json` and `messages.jsonl`.

use std::path::Path;

use jiff::tz::TimeZone;
use serde::Deserialize;
use store::{MessageState, Role, WholeChat};

use super::Source;
use super::draft::{About, ChatDraft, Said};
use super::moment::seconds;
use crate::read_error::ReadError;

pub(crate) const THREAD: &str = "thread.json";
pub(crate) const MESSAGES: &str = "messages.jsonl";

/// Whether a file is one of the two that make a chat.
pub(crate) fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let folder = path.parent().unwrap_or(Path::new("."));
    matches!(name, Some(THREAD | MESSAGES)) && folder.join(THREAD).is_file()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JanThread {
    id: Option<String>,
    title: Option<String>,
    created: Option<f64>,
    created_at: Option<f64>,
    updated: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JanMessage {
    role: Option<String>,
    content: Option<Vec<JanPart>>,
    status: Option<String>,
    created_at: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JanPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<JanText>,
    name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JanText {
    value: Option<String>,
    name: Option<String>,
}

/// A chat; `None`: it has no messages.
pub(crate) fn chat(
    name: &str,
    thread: &[u8],
    messages: &[u8],
    zone: &TimeZone,
) -> Result<Option<WholeChat>, ReadError> {
    let thread: JanThread =
        serde_json::from_slice(thread).map_err(|error| ReadError::json(name, error))?;
    let mut draft = ChatDraft::default();
    let mut last = None;
    for (at, line) in messages.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let message: JanMessage = serde_json::from_slice(line).map_err(|error| {
            let file = name.to_owned();
            if error.is_eof() {
                return ReadError::CutOff { file };
            }
            ReadError::Damaged {
                file,
                detail: format!("message {}: {error}", at + 1),
            }
        })?;
        let role = match message.role.as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            // Instructions, and what tools answered.
            _ => continue,
        };
        let said = said(message);
        if !said.is_empty() {
            last = Some(draft.add(last, role, said));
        }
    }
    let created_at = thread.created.or(thread.created_at).and_then(seconds);
    let updated_at = thread.updated.and_then(seconds);
    let about = About::of(Source::Jan, thread.id, thread.title, created_at, updated_at);
    Ok(draft.finish(about, last, zone))
}

fn said(message: JanMessage) -> Said {
    let state = match message.status.as_deref() {
        Some("stopped") => Some(MessageState::Stopped),
        Some("error") => Some(MessageState::Failed),
        _ => None,
    };
    let at = message.created_at.and_then(seconds);
    let mut said = Said {
        at,
        state,
        ..Said::default()
    };
    for part in message.content.unwrap_or_default() {
        let text = part.text.unwrap_or_default();
        match part.kind.as_str() {
            "text" => said.paragraph(&text.value.unwrap_or_default()),
            "reasoning" => said.thought(&text.value.unwrap_or_default()),
            "image_url" | "image" => said.note("Image", &part.name.unwrap_or_default()),
            "file" | "pdf" => said.note("Attachment", &part.name.or(text.name).unwrap_or_default()),
            _ => {}
        }
    }
    said.split_thinking();
    said
}

//! Claude: `conversations.json`, a list of chats with their messages.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use serde::Deserialize;
use store::{Role, WholeChat};

use super::draft::{About, ChatDraft, Said};
use super::moment::Moment;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClaudeMessage {
    uuid: Option<String>,
    parent_message_uuid: Option<String>,
    sender: Option<String>,
    text: Option<String>,
    content: Option<Vec<ClaudeBlock>>,
    created_at: Option<Moment>,
    attachments: Option<Vec<ClaudeFile>>,
    files: Option<Vec<ClaudeFile>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaudeBlock {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    start_timestamp: Option<String>,
    stop_timestamp: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaudeFile {
    file_name: Option<String>,
    extracted_content: Option<String>,
}

pub(crate) fn chat(
    messages: Vec<ClaudeMessage>,
    leaf: Option<&str>,
    about: About,
    zone: &TimeZone,
) -> Option<WholeChat> {
    // Older exports name no parents: each message follows the one before it.
    let has_parents = messages
        .iter()
        .any(|message| message.parent_message_uuid.is_some());
    let mut draft = ChatDraft::default();
    // A message that says nothing stands for the one before it.
    let mut places: HashMap<String, Option<u32>> = HashMap::new();
    let mut last = None;
    for message in messages {
        let named = message
            .parent_message_uuid
            .as_deref()
            .and_then(|parent| places.get(parent));
        let parent = if has_parents {
            named.copied().flatten()
        } else {
            last
        };
        let role = match message.sender.as_deref() {
            Some("human" | "user") => Role::User,
            _ => Role::Assistant,
        };
        let uuid = message.uuid.clone();
        let said = said(message);
        let place = if said.is_empty() {
            parent
        } else {
            Some(draft.add(parent, role, said))
        };
        places.extend(uuid.map(|uuid| (uuid, place)));
        last = place;
    }
    let leaf = leaf.and_then(|leaf| places.get(leaf).copied().flatten());
    draft.finish(about, leaf, zone)
}

fn said(message: ClaudeMessage) -> Said {
    let mut said = Said {
        at: message.created_at.as_ref().and_then(Moment::seconds),
        ..Said::default()
    };
    for block in message.content.unwrap_or_default() {
        match block.kind.as_str() {
            "text" => said.paragraph(&block.text.unwrap_or_default()),
            "thinking" => {
                said.thought(&block.thinking.unwrap_or_default());
                let took = milliseconds(block.start_timestamp, block.stop_timestamp);
                said.thinking_ms = said.thinking_ms.or(took);
            }
            "image" => said.note("Image", ""),
            // What a tool was asked and what it answered is not a part of the conversation.
            _ => {}
        }
    }
    if said.text.is_empty() {
        said.paragraph(&message.text.unwrap_or_default());
    }
    let attachments = message.attachments.unwrap_or_default();
    for file in attachments
        .into_iter()
        .chain(message.files.unwrap_or_default())
    {
        match (
            file.file_name.filter(|name| !name.is_empty()),
            file.extracted_content,
        ) {
            (Some(name), _) => said.note("Attachment", &name),
            // A long text that was pasted.
            (None, Some(text)) => said.paragraph(&text),
            (None, None) => said.note("Attachment", ""),
        }
    }
    said
}

fn milliseconds(start: Option<String>, stop: Option<String>) -> Option<u32> {
    let moment = |text: Option<String>| text?.parse::<jiff::Timestamp>().ok();
    let took = moment(stop)?.as_millisecond() - moment(start)?.as_millisecond();
    u32::try_from(took).ok()
}

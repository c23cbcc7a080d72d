//! Claude: `conversations.json`, a list of chats with their messages.
//!
//! Reads texts, thinking with its time, artifacts and files with their changes (`tool_use` of `artifacts`, and of any
//! tool that takes `file_text`), code that was run (`repl`), voice notes, the text of attachments
//! (`extracted_content`), and notes of images and files. Other tool calls and their results are read if a turn has
//! nothing else. Skips summaries, citations, flags, projects with their documents, memories and accounts.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use store::Role;

use super::Source;
use super::draft::{About, ChatDraft, ForeignChat, Said};
use super::value::ForeignValue;

/// Returns true if an object is a chat of this program.
pub(crate) fn is_chat(chat: &ForeignValue) -> bool {
    chat.has("chat_messages") || chat.has("current_leaf_message_uuid")
}

pub(crate) fn chat(chat: &ForeignValue, zone: &TimeZone) -> ForeignChat {
    let about = About {
        source: Source::Claude,
        id: chat.label("uuid"),
        title: chat.label("name").unwrap_or_default(),
        created_at: chat.moment("created_at"),
        updated_at: chat.moment("updated_at"),
    };
    let mut draft = ChatDraft::default();
    if chat.get("chat_messages").is_some_and(ForeignValue::is_bare) {
        draft.unread += 1;
    }
    let messages = chat.items("chat_messages");
    // An empty message stands for the one before it.
    let mut places: HashMap<&str, Option<u32>> = HashMap::new();
    let mut last = None;
    for message in messages {
        let (Some(sender), false) = (message.text("sender"), has_bare_content(message)) else {
            draft.unread += 1;
            continue;
        };
        let role = match sender {
            "human" | "user" => Role::User,
            _ => Role::Assistant,
        };
        let parent = match message.text("parent_message_uuid") {
            // The parent of first messages is a zero id.
            Some(parent) if is_zero(parent) => None,
            Some(parent) => places.get(parent).copied().unwrap_or(last),
            // Older exports name no parents: each message follows the one before it.
            None => last,
        };
        let said = said(message);
        let place = if said.is_empty() {
            parent
        } else {
            Some(draft.add(parent, role, said))
        };
        places.extend(message.text("uuid").map(|uuid| (uuid, place)));
        last = place;
    }
    let leaf = chat.text("current_leaf_message_uuid");
    let leaf = leaf.and_then(|leaf| places.get(leaf).copied().flatten());
    draft.finish(about, leaf, zone)
}

fn is_zero(uuid: &str) -> bool {
    uuid.starts_with("00000000-0000-4000-8000-00000000")
}

fn has_bare_content(message: &ForeignValue) -> bool {
    let is_bare = |key| message.get(key).is_some_and(ForeignValue::is_bare);
    is_bare("content") && message.text("text").is_none()
}

fn said(message: &ForeignValue) -> Said {
    let mut said = Said {
        at: message.moment("created_at"),
        ..Said::default()
    };
    for block in message.items("content") {
        add_block(block, &mut said);
    }
    // A message with tool calls has a placeholder sentence as its text.
    if said.text.is_empty() && said.tools.is_empty() {
        said.paragraph(message.text("text").unwrap_or_default());
    }
    for file in message
        .items("attachments")
        .iter()
        .chain(message.items("files"))
    {
        let name = file.label("file_name").unwrap_or_default();
        match file.text("extracted_content") {
            // A long text that was pasted.
            Some(text) if name.is_empty() => said.paragraph(text),
            Some(text) => said.document("Attachment", &name, "text", text),
            None => said.note("Attachment", &name),
        }
    }
    said
}

fn add_block(block: &ForeignValue, said: &mut Said) {
    if let Some(text) = block.as_text() {
        said.paragraph(text);
        return;
    }
    match block.text("type").unwrap_or("text") {
        "thinking" => {
            said.thought(block.text("thinking").unwrap_or_default());
            let took = milliseconds(block.text("start_timestamp"), block.text("stop_timestamp"));
            said.thinking_ms = said.thinking_ms.or(took);
        }
        "image" => said.note("Image", ""),
        "tool_use" => call(block, said),
        "tool_result" => {
            let items = block.items("content").iter();
            let texts = items.filter_map(|item| item.as_text().or_else(|| item.text("text")));
            let text = texts.collect::<Vec<_>>().join("\n");
            let name = block.label("name").unwrap_or_default();
            said.tool("Result", &name, "text", &text);
        }
        // Texts, voice notes, and future kinds.
        _ => said.paragraph(block.text("text").unwrap_or_default()),
    }
}

/// Reads a tool call: a document is a part of the conversation, the rest is for the tool.
fn call(block: &ForeignValue, said: &mut Said) {
    let tool = block.label("name").unwrap_or_default();
    let Some(input) = block.get("input") else {
        return;
    };
    let named = ["title", "path", "file_name", "id"];
    let name = named
        .iter()
        .find_map(|key| input.label(key))
        .unwrap_or_default();
    let text = input.text("content").filter(|_| tool == "artifacts");
    let text = text.or_else(|| input.text("file_text"));
    if let Some(text) = text {
        said.document("Document", &name, language(input), text);
    } else if let (Some(old), Some(new)) = (input.text("old_str"), input.text("new_str")) {
        said.change(&name, old, new);
    } else if let (Some(code), "repl" | "analysis_tool") = (input.text("code"), tool.as_str()) {
        said.code("javascript", code);
    } else {
        said.tool("Tool", &tool, "json", &input.to_json());
    }
}

fn language(input: &ForeignValue) -> &str {
    match (input.text("language"), input.text("type")) {
        (Some(language), _) => language,
        (None, Some("text/markdown")) => "markdown",
        (None, Some("text/html")) => "html",
        (None, Some("image/svg+xml")) => "svg",
        (None, Some("application/vnd.ant.react")) => "jsx",
        (None, Some("application/vnd.ant.mermaid")) => "mermaid",
        _ => "",
    }
}

fn milliseconds(start: Option<&str>, stop: Option<&str>) -> Option<u32> {
    let moment = |text: Option<&str>| text?.parse::<jiff::Timestamp>().ok();
    let took = moment(stop)?.as_millisecond() - moment(start)?.as_millisecond();
    u32::try_from(took).ok()
}

//! The messages that OpenAI's API takes, `{"messages": [{"role": …, "content": …}]}`, as many programs write them: a
//! chat in a file, or one in each line of a `.jsonl`.
//!
//! Reads texts, refusals, thinking (`reasoning_content`, or at the beginning of an answer), and notes of images,
//! recordings and files. Tool calls and their results are read if an answer has nothing else. Skips instructions
//! (`system`, `developer`), the tools, and all settings.

use jiff::tz::TimeZone;
use store::Role;

use super::Source;
use super::draft::{About, ChatDraft, ForeignChat, Said};
use super::value::ForeignValue;

pub(crate) fn chat(chat: &ForeignValue, zone: &TimeZone) -> ForeignChat {
    let date = ["created_at", "create_time", "created"];
    let about = About {
        source: Source::OpenAi,
        id: chat.label("id").or_else(|| chat.label("uuid")),
        title: chat.label("title").unwrap_or_default(),
        created_at: date.iter().find_map(|key| chat.moment(key)),
        updated_at: None,
    };
    let mut draft = ChatDraft::default();
    if chat.get("messages").is_some_and(ForeignValue::is_bare) {
        draft.unread += 1;
    }
    let mut last = None;
    // An answer continues after the results of its tools.
    let mut answer = Said::default();
    for message in chat.items("messages") {
        let Some(role) = message.text("role") else {
            draft.unread += 1;
            continue;
        };
        if message.get("content").is_some_and(ForeignValue::is_bare) {
            draft.unread += 1;
            continue;
        }
        match role {
            "user" => {
                last = end(std::mem::take(&mut answer), last, &mut draft);
                let said = said(message);
                if !said.is_empty() {
                    last = Some(draft.add(last, Role::User, said));
                }
            }
            "assistant" | "model" => {
                let mut said = said(message);
                said.split_thinking();
                answer.append(&said);
            }
            "tool" | "function" => {
                let name = message.label("name").unwrap_or_default();
                answer.tool("Result", &name, "text", &said(message).text);
            }
            // Instructions.
            _ => {}
        }
    }
    last = end(answer, last, &mut draft);
    draft.finish(about, last, zone)
}

fn end(answer: Said, parent: Option<u32>, draft: &mut ChatDraft) -> Option<u32> {
    if answer.is_empty() {
        return parent;
    }
    Some(draft.add(parent, Role::Assistant, answer))
}

fn said(message: &ForeignValue) -> Said {
    let mut said = Said::default();
    for part in message.items("content") {
        if let Some(text) = part.as_text() {
            said.paragraph(text);
            continue;
        }
        match part.text("type").unwrap_or("text") {
            "image_url" | "input_image" => said.note("Image", ""),
            "input_audio" => said.note("Audio", ""),
            "file" | "input_file" => said.note("Attachment", ""),
            _ => said.paragraph(
                part.text("text")
                    .or_else(|| part.text("refusal"))
                    .unwrap_or_default(),
            ),
        }
    }
    said.paragraph(message.text("refusal").unwrap_or_default());
    let thinking = message
        .text("reasoning_content")
        .or_else(|| message.text("reasoning"));
    said.thought(thinking.unwrap_or_default());
    for call in message.items("tool_calls") {
        let Some(function) = call.get("function") else {
            continue;
        };
        let name = function.label("name").unwrap_or_default();
        let arguments = function.text("arguments").unwrap_or_default();
        said.tool("Tool", &name, "json", arguments);
    }
    said
}

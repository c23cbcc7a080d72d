//! LM Studio: a `*.conversation.json` per chat. A message has versions; the next message follows the selected one.
//!
//! Reads texts, thinking with its time, all versions, and notes of images and files. Tool calls and their results are
//! read if an answer has nothing else. Skips the instructions (`systemPrompt`), settings, statistics, folders, pins and
//! the files themselves, of which a chat has only the names.

use jiff::tz::TimeZone;
use store::Role;

use super::Source;
use super::draft::{About, ChatDraft, ForeignChat, Said};
use super::value::ForeignValue;

/// Returns true if an object with messages is a chat of this program.
pub(crate) fn is_chat(chat: &ForeignValue) -> bool {
    let own = ["createdAt", "name", "currentlySelected"];
    own.iter().any(|key| chat.has(key))
        || chat.items("messages").iter().any(|it| it.has("versions"))
}

pub(crate) fn chat(chat: &ForeignValue, zone: &TimeZone) -> ForeignChat {
    let about = About {
        source: Source::LmStudio,
        // The files are named after this moment.
        id: chat.label("createdAt"),
        title: chat.label("name").unwrap_or_default(),
        created_at: chat.moment("createdAt"),
        updated_at: None,
    };
    let mut draft = ChatDraft::default();
    if chat.get("messages").is_some_and(ForeignValue::is_bare) {
        draft.unread += 1;
    }
    let mut parent = None;
    for turn in chat.items("messages") {
        parent = add_turn(turn, parent, &mut draft);
    }
    draft.finish(about, parent, zone)
}

/// Adds the versions of a message; returns the one that the next message follows.
fn add_turn(turn: &ForeignValue, parent: Option<u32>, draft: &mut ChatDraft) -> Option<u32> {
    // In older files a message is itself a version.
    let versions = match turn.get("versions") {
        Some(versions) => versions.as_items(),
        None => std::slice::from_ref(turn),
    };
    let selected = turn.number("currentlySelected").unwrap_or_default();
    let mut next = parent;
    for (at, version) in versions.iter().enumerate() {
        let role = match version.text("role") {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            // The instructions.
            Some(_) => continue,
            None => {
                draft.unread += 1;
                continue;
            }
        };
        if version.get("content").is_some_and(ForeignValue::is_bare) {
            draft.unread += 1;
            continue;
        }
        let said = said(version, role);
        if said.is_empty() {
            continue;
        }
        let place = draft.add(parent, role, said);
        if at as f64 == selected || next == parent {
            next = Some(place);
        }
    }
    next
}

fn said(version: &ForeignValue, role: Role) -> Said {
    let mut said = Said::default();
    let content = text(version.items("content"), &mut said);
    said.paragraph(&content);
    for step in version.items("steps") {
        if step.text("type").is_some_and(|kind| kind != "contentBlock") {
            continue;
        }
        let text = text(step.items("content"), &mut said);
        match step
            .get("style")
            .filter(|it| it.text("type") == Some("thinking"))
        {
            Some(style) => {
                said.thought(&text);
                let took = style.text("title").and_then(milliseconds);
                said.thinking_ms = said.thinking_ms.or(took);
            }
            None => said.paragraph(&text),
        }
    }
    if role == Role::Assistant {
        said.split_thinking();
    }
    said
}

/// The text of parts, which may be split anywhere; parts without text become notes.
fn text(parts: &[ForeignValue], said: &mut Said) -> String {
    let mut text = String::new();
    for part in parts {
        match part.text("type").unwrap_or("text") {
            kind @ ("file" | "image") => {
                let is_image = kind == "image" || part.text("fileType") == Some("image");
                let name = part.label("name").or_else(|| part.label("fileIdentifier"));
                let kind = if is_image { "Image" } else { "Attachment" };
                said.note(kind, &name.unwrap_or_default());
            }
            "toolCallRequest" => {
                let name = part.label("name").unwrap_or_default();
                let given = part.get("parameters").map(ForeignValue::to_json);
                said.tool("Tool", &name, "json", &given.unwrap_or_default());
            }
            "toolCallResult" => {
                let items = part.items("content").iter();
                let result = items.filter_map(|item| item.as_text().or_else(|| item.text("text")));
                let result = result.collect::<Vec<_>>().join("\n");
                said.tool("Result", "", "text", &result);
            }
            _ => {
                let piece = part.as_text().or_else(|| part.text("text"));
                text.push_str(piece.unwrap_or_default());
            }
        }
    }
    text
}

/// The time in a title such as "Thought for 1 minute 5.5 seconds".
fn milliseconds(title: &str) -> Option<u32> {
    let mut words = title.split_whitespace().peekable();
    let mut took = None;
    while let Some(word) = words.next() {
        let Ok(number) = word.parse::<f64>() else {
            continue;
        };
        let unit = words.peek().map_or("", |unit| unit.trim_matches(','));
        let unit = match unit.trim_end_matches('s') {
            "hour" | "h" => 3_600_000.0,
            "minute" | "min" | "m" => 60_000.0,
            "second" | "sec" | "" => 1000.0,
            _ => continue,
        };
        took = Some(took.unwrap_or(0.0) + number * unit);
    }
    let took = took.filter(|took| (0.0..1e9).contains(took))?;
    Some(took as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_thinking_is_read() {
        for (title, expected) in [
            ("Thought for 3.25 seconds", Some(3250)),
            ("Thought for 1 minute 5 seconds", Some(65_000)),
            ("Thought for 2 minutes", Some(120_000)),
            ("Thought for 1 hour, 1 second", Some(3_601_000)),
            ("Thought for 5 s", Some(5000)),
            ("Thought for 5 apples", None),
            ("Thought for -5 seconds", None),
            ("Thinking", None),
        ] {
            assert_eq!(milliseconds(title), expected, "{title}");
        }
    }
}

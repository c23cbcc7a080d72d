//! The visible content of a node.

use store::MessageState;

use crate::source::draft::Said;
use crate::source::value::ForeignValue;

pub(super) enum Spoken {
    User(Said),
    Answer(Said),
    Nothing,
    /// A message that cannot be read.
    Unread,
}

/// The message of a node with its author, if it is visible.
fn seen(node: &ForeignValue) -> Option<(&ForeignValue, &str)> {
    let message = node.get("message")?;
    let role = message.get("author")?.text("role")?;
    let metadata = message.get("metadata");
    let hidden = metadata.and_then(|it| it.get("is_visually_hidden_from_conversation"));
    let is_hidden = matches!(hidden, Some(ForeignValue::Bool(true)));
    let is_seen =
        !is_hidden && message.number("weight") != Some(0.0) && message.get("content").is_some();
    is_seen.then_some((message, role))
}

/// Returns true if the user speaks in a node.
pub(super) fn is_question(node: &ForeignValue) -> bool {
    seen(node).is_some_and(|(_, role)| role == "user")
}

pub(super) fn spoken(node: &ForeignValue) -> Spoken {
    let Some((message, role)) = seen(node) else {
        return if is_unreadable(node) {
            Spoken::Unread
        } else {
            Spoken::Nothing
        };
    };
    let Some(content) = message.get("content").filter(|content| !content.is_bare()) else {
        return Spoken::Unread;
    };
    if content.get("parts").is_some_and(ForeignValue::is_bare) {
        return Spoken::Unread;
    }
    let mut said = Said {
        at: message.moment("create_time"),
        ..Said::default()
    };
    let metadata = message.get("metadata");
    match role {
        "user" => {
            parts(content, &mut said, true);
            let files = metadata.map_or(&[][..], |it| it.items("attachments"));
            for name in files.iter().filter_map(|file| file.label("name")) {
                said.note("Attachment", &name);
            }
            Spoken::User(said)
        }
        "assistant" => {
            answer(message, content, &mut said);
            let took = metadata.and_then(|it| it.number("finished_duration_sec"));
            said.thinking_ms = took
                .filter(|took| (0.0..1e6).contains(took))
                .map(|took| (took * 1000.0) as u32);
            let finish = metadata.and_then(|it| it.get("finish_details")?.text("type"));
            said.state = match finish {
                Some("interrupted") => Some(MessageState::Stopped),
                Some("max_tokens") => Some(MessageState::Limit),
                _ => None,
            };
            Spoken::Answer(said)
        }
        "tool" => {
            result(message, content, &mut said);
            if said.is_empty() {
                Spoken::Nothing
            } else {
                Spoken::Answer(said)
            }
        }
        _ => Spoken::Nothing,
    }
}

/// Returns true if a node has a message whose author cannot be read.
fn is_unreadable(node: &ForeignValue) -> bool {
    match node {
        ForeignValue::Object(_) => {}
        ForeignValue::Null => return false,
        _ => return true,
    }
    let Some(message) = node.get("message") else {
        return false;
    };
    let role = message.get("author").and_then(|author| author.text("role"));
    role.is_none() && (!message.is_object() || message.get("content").is_some())
}

fn answer(message: &ForeignValue, content: &ForeignValue, said: &mut Said) {
    let kind = content.text("content_type").unwrap_or_default();
    let recipient = message.text("recipient").unwrap_or("all");
    match (recipient, kind) {
        (_, "thoughts") => thoughts(content, said),
        (_, "reasoning_recap") => {}
        ("all", "code") => said.code(language(content), content.text("text").unwrap_or_default()),
        ("all", _) => parts(content, said, true),
        ("canmore.create_textdoc" | "canmore.update_textdoc" | "canmore.comment_textdoc", _) => {
            canvas(recipient, &text_of(content), said);
        }
        ("python" | "python_user_visible", _) => said.code("python", &text_of(content)),
        // Notes for ChatGPT's own memory.
        ("bio", _) => {}
        _ => said.tool("Tool", recipient, language(content), &text_of(content)),
    }
}

fn result(message: &ForeignValue, content: &ForeignValue, said: &mut Said) {
    let tool = message.get("author").and_then(|author| author.text("name"));
    let text = text_of(content);
    match content.text("content_type").unwrap_or_default() {
        "execution_output" => {
            if !text.trim().is_empty() {
                said.document("Output", "", "text", &text);
            }
        }
        "tether_quote" => {
            let title = content.label("title").or_else(|| content.label("domain"));
            said.document("Quotation", &title.unwrap_or_default(), "text", &text);
        }
        _ => {
            // A generated image is a part of the answer.
            parts(content, said, false);
            said.tool("Result", tool.unwrap_or_default(), "text", &text);
        }
    }
}

/// All text of a content of any kind.
fn text_of(content: &ForeignValue) -> String {
    if let Some(text) = content.as_text() {
        return text.to_owned();
    }
    let fields = ["text", "result", "summary"];
    if let Some(text) = fields.iter().find_map(|field| content.text(field)) {
        return text.to_owned();
    }
    let items = match content {
        ForeignValue::List(items) => items,
        content => content.items("parts"),
    };
    let parts = items
        .iter()
        .filter_map(|part| part.as_text().or_else(|| part.text("text")));
    parts.collect::<Vec<_>>().join("\n")
}

fn language(content: &ForeignValue) -> &str {
    let language = content.text("language").unwrap_or_default();
    if language == "unknown" { "" } else { language }
}

/// Reads a document of the canvas, from the JSON of the tool call.
fn canvas(tool: &str, json: &str, said: &mut Said) {
    let Some(call) = ForeignValue::parse(json).filter(ForeignValue::is_object) else {
        // The call was interrupted, or has another form.
        said.document("Document", "", "text", json);
        return;
    };
    match tool {
        "canmore.create_textdoc" => {
            let kind = call.text("type").unwrap_or_default();
            let language = kind.strip_prefix("code/").unwrap_or("markdown");
            let name = call.label("name").unwrap_or_default();
            let text = call.text("content").unwrap_or_default();
            said.document("Document", &name, language, text);
        }
        "canmore.update_textdoc" => {
            for update in call.items("updates") {
                let pattern = update.text("pattern").unwrap_or_default();
                let replacement = update.text("replacement").unwrap_or_default();
                if matches!(pattern, "" | ".*") {
                    said.document("Document, rewritten", "", "", replacement);
                } else {
                    said.change("", pattern, replacement);
                }
            }
        }
        _ => {
            for comment in call.items("comments") {
                let text = comment.text("comment").unwrap_or_default();
                said.document("Comment on the document", "", "text", text);
            }
        }
    }
}

fn thoughts(content: &ForeignValue, said: &mut Said) {
    for thought in content.items("thoughts") {
        let text = thought.text("content").or_else(|| thought.as_text());
        let text = text.unwrap_or_default();
        match thought.text("summary") {
            Some(summary) if !summary.is_empty() && summary != text => {
                said.thought(&format!("**{summary}**"));
            }
            _ => {}
        }
        said.thought(text);
    }
    if said.thinking.is_empty() {
        said.thought(&text_of(content));
    }
}

fn parts(content: &ForeignValue, said: &mut Said, with_text: bool) {
    let items = match content {
        ForeignValue::Object(_) => content.items("parts"),
        content => content.as_items(),
    };
    for part in items {
        if let Some(text) = part.as_text() {
            if with_text {
                said.paragraph(&without_marks(text));
            }
            continue;
        }
        match part.text("content_type").unwrap_or_default() {
            "image_asset_pointer" => {
                let pointer = part.text("asset_pointer").unwrap_or_default();
                let file = pointer.rsplit("://").next().unwrap_or(pointer);
                said.note("Image", file);
            }
            "audio_asset_pointer" | "real_time_user_audio_video_asset_pointer" if with_text => {
                said.note("Audio", "");
            }
            _ if with_text => said.paragraph(&without_marks(part.text("text").unwrap_or_default())),
            _ => {}
        }
    }
    // Some kinds have a text instead of parts.
    if with_text && content.is_object() && content.get("parts").is_none() {
        said.paragraph(&without_marks(content.text("text").unwrap_or_default()));
    }
}

/// Removes the marks of sources, which are enclosed in private-use characters.
fn without_marks(text: &str) -> String {
    const BEGIN: char = '\u{e200}';
    const END: char = '\u{e201}';
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        written.push_str(before);
        // Marks are shorter, and a longer search would take quadratic time in a text of many openings.
        let nearby = &after[..after.floor_char_boundary(1000)];
        rest = match nearby.find(END) {
            Some(end) => &after[end + END.len_utf8()..],
            None => after,
        };
    }
    written.push_str(rest);
    written
}

//! LM Studio: a `*.conversation.json` per chat. A message has versions, the next one follows that which is selected.

use jiff::tz::TimeZone;
use serde::Deserialize;
use store::{Role, WholeChat};

use super::draft::{About, ChatDraft, Said};

/// A message with its versions; in older files it is a version itself.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct VersionedTurn {
    versions: Option<Vec<TurnVersion>>,
    #[serde(rename = "currentlySelected")]
    selected: usize,
    role: Option<String>,
    content: Option<TurnContent>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TurnVersion {
    role: Option<String>,
    content: Option<TurnContent>,
    steps: Option<Vec<TurnStep>>,
}

/// A part of an answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TurnStep {
    #[serde(rename = "type")]
    kind: String,
    content: Option<TurnContent>,
    style: Option<TurnStyle>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TurnStyle {
    #[serde(rename = "type")]
    kind: String,
    /// "Thought for 3.2 seconds"
    title: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TurnContent {
    Text(String),
    Parts(Vec<TurnPart>),
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TurnPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    name: Option<String>,
    file_identifier: Option<String>,
    file_type: Option<String>,
}

pub(crate) fn chat(turns: Vec<VersionedTurn>, about: About, zone: &TimeZone) -> Option<WholeChat> {
    let mut draft = ChatDraft::default();
    let mut parent = None;
    for turn in turns {
        let versions = turn.versions.unwrap_or_else(|| {
            vec![TurnVersion {
                role: turn.role,
                content: turn.content,
                steps: None,
            }]
        });
        let mut next = parent;
        for (at, version) in versions.into_iter().enumerate() {
            let role = match version.role.as_deref() {
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                // The instructions.
                _ => continue,
            };
            let said = said(version);
            if said.is_empty() {
                continue;
            }
            let place = draft.add(parent, role, said);
            if at == turn.selected || next == parent {
                next = Some(place);
            }
        }
        parent = next;
    }
    draft.finish(about, parent, zone)
}

fn said(version: TurnVersion) -> Said {
    let mut said = Said::default();
    if let Some(content) = version.content {
        let text = text(content, &mut said);
        said.paragraph(&text);
    }
    for step in version.steps.unwrap_or_default() {
        let (Some(content), "contentBlock") = (step.content, step.kind.as_str()) else {
            continue;
        };
        let text = text(content, &mut said);
        match step.style.filter(|style| style.kind == "thinking") {
            Some(style) => {
                said.thought(&text);
                let took = style.title.as_deref().and_then(milliseconds);
                said.thinking_ms = said.thinking_ms.or(took);
            }
            None => said.paragraph(&text),
        }
    }
    said.split_thinking();
    said
}

/// The text of parts, which may be cut anywhere; what has no text is noted.
fn text(content: TurnContent, said: &mut Said) -> String {
    let parts = match content {
        TurnContent::Text(text) => return text,
        TurnContent::Parts(parts) => parts,
    };
    let mut text = String::new();
    for part in parts {
        match part.kind.as_str() {
            "text" => text.push_str(&part.text.unwrap_or_default()),
            "file" | "image" => {
                let is_image = part.kind == "image" || part.file_type.as_deref() == Some("image");
                let name = part.name.or(part.file_identifier).unwrap_or_default();
                said.note(if is_image { "Image" } else { "Attachment" }, &name);
            }
            _ => {}
        }
    }
    text
}

fn milliseconds(title: &str) -> Option<u32> {
    let mut words = title.split_whitespace();
    let number = words.find_map(|word| word.parse::<f64>().ok())?;
    let unit = match words.next() {
        Some(unit) if unit.starts_with("second") => 1000.0,
        Some(unit) if unit.starts_with("minute") => 60_000.0,
        _ => return None,
    };
    let took = number * unit;
    (0.0..1e9).contains(&took).then_some(took as u32)
}

//! ChatGPT: `conversations.json`, a list of chats, each a tree of nodes.
//!
//! What is a message here may be several nodes there: thinking, calls of tools, their results, and pieces of the answer.
//! On a way down the tree they are gathered, and become an answer where the user speaks again or the way ends.

use std::collections::{HashMap, HashSet};
use std::fmt;

use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use store::{MessageState, Role, WholeChat};

use super::draft::{About, ChatDraft, Said};
use super::moment::seconds;

/// The nodes in the order of the file.
pub(crate) struct Mapping(Vec<(String, Node)>);

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    message: Option<NodeMessage>,
    parent: Option<String>,
    children: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeMessage {
    author: Option<NodeAuthor>,
    create_time: Option<f64>,
    content: Option<NodeContent>,
    weight: Option<f64>,
    recipient: Option<String>,
    metadata: Option<NodeMetadata>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeAuthor {
    role: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeContent {
    content_type: String,
    parts: Option<Vec<Value>>,
    thoughts: Option<Vec<Thought>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Thought {
    summary: Option<String>,
    content: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeMetadata {
    is_visually_hidden_from_conversation: Option<bool>,
    finished_duration_sec: Option<f64>,
    finish_details: Option<FinishDetails>,
    attachments: Option<Vec<NodeAttachment>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FinishDetails {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeAttachment {
    name: Option<String>,
}

impl<'de> Deserialize<'de> for Mapping {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mapping, D::Error> {
        struct Nodes;
        impl<'de> Visitor<'de> for Nodes {
            type Value = Mapping;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("nodes by their ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Mapping, A::Error> {
                let mut nodes = Vec::new();
                while let Some(node) = map.next_entry()? {
                    nodes.push(node);
                }
                Ok(Mapping(nodes))
            }

            fn visit_unit<E>(self) -> Result<Mapping, E> {
                Ok(Mapping(Vec::new()))
            }
        }
        deserializer.deserialize_any(Nodes)
    }
}

pub(crate) fn chat(
    mapping: Mapping,
    current: Option<&str>,
    about: About,
    zone: &TimeZone,
) -> Option<WholeChat> {
    let Mapping(nodes) = mapping;
    let mut tree = NodeTree::of(&nodes);
    tree.walk();
    let mut leaf = None;
    let mut at = current;
    let mut steps = nodes.len();
    while let (Some(node), None) = (at, leaf) {
        leaf = tree.places.get(node).copied();
        at = tree.nodes.get(node).and_then(|node| node.parent.as_deref());
        // Parents in a circle lead nowhere.
        steps = steps.checked_sub(1)?;
    }
    tree.draft.finish(about, leaf, zone)
}

struct NodeTree<'a> {
    nodes: HashMap<&'a str, &'a Node>,
    roots: Vec<&'a str>,
    draft: ChatDraft,
    /// The message that has what a node says.
    places: HashMap<&'a str, u32>,
}

/// A node to be looked at, the message before it, and the answer that is being gathered.
struct TreeStep<'a> {
    node: &'a str,
    parent: Option<u32>,
    answer: Said,
    /// The nodes that the answer is of.
    of: Vec<&'a str>,
}

impl<'a> NodeTree<'a> {
    fn of(nodes: &'a [(String, Node)]) -> NodeTree<'a> {
        let by_id: HashMap<&str, &Node> =
            nodes.iter().map(|(id, node)| (id.as_str(), node)).collect();
        let is_root = |node: &Node| {
            node.parent
                .as_deref()
                .is_none_or(|parent| !by_id.contains_key(parent))
        };
        let roots = nodes.iter().filter(|(_, node)| is_root(node));
        let roots = roots.map(|(id, _)| id.as_str()).collect();
        NodeTree {
            nodes: by_id,
            roots,
            draft: ChatDraft::default(),
            places: HashMap::new(),
        }
    }

    fn walk(&mut self) {
        let begin = |node: &&'a str| TreeStep {
            node,
            parent: None,
            answer: Said::default(),
            of: Vec::new(),
        };
        let mut steps: Vec<TreeStep<'a>> = self.roots.iter().rev().map(begin).collect();
        let mut seen = HashSet::new();
        while let Some(mut step) = steps.pop() {
            let Some(node) = self.nodes.get(step.node).copied() else {
                continue;
            };
            if !seen.insert(step.node) {
                continue;
            }
            match spoken(node) {
                Spoken::User(said) => {
                    self.end_answer(&mut step);
                    if !said.is_empty() {
                        let place = self.draft.add(step.parent, Role::User, said);
                        self.places.insert(step.node, place);
                        step.parent = Some(place);
                    }
                }
                Spoken::Answer(said) => {
                    step.answer.at = step.answer.at.or(said.at);
                    step.answer.thought(&said.thinking);
                    step.answer.paragraph(&said.text);
                    step.answer.thinking_ms = step.answer.thinking_ms.or(said.thinking_ms);
                    step.answer.state = said.state.or(step.answer.state);
                    step.of.push(step.node);
                }
                Spoken::Nothing => {}
            }
            let answers = |id: &String| {
                let child = self.nodes.get(id.as_str());
                child.is_some_and(|child| !matches!(spoken(child), Spoken::User(_)))
            };
            // Whoever asks next asks after one answer, however often the question was edited.
            if !node.children.iter().any(answers) {
                self.end_answer(&mut step);
            }
            for child in node.children.iter().rev() {
                steps.push(TreeStep {
                    node: child,
                    parent: step.parent,
                    answer: step.answer.clone(),
                    of: step.of.clone(),
                });
            }
        }
    }

    fn end_answer(&mut self, step: &mut TreeStep<'a>) {
        let answer = std::mem::take(&mut step.answer);
        let of = std::mem::take(&mut step.of);
        if answer.is_empty() {
            return;
        }
        let place = self.draft.add(step.parent, Role::Assistant, answer);
        self.places.extend(of.into_iter().map(|node| (node, place)));
        step.parent = Some(place);
    }
}

enum Spoken {
    User(Said),
    Answer(Said),
    Nothing,
}

/// What a reader of the conversation sees of a node.
fn spoken(node: &Node) -> Spoken {
    let Some(message) = &node.message else {
        return Spoken::Nothing;
    };
    let metadata = message.metadata.as_ref();
    let is_hidden =
        metadata.is_some_and(|it| it.is_visually_hidden_from_conversation == Some(true));
    let role = message
        .author
        .as_ref()
        .map_or("", |author| author.role.as_str());
    let (Some(content), false) = (&message.content, is_hidden || message.weight == Some(0.0))
    else {
        return Spoken::Nothing;
    };
    let mut said = Said {
        at: message.create_time.and_then(seconds),
        ..Said::default()
    };
    match role {
        "user" => {
            parts(content, &mut said, true);
            let files = metadata
                .and_then(|it| it.attachments.as_deref())
                .unwrap_or_default();
            for name in files.iter().filter_map(|file| file.name.as_deref()) {
                said.note("Attachment", name);
            }
            Spoken::User(said)
        }
        "assistant" => {
            match content.content_type.as_str() {
                "thoughts" => thoughts(content, &mut said),
                "reasoning_recap" => {}
                // A call of a tool is for the tool.
                _ if message.recipient.as_deref().is_some_and(|to| to != "all") => {
                    return Spoken::Nothing;
                }
                _ => parts(content, &mut said, true),
            }
            let took = metadata.and_then(|it| it.finished_duration_sec);
            said.thinking_ms = took
                .filter(|took| (0.0..1e6).contains(took))
                .map(|took| (took * 1000.0) as u32);
            let finish = metadata.and_then(|it| it.finish_details.as_ref()?.kind.as_deref());
            said.state = match finish {
                Some("interrupted") => Some(MessageState::Stopped),
                Some("max_tokens") => Some(MessageState::Limit),
                _ => None,
            };
            Spoken::Answer(said)
        }
        "tool" => {
            // A picture that was made is a part of the answer; other results are not.
            parts(content, &mut said, false);
            if said.is_empty() {
                Spoken::Nothing
            } else {
                Spoken::Answer(said)
            }
        }
        _ => Spoken::Nothing,
    }
}

fn thoughts(content: &NodeContent, said: &mut Said) {
    for thought in content.thoughts.as_deref().unwrap_or_default() {
        let summary = thought.summary.as_deref().unwrap_or_default();
        let text = thought.content.as_deref().unwrap_or_default();
        if !summary.is_empty() && summary != text {
            said.thought(&format!("**{summary}**"));
        }
        said.thought(text);
    }
}

fn parts(content: &NodeContent, said: &mut Said, with_text: bool) {
    for part in content.parts.as_deref().unwrap_or_default() {
        let name = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
        match part {
            Value::String(text) if with_text => said.paragraph(&without_marks(text)),
            Value::Object(_) => match name("content_type") {
                "image_asset_pointer" => {
                    let pointer = name("asset_pointer");
                    let file = pointer.rsplit("://").next().unwrap_or(pointer);
                    said.note("Image", file);
                }
                "audio_transcription" if with_text => said.paragraph(&without_marks(name("text"))),
                "audio_asset_pointer" | "real_time_user_audio_video_asset_pointer" if with_text => {
                    said.note("Audio", "");
                }
                _ if with_text => said.paragraph(&without_marks(name("text"))),
                _ => {}
            },
            _ => {}
        }
    }
}

/// Without the marks of sources, which stand between characters of private use.
fn without_marks(text: &str) -> String {
    const BEGIN: char = '\u{e200}';
    const END: char = '\u{e201}';
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        written.push_str(before);
        rest = match after.split_once(END) {
            Some((mark, after)) if mark.len() < 1000 => after,
            _ => after,
        };
    }
    written.push_str(rest);
    written
}

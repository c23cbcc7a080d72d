//! A chat of another program while it is converted.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};
use store::{ChatRecord, MessageRecord, MessageState, Parts, Role, WholeChat};

use super::Source;
use crate::dates::iso_day;
use crate::limits::title;

/// The messages so far.
#[derive(Default)]
pub(crate) struct ChatDraft {
    messages: Vec<MessageRecord>,
    /// Messages that could not be read.
    pub unread: usize,
}

/// The content of a message.
#[derive(Default)]
pub(crate) struct Said {
    pub text: String,
    pub thinking: String,
    /// Tool calls and their results: shown if there is no other content.
    pub tools: String,
    pub thinking_ms: Option<u32>,
    pub at: Option<i64>,
    pub state: Option<MessageState>,
}

impl Said {
    pub fn is_empty(&self) -> bool {
        let texts = [&self.text, &self.thinking, &self.tools];
        texts.iter().all(|text| text.trim().is_empty())
    }

    /// Adds a paragraph to the text.
    pub fn paragraph(&mut self, text: &str) {
        append(&mut self.text, text);
    }

    /// Adds a paragraph to the thinking.
    pub fn thought(&mut self, text: &str) {
        append(&mut self.thinking, text);
    }

    /// Adds a placeholder for content without text.
    pub fn note(&mut self, kind: &str, name: &str) {
        append(&mut self.text, &note(kind, name));
    }

    /// Adds a document with its title, or code, as a fenced block.
    pub fn document(&mut self, kind: &str, name: &str, language: &str, text: &str) {
        self.note(kind, name);
        self.code(language, text);
    }

    /// Adds a change of a document: the old text and the new one.
    pub fn change(&mut self, name: &str, old: &str, new: &str) {
        let lines = |mark: char, text: &str| {
            let lines = text.lines().map(|line| format!("{mark} {line}\n"));
            lines.collect::<String>()
        };
        let change = lines('-', old) + &lines('+', new);
        self.document("Document, changed", name, "diff", &change);
    }

    /// Adds a fenced block.
    pub fn code(&mut self, language: &str, text: &str) {
        append(&mut self.text, &fenced(language, text));
    }

    /// Adds a tool call or its result.
    pub fn tool(&mut self, kind: &str, name: &str, language: &str, text: &str) {
        let block = fenced(language, text);
        if !block.is_empty() {
            append(&mut self.tools, &note(kind, name));
            append(&mut self.tools, &block);
        }
    }

    /// Adds the content of another part of the same message.
    pub fn append(&mut self, other: &Said) {
        self.at = self.at.or(other.at);
        self.paragraph(&other.text);
        self.thought(&other.thinking);
        append(&mut self.tools, &other.tools);
        self.thinking_ms = self.thinking_ms.or(other.thinking_ms);
        self.state = other.state.or(self.state);
    }

    /// Moves the thinking out of a text that begins with it, as models write it.
    pub fn split_thinking(&mut self) {
        let Some(rest) = self.text.trim_start().strip_prefix("<think>") else {
            return;
        };
        let (thinking, text) = rest.split_once("</think>").unwrap_or((rest, ""));
        let (thinking, text) = (thinking.trim().to_owned(), text.trim_start().to_owned());
        append(&mut self.thinking, &thinking);
        self.text = text;
    }
}

fn note(kind: &str, name: &str) -> String {
    let name = title(name);
    if name.is_empty() {
        format!("[{kind}]")
    } else {
        format!("[{kind}: {name}]")
    }
}

/// A block of code whose fence is longer than any in the text; empty if the text is blank.
fn fenced(language: &str, text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let text = text.trim_matches(['\n', '\r']);
    let longest = text.split(|character| character != '`').map(str::len).max();
    let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
    let is_part =
        |character: &char| character.is_ascii_alphanumeric() || "+#-_.".contains(*character);
    let language: String = language.chars().take_while(is_part).take(30).collect();
    format!("{fence}{language}\n{text}\n{fence}")
}

fn append(to: &mut String, text: &str) {
    let text = text.trim_matches(['\n', '\r']);
    if text.trim().is_empty() {
        return;
    }
    if !to.is_empty() {
        to.push_str("\n\n");
    }
    to.push_str(text);
}

impl ChatDraft {
    /// Adds a message; returns its index.
    pub fn add(&mut self, parent: Option<u32>, role: Role, said: Said) -> u32 {
        let id = u32::try_from(self.messages.len() + 1).unwrap_or(u32::MAX);
        let thinking = Some(said.thinking).filter(|thinking| !thinking.is_empty());
        let text = if said.text.trim().is_empty() {
            said.tools
        } else {
            said.text
        };
        self.messages.push(MessageRecord {
            parent,
            state: said.state.unwrap_or(MessageState::Done),
            thinks: thinking.is_some(),
            thinking_ms: said.thinking_ms.filter(|_| thinking.is_some()),
            parts: Parts::of_answer(thinking, text),
            ..MessageRecord::new(id, role, String::new(), said.at.unwrap_or(0))
        });
        id
    }

    /// Returns the chat, which shows the branch to `leaf`.
    pub fn finish(self, about: About, leaf: Option<u32>, zone: &TimeZone) -> ForeignChat {
        let leaf = leaf.or(self.messages.last().map(|last| last.id));
        ForeignChat {
            title: about.title.clone(),
            unread: self.unread,
            outcome: match leaf {
                Some(leaf) => Outcome::Whole(Box::new(self.whole(about, leaf, zone))),
                None => Outcome::Empty,
            },
        }
    }

    fn whole(mut self, about: About, leaf: u32, zone: &TimeZone) -> WholeChat {
        let first_moment = self
            .messages
            .iter()
            .map(|message| message.created_at)
            .find(|at| *at != 0);
        // A chat without any date gets the date of its import: with 1970 it would be the oldest of all.
        let created_at = about.created_at.or(first_moment).unwrap_or_else(now);
        // A message without a date gets that of the one before it.
        let mut before = created_at;
        for message in &mut self.messages {
            if message.created_at == 0 {
                message.created_at = before;
            }
            before = message.created_at;
        }
        let last = self.messages.iter().map(|message| message.created_at).max();
        let mut at = leaf;
        while let Some(parent) = self.messages[at as usize - 1].parent {
            self.messages[parent as usize - 1].shown = Some(at);
            at = parent;
        }
        let chat = ChatRecord {
            updated_at: about
                .updated_at
                .or(last)
                .unwrap_or(created_at)
                .max(created_at),
            ..ChatRecord::new(
                self.uid(&about),
                about.title,
                iso_day(created_at, zone),
                created_at,
                Some(leaf),
            )
        };
        let messages = self.messages;
        WholeChat { chat, messages }
    }

    /// The uid of a chat: its program's id, else one made from its date and title, or from its content.
    fn uid(&self, about: &About) -> String {
        let id = about.id.clone().unwrap_or_else(|| match about.created_at {
            Some(created_at) => format!("{created_at}-{}", about.title),
            None => self.digest(),
        });
        format!("{}:{id}", about.source.key())
    }

    /// A hash of all content.
    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for message in &self.messages {
            digest.update(format!("{:?} {:?}", message.parent, message.role));
            digest.update(message.parts.text().as_bytes());
        }
        let digest: [u8; 32] = digest.finalize().into();
        digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// Returns the seconds since 1970; 0 if the clock is set earlier.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs().cast_signed())
}

/// A chat of another program, as far as it is readable.
pub(crate) struct ForeignChat {
    /// Its title, for reports.
    pub title: String,
    /// Messages of it that could not be read.
    pub unread: usize,
    pub outcome: Outcome,
}

pub(crate) enum Outcome {
    Whole(Box<WholeChat>),
    /// A chat without messages.
    Empty,
    /// A chat that exceeds the limits.
    TooLarge,
}

/// Facts about a chat besides its messages.
pub(crate) struct About {
    pub source: Source,
    /// The program's id of the chat.
    pub id: Option<String>,
    /// The title; empty if its program gave it none.
    pub title: String,
    pub created_at: Option<i64>,
    pub updated_at: Option<i64>,
}

//! A chat of another program on its way to one of ours.

use jiff::tz::TimeZone;
use store::{ChatRecord, MessageRecord, MessageState, Role, WholeChat};

use super::Source;
use crate::dates::iso_day;

/// The messages so far.
#[derive(Default)]
pub(crate) struct ChatDraft {
    pub messages: Vec<MessageRecord>,
}

/// What a message says.
#[derive(Default, Clone)]
pub(crate) struct Said {
    pub text: String,
    pub thinking: String,
    pub thinking_ms: Option<u32>,
    pub at: Option<i64>,
    pub state: Option<MessageState>,
}

impl Said {
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.thinking.trim().is_empty()
    }

    /// Adds a paragraph to the text.
    pub fn paragraph(&mut self, text: &str) {
        append(&mut self.text, text);
    }

    /// Adds a paragraph to the thinking.
    pub fn thought(&mut self, text: &str) {
        append(&mut self.thinking, text);
    }

    /// Stands for something that has no text.
    pub fn note(&mut self, kind: &str, name: &str) {
        let name = name.trim();
        let note = if name.is_empty() {
            format!("[{kind}]")
        } else {
            format!("[{kind}: {name}]")
        };
        append(&mut self.text, &note);
    }

    /// Takes the thinking out of a text that begins with it, as models write it.
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
    /// Adds a message; returns its place.
    pub fn add(&mut self, parent: Option<u32>, role: Role, said: Said) -> u32 {
        let id = u32::try_from(self.messages.len() + 1).unwrap_or(u32::MAX);
        let thinking = Some(said.thinking).filter(|thinking| !thinking.is_empty());
        self.messages.push(MessageRecord {
            parent,
            state: said.state.unwrap_or(MessageState::Done),
            thinks: thinking.is_some(),
            thinking_ms: said.thinking_ms.filter(|_| thinking.is_some()),
            thinking,
            ..MessageRecord::new(id, role, said.text, said.at.unwrap_or(0))
        });
        id
    }

    /// The chat, which shows the branch to `leaf`; `None`: it has no messages.
    pub fn finish(mut self, about: About, leaf: Option<u32>, zone: &TimeZone) -> Option<WholeChat> {
        let leaf = leaf.or(self.messages.last().map(|last| last.id))?;
        let first_moment = self
            .messages
            .iter()
            .map(|message| message.created_at)
            .find(|at| *at != 0);
        let created_at = about.created_at.or(first_moment).unwrap_or(0);
        // A message without a date has that of the one before it.
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
                about.uid,
                about.title,
                iso_day(created_at, zone),
                created_at,
                Some(leaf),
            )
        };
        let messages = self.messages;
        Some(WholeChat { chat, messages })
    }
}

/// What a chat is besides its messages.
pub(crate) struct About {
    pub uid: String,
    /// Empty: its program gave it none.
    pub title: String,
    pub created_at: Option<i64>,
    pub updated_at: Option<i64>,
}

impl About {
    /// Of a program that names chats by `id`; else the moment and the title do.
    pub fn of(
        source: Source,
        id: Option<String>,
        title: Option<String>,
        created_at: Option<i64>,
        updated_at: Option<i64>,
    ) -> About {
        let title = title.unwrap_or_default();
        let id = id.unwrap_or_else(|| format!("{}-{title}", created_at.unwrap_or(0)));
        About {
            uid: format!("{}:{id}", source.key()),
            title,
            created_at,
            updated_at,
        }
    }
}

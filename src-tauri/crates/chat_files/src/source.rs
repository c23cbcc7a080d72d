//! The programs whose exports are read, and the common parts of their chats. The head of each module lists the parts of
//! its format that are read and those that are skipped.
//!
//! Whatever can be read is read: a message, chat or file that cannot is left out and reported. A list that ends in the
//! middle is refused, because the user can download the file again.

pub(crate) mod chatgpt;
pub(crate) mod claude;
pub(crate) mod draft;
mod elements;
pub(crate) mod foreign;
pub(crate) mod jan;
pub(crate) mod lm_studio;
pub(crate) mod moment;
pub(crate) mod openai;
pub(crate) mod value;

use serde::{Deserialize, Serialize};

/// A program that exported chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// This program.
    Goldcrest,
    /// ChatGPT.
    ChatGpt,
    /// Claude.
    Claude,
    /// Jan.
    Jan,
    /// LM Studio.
    LmStudio,
    /// Any program that writes the messages of OpenAI's API.
    OpenAi,
}

impl Source {
    /// Prefix in the uids of its chats.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Source::Goldcrest => "goldcrest",
            Source::ChatGpt => "chatgpt",
            Source::Claude => "claude",
            Source::Jan => "jan",
            Source::LmStudio => "lm-studio",
            Source::OpenAi => "openai",
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Source::Goldcrest => "Goldcrest",
            Source::ChatGpt => "ChatGPT",
            Source::Claude => "Claude",
            Source::Jan => "Jan",
            Source::LmStudio => "LM Studio",
            Source::OpenAi => "files in OpenAI's format",
        }
    }
}

/// The fields by which the first line identifies a file.
#[derive(Default, Deserialize)]
pub(crate) struct FirstLine {
    #[serde(default)]
    pub format: Option<String>,
}

//! The programs whose exports are read, and what their chats have in common.

pub(crate) mod chatgpt;
pub(crate) mod claude;
pub(crate) mod draft;
pub(crate) mod foreign;
pub(crate) mod jan;
pub(crate) mod lm_studio;
pub(crate) mod moment;

use serde::{Deserialize, Serialize};

/// A program that exported chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// This one.
    Goldcrest,
    /// ChatGPT.
    ChatGpt,
    /// Claude.
    Claude,
    /// Jan.
    Jan,
    /// LM Studio.
    LmStudio,
}

impl Source {
    /// In the uids of its chats.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Source::Goldcrest => "goldcrest",
            Source::ChatGpt => "chatgpt",
            Source::Claude => "claude",
            Source::Jan => "jan",
            Source::LmStudio => "lm-studio",
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
        }
    }
}

/// What the first line of a file is looked at for.
#[derive(Default, Deserialize)]
pub(crate) struct FirstLine {
    #[serde(default)]
    pub format: Option<String>,
}

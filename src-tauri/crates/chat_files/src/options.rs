//! Options of an export.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Everything, to be read again: a line per chat and per message.
    Jsonl,
    /// The shown branches, as text.
    Markdown,
    /// The shown branches, as one page that looks like the app.
    Html,
}

impl Format {
    /// The extension of its files, without a dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Markdown => "md",
            Format::Html => "html",
        }
    }

    /// The document of this format; `None` for JSONL, whose records are written without one.
    #[must_use]
    pub fn document(self) -> Option<DocumentKind> {
        match self {
            Format::Jsonl => None,
            Format::Markdown => Some(DocumentKind::Markdown),
            Format::Html => Some(DocumentKind::Html),
        }
    }
}

/// A kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DocumentKind {
    /// Markdown.
    Markdown,
    /// A page that looks like the app.
    Html,
    /// HTML for a page that has the app's style sheets, which prints it.
    Print,
}

/// `progress(done, total)` receives the progress in bytes or chats, and returns true to go on.
pub type OnProgress<'a> = dyn FnMut(u64, u64) -> bool + 'a;

/// Options of documents for readers.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// True to write the thinking. JSONL always has it.
    pub thinking: bool,
    /// The reader's time zone, for dates.
    pub zone: TimeZone,
}

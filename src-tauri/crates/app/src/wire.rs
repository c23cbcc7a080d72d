//! Types that the shell adds to those of `chat` for the page. `ui/src/host/bindings.ts` is generated from these types,
//! from chat's and from the commands.
//!
//! Times are Unix seconds, durations milliseconds, identifiers rows of the store. specta, which writes the TypeScript,
//! is used only in tests.

use std::path::Path;

use ::models::ModelList;
use chat::{ChatEvent, ChatSnapshot};
use download::DownloadState;
use host::environment::Overrides;
use serde::Serialize;
use store::DatabaseCopy;

use crate::folders;
use crate::local_api::ApiState;
use crate::model_check::ModelCheck;

/// Reasons for which the app did not start. `InUse`: another Goldcrest has the data folder; `Held`: another program has
/// the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum StartProblemKind {
    Damaged,
    Missing,
    Newer,
    Foreign,
    Unreadable,
    ReadOnly,
    FolderNotWritable,
    Held,
    DiskFull,
    InUse,
    /// An import from the command line has the data folder.
    Importing,
    /// The data folder is on a disk that is not connected.
    FolderMissing,
    Other,
}

/// Problem at the start, and its remedies.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct StartProblem {
    pub kind: StartProblemKind,
    pub message: String,
    pub folder: String,
    /// Undamaged copies, the newest first.
    pub copies: Vec<DatabaseCopy>,
    /// Name under which the database would be kept; none if there is none, or replacing it would not help.
    pub kept_as: Option<String>,
    /// True if the database is damaged in a part that opening does not read, and can be used as it is.
    pub opens: bool,
}

/// State of the start: whether there is a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum StartState {
    Ready,
    Problem(StartProblem),
}

/// Initial state of the page.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub version: String,
    pub data_folder: String,
    /// Reason for which the data folder cannot be moved, if any.
    pub data_folder_fixed: Option<String>,
    pub log_file: String,
    /// Maximum number of threads that may be set.
    pub max_threads: u32,
    /// Settings without effect, because a flag or the environment has precedence.
    pub overrides: Overrides,
    #[serde(flatten)]
    pub chat: ChatSnapshot,
}

impl Snapshot {
    /// Combines chat's snapshot with the paths of the app.
    pub fn new(chat: ChatSnapshot, data_folder: &Path, log_file: &Path) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            data_folder: text(data_folder),
            data_folder_fixed: folders::fixed(),
            log_file: text(log_file),
            max_threads: chat::max_threads(),
            overrides: Overrides::of_session(),
            chat,
        }
    }
}

/// Topic of the guide; its texts are Markdown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct GuideTopic {
    pub id: &'static str,
    pub page: &'static str,
    pub page_title: &'static str,
    pub title: &'static str,
    /// One paragraph.
    pub answer: String,
    /// Details after the answer; often empty.
    pub details: String,
}

impl From<&'static guide::Topic> for GuideTopic {
    fn from(topic: &'static guide::Topic) -> Self {
        Self {
            id: &topic.id,
            page: topic.page,
            page_title: topic.page_title,
            title: topic.title,
            answer: topic.shown_answer(),
            details: topic.shown_details(),
        }
    }
}

/// Topic that the guide finds for a question, by its id.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "type", content = "topic", rename_all = "camelCase")]
pub enum GuideAnswer {
    Sure(&'static str),
    Unsure(&'static str),
    None,
}

impl From<guide::Match<'static>> for GuideAnswer {
    fn from(found: guide::Match<'static>) -> Self {
        match found {
            guide::Match::Sure(topic) => Self::Sure(&topic.id),
            guide::Match::Unsure(topic) => Self::Unsure(&topic.id),
            guide::Match::None => Self::None,
        }
    }
}

/// Events from the host to the page.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(untagged)]
pub enum HostEvent {
    Chat(ChatEvent),
    Shell(ShellEvent),
}

impl From<ChatEvent> for HostEvent {
    fn from(event: ChatEvent) -> Self {
        Self::Chat(event)
    }
}

impl From<ShellEvent> for HostEvent {
    fn from(event: ShellEvent) -> Self {
        Self::Shell(event)
    }
}

/// Events from the shell itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ShellEvent {
    /// The models page has changed.
    Models { list: ModelList },
    /// Progress of a download; none if it is no longer in the list.
    Download {
        id: String,
        download: Option<DownloadState>,
    },
    /// A download is complete and verified.
    Downloaded {
        id: String,
        file: String,
        /// True if the app opens it by itself, because no model of the user was open.
        opens: bool,
    },
    /// Progress of a check of the open model.
    ModelCheck { check: ModelCheck },
    /// Progress of an export, an import or a move of the data folder.
    Transfer { transfer: ChatTransfer },
    /// A tool server has changed.
    ServersChanged,
    /// The local API has changed.
    ApiChanged { state: ApiState },
    /// A file is dragged over the window.
    Dragging { over: bool },
}

/// A long-running transfer, for display.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct ChatTransfer {
    pub kind: TransferKind,
    pub state: TransferState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum TransferKind {
    Export,
    Import,
    Move,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum TransferState {
    /// The fraction done, 0 to 1.
    Running {
        done: f64,
    },
    /// The chats were written to this file.
    Exported {
        file: String,
        chats: u32,
        /// Sentence about the chats that cannot be imported again.
        note: Option<String>,
    },
    Imported(Imported),
    /// The app restarts with the new folder.
    Moved,
    Cancelled,
    Failed {
        message: String,
    },
    /// It did not start. Another one may be running, which goes on.
    Refused {
        message: String,
    },
}

/// Result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct Imported {
    /// Description in sentences.
    pub message: String,
    /// True if anything was added, which can be undone.
    pub added: bool,
}

//! What the shell adds to what `chat` tells the page. `ui/src/host/bindings.ts` is generated from these types, from
//! chat's and from the commands.
//!
//! Times are unix seconds, durations milliseconds, identifiers rows of the store. specta, which
//! writes the TypeScript, exists in tests alone.

use std::path::Path;

use ::models::{DownloadState, ModelList};
use chat::{ChatEvent, ChatSnapshot, DatabaseCopy};
use serde::Serialize;

use crate::environment::Overrides;
use crate::folders;
use crate::model_check::ModelCheck;

/// Why the app did not start. `InUse`: another Goldcrest has the data folder; `Held`: another
/// program has the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
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

/// What is wrong, and what can be done about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct StartProblem {
    pub kind: StartProblemKind,
    pub message: String,
    pub folder: String,
    /// Those that are whole, the newest first.
    pub copies: Vec<DatabaseCopy>,
    /// The name that the database would get; none where there is none, or another in its place would not help.
    pub kept_as: Option<String>,
    /// The database is damaged in a part that opening does not read, and can be used as it is.
    pub opens: bool,
}

/// Whether there is a snapshot to ask for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum StartState {
    Ready,
    Problem(StartProblem),
}

/// Everything that the page needs to draw itself at start.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub version: String,
    pub data_folder: String,
    /// Why the data folder cannot be moved, where it cannot.
    pub data_folder_fixed: Option<String>,
    pub log_file: String,
    /// The most threads that may be set.
    pub max_threads: u32,
    /// Settings that have no effect, because a flag or the environment goes before them.
    pub overrides: Overrides,
    #[serde(flatten)]
    pub chat: ChatSnapshot,
}

impl Snapshot {
    /// What chat knows, and where the app keeps its things.
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

/// What the host tells the page without being asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
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

/// What the shell itself tells the page.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ShellEvent {
    /// The models page has changed.
    Models { list: ModelList },
    /// A download has come further; none: it is not in the list any more.
    Download {
        id: String,
        download: Option<DownloadState>,
    },
    /// A download is whole and verified.
    Downloaded {
        id: String,
        file: String,
        /// Whether the app opens it by itself, because no model of the user's was open.
        opens: bool,
    },
    /// A check of the open model has come further.
    ModelCheck { check: ModelCheck },
    /// An export, an import or a move of the data folder has come further.
    Transfer { transfer: ChatTransfer },
    /// A file is held over the window.
    Dragging { over: bool },
}

/// Something that takes a while, as the page shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
pub struct ChatTransfer {
    pub kind: TransferKind,
    pub state: TransferState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum TransferKind {
    Export,
    Import,
    Move,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum TransferState {
    /// The fraction done, 0 to 1.
    Running {
        done: f64,
    },
    /// The chats are in this file.
    Exported {
        file: String,
        chats: u32,
        /// A sentence on those that cannot be imported again.
        note: Option<String>,
    },
    Imported(Imported),
    /// The app starts again with the new folder.
    Moved,
    Cancelled,
    Failed {
        message: String,
    },
    /// It did not begin. Another one may be running, and goes on.
    Refused {
        message: String,
    },
}

/// What an import has brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
pub struct Imported {
    /// In sentences.
    pub message: String,
    /// Whether anything was added, which can be undone.
    pub added: bool,
}

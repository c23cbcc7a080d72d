//! What a download reports.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::request::DownloadRequest;

/// A line of the child's stdout. The last one of a download is `Done`, `Paused` or `Failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "event",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum DownloadEvent {
    /// The request with what the server said of it: size, SHA-256, commit. A resume begins with this one.
    Resolved {
        /// The whole request.
        request: DownloadRequest,
    },
    /// How far it is, a few times a second.
    Progress {
        /// Bytes that are on the disk.
        done: u64,
        /// Bytes of the file, where that is known.
        total: Option<u64>,
        /// The speed of the last seconds.
        bytes_per_second: Option<f64>,
    },
    /// The connection failed, and is tried again.
    Waiting {
        /// Why, in a sentence.
        message: String,
        /// In how many seconds.
        seconds: u64,
    },
    /// All is there, and its SHA-256 is computed.
    Verifying {
        /// Bytes that were read.
        done: u64,
        /// Bytes of the file.
        total: u64,
    },
    /// The file is whole and verified.
    Done {
        /// Where it is.
        file: PathBuf,
        /// SHA-256 of its content, in lower case.
        sha256: String,
        /// Its size.
        bytes: u64,
    },
    /// It was stopped, and what was written is on the disk.
    Paused {
        /// Bytes that are on the disk.
        done: u64,
    },
    /// It ended without the file.
    Failed {
        /// Why, and what to do, in a sentence or two.
        message: String,
        /// Whether what was written is kept for a resume.
        can_resume: bool,
    },
}

impl DownloadEvent {
    /// Whether nothing comes after it.
    pub fn is_last(&self) -> bool {
        matches!(
            self,
            Self::Done { .. } | Self::Paused { .. } | Self::Failed { .. }
        )
    }
}

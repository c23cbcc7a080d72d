//! Events of a download.

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
    /// The request completed with what the server reported: size, SHA-256, commit. A resume begins with this one.
    Resolved {
        /// The whole request.
        request: DownloadRequest,
    },
    /// Progress, a few times a second.
    Progress {
        /// Bytes on the disk.
        done: u64,
        /// Size of the file, if known.
        total: Option<u64>,
        /// Speed over the last seconds.
        bytes_per_second: Option<f64>,
    },
    /// The connection failed, and is retried.
    Waiting {
        /// Reason, in a sentence.
        message: String,
        /// Seconds until the retry.
        seconds: u64,
    },
    /// The file is complete, and its SHA-256 is being computed.
    Verifying {
        /// Bytes hashed.
        done: u64,
        /// Bytes of the file.
        total: u64,
    },
    /// The file is complete and verified.
    Done {
        /// Path of the file.
        file: PathBuf,
        /// SHA-256 of its content, in lower case.
        sha256: String,
        /// Its size.
        bytes: u64,
    },
    /// It was stopped; what was written is on the disk.
    Paused {
        /// Bytes on the disk.
        done: u64,
    },
    /// It ended without the file.
    Failed {
        /// Reason and remedy, in a sentence or two.
        message: String,
        /// True if what was written is kept for a resume.
        can_resume: bool,
    },
}

impl DownloadEvent {
    /// Returns whether this is the last event of a download.
    pub fn is_last(&self) -> bool {
        matches!(
            self,
            Self::Done { .. } | Self::Paused { .. } | Self::Failed { .. }
        )
    }
}

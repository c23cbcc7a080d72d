//! Downloads and their storage. The request of each is on the disk until its file is complete, so that a download that
//! was interrupted, even by a crash, is listed after the next start.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::mem::Discriminant;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ::models::ListedDownload;
use download::{Destination, Download, DownloadRequest, DownloadState};
use serde::{Deserialize, Serialize};

/// List of unfinished downloads, in the data folder.
pub const DOWNLOADS_FILE: &str = "downloads.json";

/// All downloads by the ids of their entries, and the file that stores them.
pub(super) struct Downloads {
    file: PathBuf,
    pub(super) all: BTreeMap<String, ActiveDownload>,
    /// Counter of the child processes: events of a replaced child are ignored.
    pub(super) starts: u64,
}

/// A download that is running, paused or failed.
pub(super) struct ActiveDownload {
    pub(super) request: DownloadRequest,
    pub(super) state: DownloadState,
    pub(super) child: Option<RunningChild>,
    pub(super) next: Next,
    /// Time and kind of the state that was sent to the page last.
    pub(super) sent: Option<(Instant, Discriminant<DownloadState>)>,
}

/// Next step after the child of a download has ended, or its partial file is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It stays as it is.
    Stay,
    /// It is dropped, with its partial file.
    Drop,
    /// It was dropped and then requested again.
    Start,
}

pub(super) struct RunningChild {
    pub(super) number: u64,
    pub(super) download: Download,
}

/// A download on the disk.
#[derive(Serialize, Deserialize)]
struct StoredDownload {
    id: String,
    request: DownloadRequest,
    /// Reason for which it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// Rewrites the paths of folders in a list of downloads. `moved` returns the new location of a path, if it has one.
pub fn relocate(file: &Path, moved: &dyn Fn(&Path) -> Option<PathBuf>) -> io::Result<()> {
    let mut stored = stored(file);
    let mut is_changed = false;
    for download in &mut stored {
        let (Destination::HubCache { hub: root, .. } | Destination::Folder { folder: root, .. }) =
            &mut download.request.destination;
        if let Some(now) = moved(root) {
            *root = now;
            is_changed = true;
        }
    }
    if is_changed {
        system::private::replace(file, &serde_json::to_vec_pretty(&stored)?)?;
    }
    Ok(())
}

fn stored(file: &Path) -> Vec<StoredDownload> {
    let text = fs::read(file).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

impl Downloads {
    /// Reads the unfinished downloads. A damaged file yields none: their partial files stay, and are used when they are
    /// started again.
    pub(super) fn read(file: &Path) -> Downloads {
        let all = stored(file).into_iter().map(
            |StoredDownload {
                 id,
                 request,
                 failed,
             }| {
                let mut download = ActiveDownload::paused(request, 0);
                if let Some(message) = failed {
                    download.state = download.state.failed(message);
                }
                (id, download)
            },
        );
        Downloads {
            file: file.to_owned(),
            all: all.collect(),
            starts: 0,
        }
    }

    /// Returns the downloads for the list.
    pub(super) fn listed(&self) -> BTreeMap<String, ListedDownload> {
        let shown = self.kept();
        let listed = |(id, it): (&String, &ActiveDownload)| {
            let listed = ListedDownload {
                file: it.request.file_name().to_owned(),
                url: it.request.url.clone(),
                state: it.state.clone(),
            };
            (id.clone(), listed)
        };
        shown.map(listed).collect()
    }

    /// Returns the downloads that are not dropped.
    fn kept(&self) -> impl Iterator<Item = (&String, &ActiveDownload)> {
        let all = self.all.iter();
        all.filter(|(_, download)| download.next != Next::Drop)
    }

    pub(super) fn save(&self) {
        let stored: Vec<_> = self
            .kept()
            .map(|(id, download)| StoredDownload {
                id: id.clone(),
                request: download.request.clone(),
                failed: match &download.state {
                    DownloadState::Failed { message, .. } => Some(message.clone()),
                    _ => None,
                },
            })
            .collect();
        let saved = serde_json::to_vec_pretty(&stored).map_err(std::io::Error::from);
        let saved = saved.and_then(|json| system::private::replace(&self.file, &json));
        if let Err(error) = saved {
            tracing::warn!(file = %self.file.display(), %error, "the list of downloads was not saved");
        }
    }
}

impl ActiveDownload {
    /// Returns whether its destination is a folder, or one below it.
    pub(super) fn is_within(&self, folder: &Path) -> bool {
        is_within(&self.request, folder)
    }

    pub(super) fn paused(request: DownloadRequest, done: u64) -> Self {
        Self {
            state: DownloadState::Paused {
                done,
                total: request.bytes,
            },
            request,
            child: None,
            next: Next::Stay,
            sent: None,
        }
    }
}

/// Returns whether a download's destination is a folder, or one below it.
pub(super) fn is_within(request: &DownloadRequest, folder: &Path) -> bool {
    let (Destination::HubCache { hub: root, .. } | Destination::Folder { folder: root, .. }) =
        &request.destination;
    // The nearest existing folder may have another name.
    let real = root.ancestors().find_map(|above| above.canonicalize().ok());
    root.starts_with(folder) || real.is_some_and(|real| real.starts_with(folder))
}

//! File dialogs, which begin in the folder that was used last: a system's own choice is a list of recent files, or the
//! folder in which the app was started.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use app::folders::{DIALOGS_FILE, Folders};
use directories::UserDirs;
use serde::{Deserialize, Serialize};
use system::private;

use crate::desktop::{Desktop, FileFilter};

/// Purpose of a file dialog. Each begins in the folder that was last used for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    Import,
    Model,
    Export,
}

/// The desktop's file dialogs, and the folders in which they begin.
pub struct FileDialogs {
    desktop: Arc<dyn Desktop>,
    file: PathBuf,
}

impl FileDialogs {
    pub fn new(desktop: &Arc<dyn Desktop>, folders: &Folders) -> Self {
        Self {
            desktop: Arc::clone(desktop),
            file: folders.data.join(DIALOGS_FILE),
        }
    }

    /// Lets the person choose files, or one; none if the dialog was closed.
    pub fn open_files(
        &self,
        purpose: Purpose,
        title: &str,
        filter: FileFilter,
        many: bool,
    ) -> Vec<PathBuf> {
        let from = self.beginning(purpose);
        let files = self
            .desktop
            .open_files(title, filter, from.as_deref(), many);
        self.remember(purpose, files.first());
        files
    }

    /// Lets the person choose the path of a file to export to; `None` if the dialog was closed.
    pub fn save_file(&self, title: &str, name: &str) -> Option<PathBuf> {
        let from = self.beginning(Purpose::Export);
        let file = self.desktop.save_file(title, name, from.as_deref());
        self.remember(Purpose::Export, file.as_ref());
        file
    }

    /// Returns the folder in which a dialog begins; `None` leaves the choice to the system.
    fn beginning(&self, purpose: Purpose) -> Option<PathBuf> {
        let last = self.last().remove(&purpose);
        last.into_iter()
            .chain(usual(purpose))
            .find(|folder| folder.is_dir())
    }

    /// Reads the folders that were used last; a damaged file has none.
    fn last(&self) -> BTreeMap<Purpose, PathBuf> {
        let text = fs::read(&self.file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Remembers the folder of a chosen file.
    fn remember(&self, purpose: Purpose, chosen: Option<&PathBuf>) {
        let Some(folder) = chosen.and_then(|file| file.parent()) else {
            return;
        };
        let mut all = self.last();
        if all.get(&purpose).is_some_and(|last| last == folder) {
            return;
        }
        all.insert(purpose, folder.to_owned());
        let saved = serde_json::to_vec(&all).map_err(std::io::Error::from);
        let saved = saved.and_then(|json| private::replace(&self.file, &json));
        if let Err(error) = saved {
            tracing::warn!(%error, "the folder of a dialog was not saved");
        }
    }
}

/// Returns the usual folders for a purpose, the best one first: by their names in the person's language, else by those
/// that a Linux desktop gives them.
fn usual(purpose: Purpose) -> Vec<PathBuf> {
    let Some(user) = UserDirs::new() else {
        return Vec::new();
    };
    let (named, name) = match purpose {
        Purpose::Export => (user.document_dir(), "Documents"),
        Purpose::Import | Purpose::Model => (user.download_dir(), "Downloads"),
    };
    let home = user.home_dir();
    let named = named.map(Path::to_owned);
    named
        .into_iter()
        .chain([home.join(name), home.to_owned()])
        .collect()
}

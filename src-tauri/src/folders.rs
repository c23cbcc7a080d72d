//! Where the app keeps its things: one folder with the database, the log and the page's own data.

use std::path::PathBuf;

use crate::logging;

/// Overrides the platform's folder for application data.
const DATA_DIR: &str = "GOLDCREST_DATA_DIR";

/// The app's folders.
#[derive(Debug, Clone)]
pub struct Folders {
    pub data: PathBuf,
}

impl Folders {
    /// Those of this user; nothing is made yet. None when the machine has no home folder for them.
    pub fn of_user() -> Option<Self> {
        let data = match std::env::var_os(DATA_DIR) {
            Some(folder) if !folder.is_empty() => std::path::absolute(folder).ok()?,
            _ => directories::ProjectDirs::from("org", "goldcrest", "Goldcrest")?
                .data_local_dir()
                .to_owned(),
        };
        Some(Self { data })
    }

    pub fn database(&self) -> PathBuf {
        self.data.join("goldcrest.db")
    }

    pub fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }

    pub fn log_file(&self) -> PathBuf {
        logging::file_of_today(&self.logs())
    }

    /// The KV caches of chats; may be deleted while the app is closed.
    pub fn kv_caches(&self) -> PathBuf {
        self.data.join("kv")
    }

    /// What the web view keeps for itself; nothing of the person's is in it.
    pub fn web_view(&self) -> PathBuf {
        self.data.join("webview")
    }
}

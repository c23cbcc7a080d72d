//! Where the app keeps its things: one folder with the database, the log and the page's own data.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use directories::ProjectDirs;

use crate::data_pointer::DataPointer;
use crate::logging;

/// Overrides the platform's folder for application data, and the one to which that was moved.
pub const DATA_DIR: &str = "GOLDCREST_DATA_DIR";

/// In the data folder: the chats.
pub const DATABASE: &str = "goldcrest.db";
/// In the data folder: the lock of the app that has it open, and what the web view keeps for itself.
pub const LOCK_FILE: &str = "goldcrest.lock";
pub const WEB_VIEW: &str = "webview";

/// The app's folders.
#[derive(Debug, Clone)]
pub struct Folders {
    pub data: PathBuf,
}

impl Folders {
    /// Those of this user; nothing is made yet. None when the machine has no home folder for them.
    pub fn of_user() -> Option<Self> {
        if let Some(folder) = from_environment() {
            let data = std::path::absolute(folder).ok()?;
            return Some(Self { data });
        }
        let usual = of_platform()?.data_local_dir().to_owned();
        let data = match pointer().as_deref().map(DataPointer::read) {
            Some(Ok(Some(pointer))) => pointer.folder,
            Some(Err(error)) => {
                tracing::error!(%error, "where the data folder was moved to cannot be read");
                usual
            }
            _ => usual,
        };
        Some(Self { data })
    }

    pub fn database(&self) -> PathBuf {
        self.data.join(DATABASE)
    }

    /// Whether the chats are there, or copies of them.
    pub fn has_chats(&self) -> bool {
        self.database().exists() || self.data.join("copies").is_dir()
    }

    /// True for a file in the data folder, even one that does not exist yet.
    pub fn hold(&self, file: &Path) -> bool {
        let folder = file.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).canonicalize();
        let data = self.data.canonicalize();
        matches!((folder, data), (Ok(folder), Ok(data)) if folder.starts_with(&data))
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
        self.data.join(WEB_VIEW)
    }
}

/// The file that names the data folder once it was moved.
pub fn pointer() -> Option<PathBuf> {
    Some(of_platform()?.config_dir().join("data-folder.json"))
}

/// Why the data folder cannot be moved, where it cannot: the environment names it.
pub fn fixed() -> Option<String> {
    from_environment().map(|_| format!("Set by {DATA_DIR}. Change it there to move the folder."))
}

/// Why the data folder cannot be used: it was moved to a disk that is not connected, say. It must not be begun again, empty.
pub fn fault(folders: &Folders) -> Option<String> {
    let file = pointer().filter(|_| fixed().is_none())?;
    match DataPointer::read(&file) {
        Err(error) => Some(format!(
            "{} says where your chats are, and cannot be read ({error}).",
            file.display()
        )),
        Ok(Some(pointer)) if pointer.folder == folders.data && !folders.has_chats() => {
            Some(format!(
                "Your chats were moved to {}, and that folder is missing.",
                folders.data.display()
            ))
        }
        Ok(_) => None,
    }
}

fn from_environment() -> Option<OsString> {
    std::env::var_os(DATA_DIR).filter(|folder| !folder.is_empty())
}

fn of_platform() -> Option<ProjectDirs> {
    ProjectDirs::from("org", "goldcrest", "Goldcrest")
}

//! Folders of the app: one with the database, the log and the page's own data.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use directories::ProjectDirs;

use crate::data_pointer::DataPointer;
use crate::logging;

/// Overrides the platform's folder for application data, and the one to which it was moved.
pub const DATA_DIR: &str = "GOLDCREST_DATA_DIR";

/// Database of the chats, in the data folder.
pub const DATABASE: &str = "goldcrest.db";
/// Lock of the app that has the data folder open, and the web view's own data, in the data folder.
pub const LOCK_FILE: &str = "goldcrest.lock";
pub const WEB_VIEW: &str = "webview";
/// Folders of file dialogs that were used last, in the data folder.
pub const DIALOGS_FILE: &str = "dialogs.json";

/// The app's folders.
#[derive(Debug, Clone)]
pub struct Folders {
    pub data: PathBuf,
}

impl Folders {
    /// Returns the folders of this user, without creating them; `None` if the machine has no home folder for them.
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

    /// Returns whether the chats, or copies of them, exist.
    pub fn has_chats(&self) -> bool {
        self.database().exists() || self.data.join("copies").is_dir()
    }

    /// Returns whether a file is in the data folder, even if it does not exist yet.
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

    /// Returns the folder of the chats' KV caches; it may be deleted while the app is closed.
    pub fn kv_caches(&self) -> PathBuf {
        self.data.join("kv")
    }

    /// Returns the folder of the web view's own data, which holds nothing of the person's.
    pub fn web_view(&self) -> PathBuf {
        self.data.join(WEB_VIEW)
    }
}

/// Returns the file that names the data folder once it was moved.
pub fn pointer() -> Option<PathBuf> {
    Some(of_platform()?.config_dir().join("data-folder.json"))
}

/// Returns the reason for which the data folder cannot be moved, if the environment names it.
pub fn fixed() -> Option<String> {
    from_environment().map(|_| format!("Set by {DATA_DIR}. Change it there to move the folder."))
}

/// Returns the reason for which the data folder cannot be used, such as a disk that is not connected. It must not be
/// created again, empty.
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

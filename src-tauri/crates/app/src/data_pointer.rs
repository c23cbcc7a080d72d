//! The small file that names the data folder once it was moved. It is not in the store, because that is in the folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use system::private;

/// The file that names the data folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataPointer {
    pub folder: PathBuf,
    /// Former folder, to be emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<PathBuf>,
}

impl DataPointer {
    /// Reads the file, if it exists. An invalid one is an error: the chats are somewhere.
    pub fn read(file: &Path) -> io::Result<Option<DataPointer>> {
        let text = match fs::read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(serde_json::from_slice(&text)?))
    }

    /// Writes the file atomically, and syncs it.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        private::replace(file, &serde_json::to_vec(self)?)?;
        // The file names the folder already: a failure here is not one of the write.
        let _ = private::sync_parent(file);
        Ok(())
    }
}

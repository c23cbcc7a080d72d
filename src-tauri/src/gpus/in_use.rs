//! Marks that a GPU is at work, so that the next start knows when a process has died over it.
//!
//! The mark is a file that its process keeps locked: whoever finds one that nobody holds has found a death.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::known::Key;

const PREFIX: &str = "gpu-in-use-";

/// A GPU at work; the mark goes with it.
#[derive(Debug)]
pub struct InUse {
    file: PathBuf,
    _locked: File,
}

impl InUse {
    /// The mark of this process.
    pub fn file_of(folder: &Path) -> PathBuf {
        folder.join(format!("{PREFIX}{}", std::process::id()))
    }

    /// Takes the mark of this process back: whoever ends it on purpose blames nobody.
    pub fn withdraw(folder: &Path) {
        // Mostly there is none.
        let _ = fs::remove_file(Self::file_of(folder));
    }

    pub fn begin(folder: &Path, key: &Key) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let part = folder.join(format!("gpu-begins-{}", std::process::id()));
        let file = Self::file_of(folder);
        let mut locked = File::create(&part)?;
        locked.lock()?;
        locked.write_all(&serde_json::to_vec(key)?)?;
        // Only now, so that nobody sees it unlocked.
        fs::rename(part, &file)?;
        Ok(Self {
            file,
            _locked: locked,
        })
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.file) {
            tracing::warn!(%error, "the mark that a GPU is at work stays");
        }
    }
}

/// GPUs over which processes have died, each told once.
pub fn deaths(folder: &Path) -> Vec<Key> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let marks = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    marks.filter_map(|mark| died(&mark.path())).collect()
}

fn died(mark: &Path) -> Option<Key> {
    File::open(mark).ok()?.try_lock().ok()?;
    let key = serde_json::from_slice(&fs::read(mark).ok()?);
    fs::remove_file(mark).ok()?;
    key.ok()
}

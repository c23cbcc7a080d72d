//! Crash markers for work that may crash a process (a GPU's driver, a model file), for the next start to find.
//!
//! A marker is a file that its process keeps locked: an unlocked one is stale, left by a crash.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;
use system::private;

/// Work that a marker protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// A GPU computes.
    GpuInUse,
    /// A model is being opened.
    Opening,
}

impl Work {
    const ALL: [Self; 2] = [Self::GpuInUse, Self::Opening];

    /// Prefix of the file name; the process id follows.
    fn prefix(self) -> &'static str {
        match self {
            Self::GpuInUse => "gpu-in-use-",
            Self::Opening => "opening-",
        }
    }

    /// Returns whether a marker of this work has this name.
    fn has_marker(self, name: &OsStr) -> bool {
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(self.prefix()));
        process.is_some_and(|it| it.bytes().all(|it| matches!(it, b'0'..=b'9' | b'-')))
    }
}

/// A unique id of this process: process ids alone are reused, in a sandbox at each start.
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = now.map_or(0, |time| time.as_nanos());
    format!("{}-{nanoseconds}", std::process::id())
});

/// The markers in the data folder: those of this process, and stale ones. Clones belong to the same process.
#[derive(Debug, Clone)]
pub struct CrashMarkers {
    folder: PathBuf,
    /// True once no more markers are set.
    withdrawn: Arc<Mutex<bool>>,
}

/// Work in progress; dropping it removes the marker.
#[derive(Debug)]
pub struct CrashMarker {
    file: PathBuf,
    _locked: File,
}

impl CrashMarkers {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            withdrawn: Arc::default(),
        }
    }

    /// Returns whether a file of this name is a marker.
    pub fn is_marker(name: &OsStr) -> bool {
        Work::ALL.iter().any(|work| work.has_marker(name))
    }

    /// Sets a marker for work on `subject`. `None` if that fails, which does not prevent the work, or if this process
    /// is about to exit.
    pub fn begin(&self, work: Work, subject: &impl Serialize) -> Option<CrashMarker> {
        let withdrawn = self
            .withdrawn
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *withdrawn {
            return None;
        }
        self.make(work, subject)
            .inspect_err(|error| tracing::warn!(%error, ?work, "could not set a crash marker"))
            .ok()
    }

    fn make(&self, work: Work, subject: &impl Serialize) -> io::Result<CrashMarker> {
        private::folder(&self.folder)?;
        let file = self.file(work);
        let part = self.folder.join(format!("mark-{}", *PROCESS));
        private::file(&part)?;
        let mut locked = File::create(&part)?;
        locked.lock()?;
        locked.write_all(&serde_json::to_vec(subject)?)?;
        // Renamed only now, so that no process sees it unlocked.
        fs::rename(part, &file)?;
        Ok(CrashMarker {
            file,
            _locked: locked,
        })
    }

    /// Returns the marker of this process.
    pub fn file(&self, work: Work) -> PathBuf {
        self.folder.join(format!("{}{}", work.prefix(), *PROCESS))
    }

    /// Removes the markers of this process and sets no more: an exit on purpose is not a crash.
    pub fn withdraw(&self) {
        let mut withdrawn = self
            .withdrawn
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *withdrawn = true;
        for work in Work::ALL {
            // Usually there is none.
            let _ = fs::remove_file(self.file(work));
        }
    }

    /// Subjects of stale markers; the markers stay.
    pub fn crashes<T: DeserializeOwned>(&self, work: Work) -> Vec<T> {
        self.stale(work, |_| false)
    }

    /// Subjects of stale markers, which are removed.
    pub fn take_crashes<T: DeserializeOwned>(&self, work: Work) -> Vec<T> {
        self.stale(work, |_| true)
    }

    /// Removes the stale markers of `subject`.
    pub fn forget<T: DeserializeOwned + PartialEq>(&self, work: Work, subject: &T) {
        self.stale(work, |found: &T| found == subject);
    }

    fn stale<T: DeserializeOwned>(&self, work: Work, remove: impl Fn(&T) -> bool) -> Vec<T> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        // A link, a folder or a pipe is not a marker: opening a pipe waits for its writer.
        let stale_files = entries.flatten().filter(|entry| {
            work.has_marker(&entry.file_name())
                && entry.file_type().is_ok_and(|kind| kind.is_file())
        });
        stale_files
            .filter_map(|marker| subject(&marker.path(), &remove))
            .collect()
    }
}

/// Returns the subject of a stale marker.
fn subject<T: DeserializeOwned>(marker: &Path, remove: impl Fn(&T) -> bool) -> Option<T> {
    File::open(marker).ok()?.try_lock().ok()?;
    let Ok(subject) = serde_json::from_slice(&fs::read(marker).ok()?) else {
        // Written by another version, or truncated by a power failure.
        let _ = fs::remove_file(marker);
        return None;
    };
    if remove(&subject) {
        fs::remove_file(marker).ok()?;
    }
    Some(subject)
}

impl Drop for CrashMarker {
    fn drop(&mut self) {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "could not remove a crash marker");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markers() -> (tempfile::TempDir, CrashMarkers) {
        let folder = tempfile::tempdir().expect("a folder");
        let markers = CrashMarkers::new(folder.path());
        (folder, markers)
    }

    /// Leaves a stale marker.
    fn crash(folder: &Path, name: &str, text: &str) {
        fs::write(folder.join(name), text).expect("written");
    }

    #[test]
    fn a_held_marker_exists_and_is_not_stale() {
        let (_folder, markers) = markers();
        let work = markers.begin(Work::Opening, &"mine.gguf").expect("marked");
        assert!(markers.file(Work::Opening).exists());
        assert!(!markers.file(Work::GpuInUse).exists());
        assert_eq!(
            markers.take_crashes::<String>(Work::Opening),
            [""; 0],
            "it is held"
        );
        drop(work);
        assert!(!markers.file(Work::Opening).exists());
    }

    #[test]
    fn stale_markers_are_listed_taken_and_removed() {
        let (folder, markers) = markers();
        crash(folder.path(), "opening-1", "\"a\"");
        crash(folder.path(), "opening-2", "\"b\"");
        crash(folder.path(), "opening-3", "no JSON");
        crash(folder.path(), "opening-hours", "\"c\"");
        let mut found = markers.crashes::<String>(Work::Opening);
        found.sort();
        assert_eq!(found, ["a", "b"]);
        let is_there = |name: &str| folder.path().join(name).exists();
        assert!(!is_there("opening-3"), "invalid content");
        assert!(is_there("opening-hours"), "another file");
        assert_eq!(markers.crashes::<String>(Work::GpuInUse), [""; 0]);
        markers.forget(Work::Opening, &"a".to_owned());
        assert_eq!(markers.take_crashes::<String>(Work::Opening), ["b"]);
        assert_eq!(markers.crashes::<String>(Work::Opening), [""; 0]);
    }

    #[test]
    fn after_withdraw_no_marker_is_left_or_set() {
        let (_folder, markers) = markers();
        let work = markers.begin(Work::GpuInUse, &1);
        markers.withdraw();
        assert!(!markers.file(Work::GpuInUse).exists());
        assert!(markers.clone().begin(Work::Opening, &2).is_none());
        drop(work);
        assert!(markers.crashes::<u32>(Work::Opening).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_and_folders_are_not_markers() {
        let (folder, markers) = markers();
        crash(folder.path(), "elsewhere", "\"a\"");
        let link = folder.path().join("opening-1");
        std::os::unix::fs::symlink("elsewhere", &link).expect("linked");
        fs::create_dir(folder.path().join("opening-2")).expect("made");
        assert_eq!(markers.take_crashes::<String>(Work::Opening), [""; 0]);
        assert!(link.exists() && folder.path().join("opening-2").exists());
    }

    #[test]
    fn a_missing_folder_has_no_stale_markers_and_is_created() {
        let home = tempfile::tempdir().expect("a folder");
        let markers = CrashMarkers::new(&home.path().join("data"));
        assert_eq!(markers.crashes::<String>(Work::Opening), [""; 0]);
        let work = markers.begin(Work::GpuInUse, &1);
        assert!(work.is_some() && markers.file(Work::GpuInUse).exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_marker_is_private() {
        let (_folder, markers) = markers();
        let _work = markers.begin(Work::Opening, &"mine.gguf").expect("marked");
        let metadata = markers.file(Work::Opening).metadata().expect("there");
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

//! Marks of work over which a process may die (a GPU's driver, a model file), so that the next start knows of it.
//!
//! A mark is a file that its process keeps locked: one that nobody holds was left by a crash.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;
use system::private;

/// What a process was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// A GPU computes.
    GpuInUse,
    /// A model is being opened.
    Opening,
}

impl Work {
    const ALL: [Self; 2] = [Self::GpuInUse, Self::Opening];

    /// How the names of its marks begin; what names the process follows.
    fn prefix(self) -> &'static str {
        match self {
            Self::GpuInUse => "gpu-in-use-",
            Self::Opening => "opening-",
        }
    }
}

/// Names this process: its number alone is given again, in a sandbox at each start.
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = now.map_or(0, |time| time.as_nanos());
    format!("{}-{nanoseconds}", std::process::id())
});

/// The marks in the data folder: those of this process, and those that crashes have left. Clones are of one process.
#[derive(Debug, Clone)]
pub struct CrashMarkers {
    folder: PathBuf,
    /// Nothing is marked any more.
    withdrawn: Arc<Mutex<bool>>,
}

/// Work that is going on; its mark goes when this is dropped.
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

    /// Marks that this process works on `subject`. None where the mark cannot be made, which is no reason not to work,
    /// or where this process is about to end.
    pub fn begin(&self, work: Work, subject: &impl Serialize) -> Option<CrashMarker> {
        let withdrawn = self
            .withdrawn
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *withdrawn {
            return None;
        }
        self.make(work, subject)
            .inspect_err(|error| tracing::warn!(%error, ?work, "no mark was made"))
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
        // Only now, so that nobody sees it unlocked.
        fs::rename(part, &file)?;
        Ok(CrashMarker {
            file,
            _locked: locked,
        })
    }

    /// The mark of this process.
    pub fn file(&self, work: Work) -> PathBuf {
        self.folder.join(format!("{}{}", work.prefix(), *PROCESS))
    }

    /// Takes the marks of this process back and makes no more: whoever ends it on purpose blames nobody.
    pub fn withdraw(&self) {
        let mut withdrawn = self
            .withdrawn
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *withdrawn = true;
        for work in Work::ALL {
            // Mostly there is none.
            let _ = fs::remove_file(self.file(work));
        }
    }

    /// What processes have crashed over; the marks stay.
    pub fn crashes<T: DeserializeOwned>(&self, work: Work) -> Vec<T> {
        self.stale(work, |_| false)
    }

    /// What processes have crashed over, each said once: the marks go.
    pub fn take_crashes<T: DeserializeOwned>(&self, work: Work) -> Vec<T> {
        self.stale(work, |_| true)
    }

    /// Removes the marks that crashes over `subject` have left.
    pub fn forget<T: DeserializeOwned + PartialEq>(&self, work: Work, subject: &T) {
        self.stale(work, |found: &T| found == subject);
    }

    fn stale<T: DeserializeOwned>(&self, work: Work, remove: impl Fn(&T) -> bool) -> Vec<T> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let is_mark = |name: &str| {
            name.strip_prefix(work.prefix())
                .is_some_and(|process| process.bytes().all(|it| matches!(it, b'0'..=b'9' | b'-')))
        };
        // A link, a folder or a pipe of such a name is not ours: opening a pipe waits for its writer.
        let marks = entries.flatten().filter(|entry| {
            entry.file_name().to_str().is_some_and(is_mark)
                && entry.file_type().is_ok_and(|kind| kind.is_file())
        });
        marks
            .filter_map(|mark| subject(&mark.path(), &remove))
            .collect()
    }
}

/// What a mark that nobody holds is about.
fn subject<T: DeserializeOwned>(mark: &Path, remove: impl Fn(&T) -> bool) -> Option<T> {
    File::open(mark).ok()?.try_lock().ok()?;
    let Ok(subject) = serde_json::from_slice(&fs::read(mark).ok()?) else {
        // Of another version, or cut short by a power cut: it says nothing.
        let _ = fs::remove_file(mark);
        return None;
    };
    if remove(&subject) {
        fs::remove_file(mark).ok()?;
    }
    Some(subject)
}

impl Drop for CrashMarker {
    fn drop(&mut self) {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "the mark of work that is done stays");
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

    /// Leaves a mark as a process that crashed does.
    fn crash(folder: &Path, name: &str, text: &str) {
        fs::write(folder.join(name), text).expect("written");
    }

    #[test]
    fn a_mark_is_there_while_the_work_goes_on_and_nobody_takes_it_for_a_crash() {
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
    fn crashes_are_found_kept_taken_and_forgotten() {
        let (folder, markers) = markers();
        crash(folder.path(), "opening-1", "\"a\"");
        crash(folder.path(), "opening-2", "\"b\"");
        crash(folder.path(), "opening-3", "no JSON");
        crash(folder.path(), "opening-hours", "\"c\"");
        let mut found = markers.crashes::<String>(Work::Opening);
        found.sort();
        assert_eq!(found, ["a", "b"]);
        let is_there = |name: &str| folder.path().join(name).exists();
        assert!(!is_there("opening-3"), "it says nothing");
        assert!(is_there("opening-hours"), "another file");
        assert_eq!(markers.crashes::<String>(Work::GpuInUse), [""; 0]);
        markers.forget(Work::Opening, &"a".to_owned());
        assert_eq!(markers.take_crashes::<String>(Work::Opening), ["b"]);
        assert_eq!(markers.crashes::<String>(Work::Opening), [""; 0]);
    }

    #[test]
    fn who_ends_on_purpose_leaves_no_mark_and_makes_none() {
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
    fn what_is_no_file_is_no_mark_and_stays() {
        let (folder, markers) = markers();
        crash(folder.path(), "elsewhere", "\"a\"");
        let link = folder.path().join("opening-1");
        std::os::unix::fs::symlink("elsewhere", &link).expect("linked");
        fs::create_dir(folder.path().join("opening-2")).expect("made");
        assert_eq!(markers.take_crashes::<String>(Work::Opening), [""; 0]);
        assert!(link.exists() && folder.path().join("opening-2").exists());
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_crashes_and_is_made_for_a_mark() {
        let home = tempfile::tempdir().expect("a folder");
        let markers = CrashMarkers::new(&home.path().join("data"));
        assert_eq!(markers.crashes::<String>(Work::Opening), [""; 0]);
        let work = markers.begin(Work::GpuInUse, &1);
        assert!(work.is_some() && markers.file(Work::GpuInUse).exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_mark_is_private() {
        let (_folder, markers) = markers();
        let _work = markers.begin(Work::Opening, &"mine.gguf").expect("marked");
        let metadata = markers.file(Work::Opening).metadata().expect("there");
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

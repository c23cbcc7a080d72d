//! Facts about model files and this computer: a cache in the data folder, which may be deleted.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use system::private;

use crate::stamp::FileStamp;

/// Maximum files in the cache; the least recently used are removed first (LRU).
const MAX_FILES: usize = 200;

/// Facts about one file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FileFacts {
    /// Its SHA-256, once that is computed.
    pub sha256: Option<String>,
    /// The rate of its last long answer.
    #[serde(default)]
    pub rate: Option<WritingRate>,
    /// Path by which it was opened, if it was.
    #[serde(default)]
    pub opened_as: Option<PathBuf>,
    /// Number of its last opening, counted over all files; 0 if it was not opened.
    #[serde(default)]
    last_opened: u64,
    /// Counter of changes over all files, for the LRU order.
    #[serde(default)]
    last_use: u64,
}

/// A rate at which a model has written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WritingRate {
    /// Device, CPU and requested threads: under others the model has another rate.
    pub machine: String,
    /// Tokens per second.
    pub tokens_per_second: f64,
}

/// Read bandwidth of the memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// CPU and threads of the measurement.
    pub machine: String,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// All facts, in memory, and on the disk except for paths that cannot be written there.
#[derive(Debug, Default)]
pub struct Facts {
    file: PathBuf,
    files: HashMap<FileStamp, FileFacts>,
    bandwidth: Option<Bandwidth>,
    reached: Option<Bandwidth>,
    folder: Option<PathBuf>,
    uses: u64,
}

/// The form on the disk.
#[derive(Default, Serialize, Deserialize)]
struct StoredFacts {
    bandwidth: Option<Bandwidth>,
    #[serde(default)]
    reached: Option<Bandwidth>,
    #[serde(default)]
    folder: Option<String>,
    files: Vec<StoredFile>,
}

#[derive(Serialize, Deserialize)]
struct StoredFile {
    path: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    more: Vec<String>,
    bytes: u64,
    modified: u64,
    inode: u64,
    /// Inodes of `more`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    more_inodes: Vec<u64>,
    #[serde(flatten)]
    facts: FileFacts,
}

impl Facts {
    /// Reads the facts in `file`. If it cannot be read there are none, and they are recomputed.
    pub fn read(file: &Path) -> Facts {
        let text = fs::read(file).unwrap_or_default();
        let stored: StoredFacts = serde_json::from_slice(&text).unwrap_or_default();
        let files: HashMap<_, _> = stored.files.into_iter().map(StoredFile::parts).collect();
        Facts {
            file: file.to_owned(),
            uses: files
                .values()
                .map(|facts| facts.last_use)
                .max()
                .unwrap_or(0),
            files,
            bandwidth: stored.bandwidth.filter(Bandwidth::is_sound),
            reached: stored.reached.filter(Bandwidth::is_sound),
            folder: stored.folder.map(PathBuf::from),
        }
    }

    /// Returns the facts about the file with this stamp. A changed file has none.
    pub fn of(&self, stamp: &FileStamp) -> Option<&FileFacts> {
        self.files.get(stamp)
    }

    /// Records that a file was opened, by the path `as_path`. Nothing is written if it is the last that was opened.
    pub fn open(&mut self, stamp: &FileStamp, as_path: &Path) {
        let last = self.files.values().map(|facts| facts.last_opened).max();
        let is_last = |facts: &FileFacts| {
            facts.opened_as.as_deref() == Some(as_path) && Some(facts.last_opened) == last
        };
        if !self.of(stamp).is_some_and(is_last) {
            let next = last.unwrap_or(0).saturating_add(1);
            self.update(stamp, |facts| {
                facts.opened_as = Some(as_path.to_owned());
                facts.last_opened = next;
            });
        }
    }

    /// Returns the path of every file that was opened, as it was opened.
    pub fn opened(&self) -> impl Iterator<Item = &Path> {
        (self.files.values()).filter_map(|facts| facts.opened_as.as_deref())
    }

    /// Changes the facts about a file, and writes them.
    pub fn update(&mut self, stamp: &FileStamp, change: impl FnOnce(&mut FileFacts)) {
        // For each path only the present file is kept.
        (self.files).retain(|known, _| known.path != stamp.path || known == stamp);
        self.uses += 1;
        let facts = self.files.entry(stamp.clone()).or_default();
        change(facts);
        facts.last_use = self.uses;
        while self.files.len() > MAX_FILES {
            let oldest = self.files.iter().min_by_key(|(_, facts)| facts.last_use);
            let Some(oldest) = oldest.map(|(stamp, _)| stamp.clone()) else {
                break;
            };
            self.files.remove(&oldest);
        }
        self.save();
    }

    /// Returns the bytes per second from memory, if they were measured with this `machine`.
    pub fn bandwidth(&self, machine: &str) -> Option<f64> {
        self.bandwidth.as_ref()?.of(machine)
    }

    /// Returns the bytes per second that a model has read on this `machine` while it decoded, if the last one did so
    /// there.
    pub fn reached(&self, machine: &str) -> Option<f64> {
        self.reached.as_ref()?.of(machine)
    }

    /// Stores the bandwidth that a model has reached.
    pub fn set_reached(&mut self, reached: Bandwidth) {
        self.reached = Some(reached);
        self.save();
    }

    /// Returns the download folder that the user has set in the app, for commands, which do not read the settings.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Stores that folder.
    pub fn set_folder(&mut self, folder: Option<&Path>) {
        if self.folder.as_deref() != folder {
            self.folder = folder.map(Path::to_owned);
            self.save();
        }
    }

    /// Stores a measurement.
    pub fn set_bandwidth(&mut self, bandwidth: Bandwidth) {
        self.bandwidth = Some(bandwidth);
        self.save();
    }

    /// Writes the file. On failure the facts are recomputed after the next start.
    fn save(&self) {
        if let Err(error) = self.write() {
            tracing::warn!(file = %self.file.display(), %error, "what is known of models was not saved");
        }
    }

    fn write(&self) -> io::Result<()> {
        let files = self.files.iter().filter_map(StoredFile::of);
        let stored = StoredFacts {
            bandwidth: self.bandwidth.clone(),
            reached: self.reached.clone(),
            folder: (self.folder.as_deref()).and_then(|path| path.to_str().map(str::to_owned)),
            files: files.collect(),
        };
        private::replace(&self.file, &serde_json::to_vec_pretty(&stored)?)
    }
}

impl FileFacts {
    /// Number of its last opening, counted over all files; 0 if it was not opened.
    pub fn last_opened(&self) -> u64 {
        self.last_opened
    }

    /// Returns the tokens per second of its last long answer, if that was written on this `machine`.
    pub fn measured(&self, machine: &str) -> Option<f64> {
        let rate = self.rate.as_ref()?;
        (rate.machine == machine).then_some(rate.tokens_per_second)
    }
}

impl Bandwidth {
    fn of(&self, machine: &str) -> Option<f64> {
        (self.machine == machine).then_some(self.bytes_per_second)
    }

    fn is_sound(&self) -> bool {
        self.bytes_per_second.is_finite()
    }
}

impl StoredFile {
    /// Returns `None` if a path is not UTF-8, which JSON cannot hold.
    fn of((stamp, facts): (&FileStamp, &FileFacts)) -> Option<StoredFile> {
        let opened_as = facts.opened_as.as_deref();
        let more = stamp.more.iter();
        let more: Option<Vec<_>> = more.map(|path| Some(path.to_str()?.to_owned())).collect();
        let (inode, more_inodes) = stamp.inodes.split_first()?;
        let is_text = opened_as.is_none_or(|path| path.to_str().is_some());
        is_text.then_some(StoredFile {
            path: stamp.path.to_str()?.to_owned(),
            more: more?,
            bytes: stamp.bytes,
            modified: stamp.modified,
            inode: *inode,
            more_inodes: more_inodes.to_vec(),
            facts: facts.clone(),
        })
    }

    fn parts(self) -> (FileStamp, FileFacts) {
        let stamp = FileStamp {
            path: self.path.into(),
            more: self.more.into_iter().map(PathBuf::from).collect(),
            bytes: self.bytes,
            modified: self.modified,
            inodes: [&[self.inode], &*self.more_inodes].concat(),
        };
        (stamp, self.facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(path: &str, modified: u64) -> FileStamp {
        FileStamp {
            path: path.into(),
            more: Vec::new(),
            bytes: 7,
            modified,
            inodes: vec![1],
        }
    }

    #[test]
    fn facts_come_back_and_those_of_a_changed_file_do_not() {
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("data/models.json");
        let mut facts = Facts::read(&file);
        let old = stamp("/m.gguf", 1);
        facts.update(&old, |facts| facts.sha256 = Some("aa".into()));
        let rate = WritingRate {
            machine: "cpu, 2 threads".into(),
            tokens_per_second: 12.5,
        };
        facts.update(&old, |facts| facts.rate = Some(rate));
        facts.open(&stamp("/o.gguf", 1), Path::new("/link.gguf"));
        facts.set_bandwidth(Bandwidth {
            machine: "cpu".into(),
            bytes_per_second: 4e10,
        });
        facts.set_reached(Bandwidth {
            machine: "cpu".into(),
            bytes_per_second: 3e10,
        });
        facts.set_folder(Some(Path::new("/models")));
        let mut facts = Facts::read(&file);
        let known = facts.of(&old).expect("kept");
        assert_eq!(known.sha256.as_deref(), Some("aa"));
        assert_eq!(known.measured("cpu, 2 threads"), Some(12.5));
        assert_eq!(known.measured("cpu, 4 threads"), None);
        assert_eq!(facts.reached("cpu"), Some(3e10));
        assert_eq!(facts.folder(), Some(Path::new("/models")));
        assert_eq!(
            facts.opened().collect::<Vec<_>>(),
            [Path::new("/link.gguf")]
        );
        assert_eq!(facts.bandwidth("cpu"), Some(4e10));
        assert_eq!(facts.bandwidth("another cpu"), None);
        let new = stamp("/m.gguf", 2);
        assert_eq!(facts.of(&new), None);
        facts.update(&new, |_| {});
        assert_eq!(facts.of(&old), None);
    }

    #[test]
    fn a_damaged_file_is_no_facts_and_is_replaced() {
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("models.json");
        for damage in ["", "{", "[]", "{\"files\":[{}]}", "\u{0}\u{1}"] {
            fs::write(&file, damage).expect("written");
            let mut facts = Facts::read(&file);
            assert_eq!(facts.of(&stamp("/m.gguf", 1)), None, "{damage}");
            facts.update(&stamp("/m.gguf", 1), |_| {});
            assert!(Facts::read(&file).of(&stamp("/m.gguf", 1)).is_some());
        }
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("data/models.json");
        Facts::read(&file).update(&stamp("/m.gguf", 1), |_| {});
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(file.parent().expect("has one")), 0o700);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_that_is_not_utf_8_is_known_until_the_app_ends_and_harms_no_other() {
        use std::os::unix::ffi::OsStringExt;
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("models.json");
        let mut facts = Facts::read(&file);
        let odd = FileStamp {
            path: std::ffi::OsString::from_vec(b"/\xff.gguf".to_vec()).into(),
            ..stamp("", 1)
        };
        for stamp in [&odd, &stamp("/m.gguf", 1)] {
            facts.update(stamp, |facts| facts.opened_as = Some(stamp.path.clone()));
        }
        assert!(facts.of(&odd).is_some());
        let read = Facts::read(&file);
        assert_eq!(read.opened().collect::<Vec<_>>(), [Path::new("/m.gguf")]);
    }

    #[test]
    fn facts_of_a_model_in_several_files_come_back() {
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("models.json");
        let parts = FileStamp {
            more: vec!["/b.gguf".into(), "/c.gguf".into()],
            inodes: vec![1, 2, 3],
            ..stamp("/a.gguf", 1)
        };
        Facts::read(&file).update(&parts, |facts| facts.sha256 = Some("aa".into()));
        let facts = Facts::read(&file);
        assert!(facts.of(&parts).is_some());
        assert!(
            facts.of(&stamp("/a.gguf", 1)).is_none(),
            "another part is missing"
        );
        let replaced = FileStamp {
            inodes: vec![1, 2, 4],
            ..parts
        };
        assert!(facts.of(&replaced).is_none(), "a part is another file");
    }

    #[test]
    fn the_files_that_were_used_longest_ago_go_first() {
        let folder = tempfile::tempdir().expect("made");
        let mut facts = Facts::read(&folder.path().join("models.json"));
        let path = |number: usize| stamp(&format!("/{number}"), 1);
        for number in 0..MAX_FILES {
            facts.update(&path(number), |_| {});
        }
        facts.update(&path(0), |_| {});
        facts.update(&path(MAX_FILES), |_| {});
        assert!(facts.of(&path(0)).is_some() && facts.of(&path(1)).is_none());
        assert_eq!(facts.files.len(), MAX_FILES);
    }
}

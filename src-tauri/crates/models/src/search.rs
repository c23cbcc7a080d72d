//! Finds model files on this computer: headers only, in bounded time, on separate threads.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use engine::{ConfigError, FileLabel, GgufError, ModelHeader, OpenError, model_kind, runnable};

use crate::ollama;
use crate::places::{ModelPlace, SearchFolder};
use crate::stamp::{FileStamp, drive_of};

/// A model file on this computer.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundFile {
    /// Path by which it is shown and opened: in the hub's cache that of the snapshot, a link that has the file's name,
    /// and not that of the blob.
    pub path: PathBuf,
    /// Place of that path.
    pub place: ModelPlace,
    /// The file behind the path.
    pub stamp: FileStamp,
    /// Number of its drive in this session; 0 if drives have none.
    pub drive: u64,
    /// Its header, or the reason why it cannot be opened.
    pub header: Result<ModelHeader, Unusable>,
}

impl FoundFile {
    /// Returns whether it is a model of an architecture that does not run here.
    pub fn is_foreign(&self) -> bool {
        (self.header.as_ref()).is_err_and(|refusal| refusal.foreign.is_some())
    }
}

/// The reason why a file cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// The reason, in sentences.
    pub reason: String,
    /// The label of a model whose architecture does not run here.
    pub foreign: Option<FileLabel>,
}

impl From<String> for Unusable {
    fn from(reason: String) -> Unusable {
        Unusable {
            reason,
            foreign: None,
        }
    }
}

/// Limits of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLimits {
    /// Folder entries to look at, in each folder to search.
    pub entries: usize,
    /// GGUF files whose header is read, in each folder to search.
    pub headers: usize,
    /// Time of the whole search. A folder that does not answer, such as one on a network, is given up then.
    pub time: Duration,
}

impl Default for SearchLimits {
    fn default() -> SearchLimits {
        SearchLimits {
            entries: 50_000,
            headers: 500,
            time: Duration::from_secs(10),
        }
    }
}

/// Searches folders, and caches the headers that it has read. Clones share the cache.
#[derive(Debug, Clone, Default)]
pub struct ModelSearch {
    limits: SearchLimits,
    headers: Arc<Mutex<HashMap<FileStamp, HeaderRead>>>,
    /// Folders that a thread of this or an earlier search is still in.
    unfinished: Arc<Mutex<HashSet<PathBuf>>>,
}

/// Result of reading a file.
#[derive(Debug, Clone, PartialEq)]
enum HeaderRead {
    /// A model that runs.
    Sound(Box<ModelHeader>),
    /// A model that does not run, or a file with the name of one, with the reason why it cannot be opened.
    Unsound(Unusable),
    /// Something else.
    Other,
}

impl ModelSearch {
    /// Makes a search with limits of the caller's.
    pub fn within(limits: SearchLimits) -> ModelSearch {
        ModelSearch {
            limits,
            ..ModelSearch::default()
        }
    }

    /// Returns the folders that `find` names. It reads settings that may lie on a network: there are none if that does
    /// not answer in time, or an earlier search still waits for it.
    pub fn folders(
        &self,
        find: impl FnOnce() -> Vec<SearchFolder> + Send + 'static,
    ) -> Option<Vec<SearchFolder>> {
        let (sender, receiver) = channel();
        // No folder to search has this path.
        self.start(PathBuf::new(), &sender, move |_, folders| {
            // Without a receiver the time is over.
            let _ = folders.send(find());
        });
        drop(sender);
        let folders = receiver.recv_timeout(self.limits.time).ok()?;
        // The thread ends: the next search may begin at once, and would find it unfinished.
        let _ = receiver.recv_timeout(self.limits.time);
        Some(folders)
    }

    /// Returns the model files below `folders` and the existing ones of `opened`, each once, in the order of places and
    /// names. Folders that are missing or unreadable are skipped, and so is one in which an earlier search still waits
    /// for the system.
    pub fn run(&self, folders: &[SearchFolder], opened: &[PathBuf]) -> Vec<FoundFile> {
        let deadline = Instant::now() + self.limits.time;
        let (sender, receiver) = channel();
        for folder in folders.iter().cloned() {
            let path = folder.path.clone();
            self.start(path, &sender, move |search, found| {
                search.walk(&folder, deadline, found);
            });
        }
        for path in opened {
            let opened = path.clone();
            self.start(path.clone(), &sender, move |search, found| {
                if let Some(file) = search.file(&opened, ModelPlace::Opened) {
                    // Without a receiver the search has ended.
                    let _ = found.send(file);
                }
            });
        }
        drop(sender);
        let mut found = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(left) {
                Ok(file) => found.push(file),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    tracing::warn!(unfinished = ?self.unfinished(), "the search for models was ended");
                    break;
                }
            }
        }
        each_once(found)
    }

    /// Returns the file at `path`, if it is a model and its path is UTF-8, like the ids of the list.
    pub fn file(&self, path: &Path, place: ModelPlace) -> Option<FoundFile> {
        path.to_str()?;
        let stamp = FileStamp::of(path).ok()?;
        let header = match self.header(path, &stamp) {
            HeaderRead::Sound(header) => Ok(*header),
            HeaderRead::Unsound(refusal) => Err(refusal),
            HeaderRead::Other => return None,
        };
        Some(FoundFile {
            path: path.to_owned(),
            place,
            drive: drive_of(&stamp.path),
            stamp,
            header,
        })
    }

    /// Looks at `path` on a separate thread: a system call that waits for a network cannot be aborted.
    fn start<T: Send + 'static>(
        &self,
        path: PathBuf,
        found: &Sender<T>,
        look: impl FnOnce(&ModelSearch, &Sender<T>) + Send + 'static,
    ) {
        if !self.unfinished().insert(path.clone()) {
            return;
        }
        let (search, found, key) = (self.clone(), found.clone(), path.clone());
        let started = thread::Builder::new()
            .name("models".to_owned())
            .spawn(move || {
                // A folder in which it panics is searched again, like any other.
                if catch_unwind(AssertUnwindSafe(|| look(&search, &found))).is_err() {
                    tracing::error!("the search of {} failed", key.display());
                }
                // Before the sender is dropped, which ends the search: the next one may begin at once.
                search.unfinished().remove(&key);
                drop(found);
            });
        if let Err(error) = started {
            tracing::warn!(%error, "{} was not searched", path.display());
            self.unfinished().remove(&path);
        }
    }

    /// Walks breadth first, so that a limit leaves out the deepest files.
    fn walk(&self, folder: &SearchFolder, deadline: Instant, found: &Sender<FoundFile>) {
        let mut waiting = VecDeque::from([(folder.path.clone(), 0)]);
        // Folders by their paths without links: a link may lead back up.
        let mut seen = HashSet::new();
        let (mut entries, mut headers) = (0, 0);
        while let Some((path, depth)) = waiting.pop_front() {
            let is_new = path.canonicalize().is_ok_and(|path| seen.insert(path));
            let Some(listing) = is_new.then(|| path.read_dir().ok()).flatten() else {
                continue;
            };
            for entry in listing.flatten() {
                entries += 1;
                if entries > self.limits.entries || Instant::now() > deadline {
                    tracing::warn!(folder = %folder.path.display(), entries, "not searched to its end");
                    return;
                }
                let path = entry.path();
                if is_gguf(&path) {
                    if !is_first(&path) {
                        continue;
                    }
                    headers += 1;
                    if headers > self.limits.headers {
                        return;
                    }
                    if let Some(file) = self.file(&path, folder.place)
                        && found.send(file).is_err()
                    {
                        return;
                    }
                } else if folder.place == ModelPlace::Ollama
                    && let Some(model) = ollama::model_of(&path)
                {
                    headers += 1;
                    if headers > self.limits.headers {
                        return;
                    }
                    if let Some(file) = self.file(&model, folder.place)
                        && found.send(file).is_err()
                    {
                        return;
                    }
                } else if depth < folder.depth
                    && !is_passed_over(&path)
                    && entry.file_type().is_ok_and(|ty| !ty.is_file())
                    && path.is_dir()
                {
                    waiting.push_back((path, depth + 1));
                }
            }
        }
    }

    fn header(&self, path: &Path, stamp: &FileStamp) -> HeaderRead {
        let known = self.headers().get(stamp).cloned();
        known.unwrap_or_else(|| match read_header(path) {
            Ok(read) => {
                self.headers().insert(stamp.clone(), read.clone());
                read
            }
            // Possibly transient, so it is not cached.
            Err(error) if is_named_smollm3(path) => HeaderRead::Unsound(unread(&error).into()),
            Err(_) => HeaderRead::Other,
        })
    }

    fn headers(&self) -> MutexGuard<'_, HashMap<FileStamp, HeaderRead>> {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unfinished(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        let lock = self.unfinished.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes duplicates of files with several paths: the path by which a file was opened stays, else the first, with the
/// place where it was found.
fn each_once(mut found: Vec<FoundFile>) -> Vec<FoundFile> {
    found.sort_by(|a, b| (a.place, &a.path).cmp(&(b.place, &b.path)));
    let mut once: Vec<FoundFile> = Vec::new();
    for file in found {
        match once.iter_mut().find(|it| it.stamp.path == file.stamp.path) {
            None => once.push(file),
            Some(first) if first.place == ModelPlace::Opened => first.place = file.place,
            Some(_) => {}
        }
    }
    once
}

/// Classifies a file; an error if the system does not return its content.
fn read_header(path: &Path) -> io::Result<HeaderRead> {
    Ok(match ModelHeader::open(path) {
        Ok(header) => HeaderRead::Sound(Box::new(header)),
        Err(OpenError::Gguf(GgufError::Io(error))) => return Err(error),
        // The part of a model that reads pictures.
        Err(OpenError::Config(ConfigError::Architecture(name))) if name == "clip" => {
            HeaderRead::Other
        }
        Err(OpenError::Config(ConfigError::Architecture(name))) => HeaderRead::Unsound(Unusable {
            reason: format!(
                "This is {}. Goldcrest runs {} files.",
                model_kind(&name),
                runnable()
            ),
            foreign: FileLabel::open(path).ok(),
        }),
        // Before the architecture is read, only the name shows what a truncated file was to be.
        Err(OpenError::Gguf(_)) if !is_named_smollm3(path) => HeaderRead::Other,
        Err(error) => HeaderRead::Unsound(format!("It cannot be opened: {error}.").into()),
    })
}

/// Returns the message for a model file that the system does not return.
pub fn unread(error: &io::Error) -> String {
    format!("It could not be read: {error}. The next search tries again.")
}

/// Returns whether a file has the extension of GGUF files.
pub fn is_gguf(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

/// Picks the first GGUF among files that the user passes, else the first file: the engine describes its fault best.
pub fn model_among(files: Vec<PathBuf>) -> Option<PathBuf> {
    let gguf = files.iter().position(|file| is_gguf(file));
    files.into_iter().nth(gguf.unwrap_or(0))
}

/// Returns whether no earlier part of the same model lies beside the file: a split model is listed once.
fn is_first(path: &Path) -> bool {
    let files = engine::gguf::model_files(path);
    files.first().is_none_or(|first| first == path)
}

fn is_named_smollm3(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.to_ascii_lowercase().contains("smollm3")
}

/// Returns whether to skip a folder: hidden ones, and those of the hub's cache in which no file has its name.
fn is_passed_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "blobs"
        || [".", "datasets--", "spaces--"]
            .iter()
            .any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests;

//! Folders and .zip archives: the files in them that have chats, and their reading.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::input::{Counted, Counter};
use crate::source::jan;

/// Maximum depth of nested folders, and number of files.
const DEEPEST: usize = 6;
const MOST_FILES: usize = 200_000;

/// Suffix of the names of LM Studio's files.
const ONE_CHAT: &str = ".conversation.json";

/// Files by their names, `/` between folders.
pub(super) enum Container<'a> {
    Folder { root: PathBuf, names: Vec<String> },
    Archive(ZipArchive<CountedFile<'a>>),
}

/// A file, or a pair of files, with chats.
pub(super) enum Entry {
    File(String),
    /// Jan stores a chat in two files.
    JanThread {
        thread: String,
        messages: Option<String>,
    },
}

impl Entry {
    pub fn name(&self) -> &str {
        match self {
            Entry::File(name) | Entry::JanThread { thread: name, .. } => name,
        }
    }

    /// Returns true if its file has exactly one chat.
    pub fn is_one_chat(&self) -> bool {
        match self {
            Entry::File(name) => name.to_ascii_lowercase().ends_with(ONE_CHAT),
            Entry::JanThread { .. } => true,
        }
    }
}

/// Bytes of a file, or of the files in a folder that may have chats.
pub(super) fn size(path: &Path) -> io::Result<u64> {
    if !path.is_dir() {
        return Ok(fs::metadata(path)?.len());
    }
    let mut names = Vec::new();
    list(path, "", 0, &mut names)?;
    let sizes = names
        .iter()
        .filter_map(|name| fs::metadata(path.join(name)).ok());
    Ok(sizes.map(|file| file.len()).sum())
}

pub(super) fn is_archive(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut begin)?;
    Ok(begin == *b"PK\x03\x04" || begin == *b"PK\x05\x06")
}

impl<'a> Container<'a> {
    pub fn folder(root: &Path) -> io::Result<Container<'a>> {
        let mut names = Vec::new();
        list(root, "", 0, &mut names)?;
        Ok(Container::Folder {
            root: root.to_owned(),
            names,
        })
    }

    /// A chat of Jan alone, one file of which was chosen.
    pub fn jan_thread(root: &Path) -> Container<'a> {
        let names = [jan::MESSAGES, jan::THREAD];
        let names = names.into_iter().filter(|name| root.join(name).is_file());
        Container::Folder {
            root: root.to_owned(),
            names: names.map(str::to_owned).collect(),
        }
    }

    pub fn archive(path: &Path, counter: &Counter<'a>) -> io::Result<Container<'a>> {
        let file = CountedFile {
            file: File::open(path)?,
            counter: counter.clone(),
        };
        Ok(Container::Archive(
            ZipArchive::new(file).map_err(of_archive)?,
        ))
    }

    /// The files that have chats, by name.
    pub fn chosen(&self) -> Vec<Entry> {
        let mut names: Vec<String> = match self {
            Container::Folder { names, .. } => names.clone(),
            // No supported program writes a name that cannot be decoded.
            Container::Archive(archive) => {
                let names = archive.file_names().flatten();
                names.map(std::borrow::Cow::into_owned).collect()
            }
        };
        names.sort_unstable();
        let mut threads = BTreeMap::new();
        let mut files = Vec::new();
        for name in &names {
            let (folder, file) = name.rsplit_once('/').unwrap_or(("", name.as_str()));
            let is_hidden = name
                .split('/')
                .any(|part| part.starts_with('.') || part == "__MACOSX");
            if is_hidden {
                continue;
            }
            if file == jan::THREAD {
                threads.insert(folder, name);
            } else if has_chats(file) {
                files.push(Entry::File(name.clone()));
            }
        }
        let threads = threads.into_iter().map(|(folder, thread)| {
            let messages = if folder.is_empty() {
                jan::MESSAGES.to_owned()
            } else {
                format!("{folder}/{}", jan::MESSAGES)
            };
            let is_there = names.binary_search(&messages).is_ok();
            Entry::JanThread {
                thread: thread.clone(),
                messages: is_there.then_some(messages),
            }
        });
        let threads: Vec<Entry> = threads.collect();
        files.extend(threads);
        files
    }

    pub fn open<'c>(
        &'c mut self,
        name: &str,
        counter: &Counter<'a>,
    ) -> io::Result<Counted<'c, 'a>> {
        match self {
            Container::Folder { root, .. } => {
                Ok(Counted::of(File::open(root.join(name))?, counter))
            }
            Container::Archive(archive) => {
                let input = archive.by_name(name).map_err(of_archive)?;
                Ok(Counted::unpacked(input, counter))
            }
        }
    }
}

/// Decides by name: an archive has files that repeat the chats, or have other content.
fn has_chats(file: &str) -> bool {
    let file = file.to_ascii_lowercase();
    let is_numbered = file
        .strip_prefix("conversations-")
        .and_then(|rest| rest.strip_suffix(".json"))
        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    file == "conversations.json"
        || is_numbered
        || file.ends_with(ONE_CHAT)
        || (file.ends_with(".jsonl") && file != jan::MESSAGES)
}

/// The files in a folder; links are not followed.
fn list(root: &Path, below: &str, depth: usize, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        // No supported program writes a name that is not text.
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let name = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < DEEPEST {
            list(root, &name, depth + 1, names)?;
        } else if kind.is_file() && (name.ends_with(".json") || name.ends_with(".jsonl")) {
            names.push(name);
        }
        if names.len() > MOST_FILES {
            return Err(io::Error::other("there are too many files in it"));
        }
    }
    Ok(())
}

fn of_archive(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(error) => error,
        // The list of files of an archive is at its end.
        ZipError::InvalidArchive(_) => io::ErrorKind::UnexpectedEof.into(),
        error => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    }
}

/// Counts the bytes of a file, wherever they are read.
pub(super) struct CountedFile<'a> {
    file: File,
    counter: Counter<'a>,
}

impl Read for CountedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.counter.add(read)?;
        Ok(read)
    }
}

impl Seek for CountedFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

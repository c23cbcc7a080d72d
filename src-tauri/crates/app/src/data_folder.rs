//! The data folder: its location, and its move.
//!
//! A move copies everything, and then writes one small file, which names the new folder: until then the old one stays
//! in use, from then on the new one. The old folder is emptied at the next start, once the chats have been opened in
//! the new one: files that the app does not write for itself alone are removed only if the new one has them unchanged.
//! The small file is in the platform's folder for configuration.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use chat::Failure;
use devices::CrashMarkers;
use system::private;

use crate::data_pointer::DataPointer;
use crate::folders;
use crate::models::{self, DOWNLOADS_FILE};

/// Mark in a new folder until the copy is complete, with the names of the copied files: a folder that an interrupted
/// move left may be used again.
const UNFINISHED: &str = ".goldcrest-move";
/// Bytes that stay free.
const RESERVE: u64 = 64 << 20;

/// The app's own files: caches, logs, the list of downloads, the folders of dialogs. They continue in the new folder.
const OWN: [&str; 5] = [
    "kv",
    "logs",
    "models.json",
    DOWNLOADS_FILE,
    folders::DIALOGS_FILE,
];

/// A planned move. Unless it is completed, its copies are removed when it is dropped.
#[derive(Debug)]
pub struct Move {
    from: PathBuf,
    /// The same folder as it was named: paths in it may begin so.
    named: PathBuf,
    to: PathBuf,
    bytes: u64,
    /// True if the new folder existed before.
    was_there: bool,
    /// True if the old folder stays as it is.
    keeps_old: bool,
    /// True while the new folder holds copies that are not in use.
    is_partial: AtomicBool,
}

impl Move {
    /// Plans a move. Refuses a folder that is not empty, lies within the old one, or has no space. Nothing is changed:
    /// the folder need not exist.
    pub fn plan(from: &Path, to: &Path) -> Result<Move, Failure> {
        let cannot = |error: io::Error| refused(to, &error);
        let (real_from, real_to) = (
            from.canonicalize().map_err(|error| refused(from, &error))?,
            resolved(to).map_err(cannot)?,
        );
        if real_from == real_to {
            return Err(Failure::other("Your chats are in this folder already."));
        }
        if real_to.starts_with(&real_from) {
            return Err(Failure::other(
                "This folder is within the present one. Choose one outside of it.",
            ));
        }
        if !is_free(&real_to).map_err(cannot)? {
            return Err(Failure::other(format!(
                "{} is not empty. Choose an empty folder, or a new one.",
                to.display()
            )));
        }
        let mut bytes = 0;
        for name in files(from).map_err(|error| refused(from, &error))? {
            bytes += fs::metadata(from.join(name)).map_or(0, |file| file.len());
        }
        // If the system does not report the free space, the copying shows it.
        let disk = real_to.ancestors().find(|folder| folder.exists());
        let free = disk.and_then(|folder| fs4::available_space(folder).ok());
        let free = free.unwrap_or(u64::MAX);
        if free < bytes + RESERVE {
            let megabytes = |bytes: u64| figures::count((bytes / 1_000_000) as usize + 1);
            return Err(Failure::other(format!(
                "There is not enough room: your data takes {} MB, and {} MB are free there.",
                megabytes(bytes),
                megabytes(free)
            )));
        }
        Ok(Move {
            from: real_from,
            named: from.to_owned(),
            was_there: real_to.exists(),
            keeps_old: false,
            to: real_to,
            bytes,
            is_partial: AtomicBool::new(false),
        })
    }

    /// Keeps the old folder as it is if `keep` is true.
    pub fn keeping_old(mut self, keep: bool) -> Move {
        self.keeps_old = keep;
        self
    }

    /// Returns the old folder.
    pub fn from(&self) -> &Path {
        &self.from
    }

    /// Copies everything except the database and the list of downloads, even while in use. `progress` gets the copied
    /// bytes and the total; if it returns false, so does this.
    pub fn copy_others(
        &self,
        database: &OsStr,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool, Failure> {
        let mut copy = || -> io::Result<bool> {
            private::folder(&self.to)?;
            clear(&self.to)?;
            let names = files(&self.from)?;
            self.is_partial.store(true, Ordering::Relaxed);
            write_mark(&self.to, &names)?;
            let mut done = 0;
            for name in names.iter().filter(|name| !is_late(name, database)) {
                match self.copy(name) {
                    Ok(bytes) => done += bytes,
                    // A cache, or a log of last week: it may disappear at any time.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
                if !progress(done, self.bytes) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        copy().map_err(|error| refused(&self.to, &error))
    }

    /// Copies the closed database, checks it, rewrites the paths in it that have moved, and writes the pointer: from
    /// then on the new folder is used.
    pub fn copy_database(&self, database: &OsStr, pointer: &Path) -> Result<(), Failure> {
        let copy = || -> io::Result<()> {
            for name in files(&self.from)? {
                if is_late(&name, database) {
                    self.copy(&name)?;
                }
            }
            models::relocate_downloads(&self.to.join(DOWNLOADS_FILE), &|path| self.moved(path))
        };
        copy().map_err(|error| refused(&self.to, &error))?;
        let copied = self.to.join(database);
        store::check(&copied)?;
        chat::relocate(&copied, &|path| self.moved(path))?;
        let file = DataPointer {
            folder: self.to.clone(),
            empty: (!self.keeps_old).then(|| self.from.clone()),
        };
        file.write(pointer)
            .map_err(|error| refused(pointer, &error))?;
        self.is_partial.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the new path of a path in the old folder.
    fn moved(&self, path: &Path) -> Option<PathBuf> {
        let begins = [&self.named, &self.from];
        let within = begins.iter().find_map(|old| path.strip_prefix(old).ok())?;
        Some(self.to.join(within))
    }

    /// Copies a file with its time, and compares the copy with the source.
    fn copy(&self, name: &Path) -> io::Result<u64> {
        let (from, to) = (self.from.join(name), self.to.join(name));
        if let Some(folder) = to.parent() {
            private::folder(folder)?;
        }
        private::file(&to)?;
        let mut source = File::open(&from)?;
        let mut target = File::options().write(true).truncate(true).open(&to)?;
        let bytes = io::copy(&mut source, &mut target)?;
        // Otherwise the content is compared when the old folder is emptied.
        let _ = source
            .metadata()?
            .modified()
            .and_then(|at| target.set_modified(at));
        target.sync_all()?;
        drop(target);
        private::sync_parent(&to)?;
        let mut copy = File::open(&to)?;
        let mut source = File::open(&from)?.take(bytes);
        if same(&mut source, &mut copy)? {
            Ok(bytes)
        } else {
            let message = format!("{} was not copied as it is", name.display());
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        }
    }
}

impl Drop for Move {
    fn drop(&mut self) {
        if !self.is_partial.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = clear(&self.to) {
            tracing::warn!(%error, folder = %self.to.display(), "copies are left in the folder");
        }
        if !self.was_there {
            // Stays if it is not empty.
            let _ = fs::remove_dir(&self.to);
        }
    }
}

/// Returns the real path of a folder, which need not exist.
fn resolved(folder: &Path) -> io::Result<PathBuf> {
    match (folder.canonicalize(), folder.parent(), folder.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            Ok(resolved(parent)?.join(name))
        }
        (found, _, _) => found,
    }
}

/// Returns whether a folder holds nothing but copies of an interrupted move.
fn is_free(folder: &Path) -> io::Result<bool> {
    let mut entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    let Some(copied) = read_mark(folder) else {
        return Ok(entries.next().is_none());
    };
    let is_copy = |name: &PathBuf| name == Path::new(UNFINISHED) || copied.contains(name);
    Ok(files(folder)?.iter().all(is_copy))
}

/// Writes the names of the files that a move is about to copy into a folder.
fn write_mark(folder: &Path, names: &[PathBuf]) -> io::Result<()> {
    let names: Vec<&str> = names.iter().filter_map(|name| name.to_str()).collect();
    private::replace(&folder.join(UNFINISHED), &serde_json::to_vec(&names)?)
}

/// Reads the mark; `None` if no move has copied anything there. A truncated mark says nothing.
fn read_mark(folder: &Path) -> Option<Vec<PathBuf>> {
    let text = fs::read(folder.join(UNFINISHED)).ok()?;
    let names: Vec<PathBuf> = serde_json::from_slice(&text).unwrap_or_default();
    let is_within = |name: &PathBuf| {
        name.components()
            .all(|part| matches!(part, Component::Normal(_)))
    };
    Some(names.into_iter().filter(is_within).collect())
}

/// Removes the copies of a move from a folder, and the folders that are then empty.
fn clear(folder: &Path) -> io::Result<()> {
    let Some(names) = read_mark(folder) else {
        return Ok(());
    };
    for name in &names {
        remove(&folder.join(name))?;
    }
    remove(&folder.join(UNFINISHED))?;
    remove_empty(folder, &names);
    Ok(())
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the folders of these files in a folder, unless they are not empty.
fn remove_empty(folder: &Path, names: &[PathBuf]) {
    let folders = names.iter().flat_map(|name| name.ancestors().skip(1));
    let mut folders: Vec<&Path> = folders.filter(|name| *name != Path::new("")).collect();
    folders.sort_by_key(|name| std::cmp::Reverse(name.components().count()));
    folders.dedup();
    for name in folders {
        let _ = fs::remove_dir(folder.join(name));
    }
}

/// Completes a move after a start with the folder that the pointer names: empties the old one.
pub fn finish_move(pointer: &Path, data: &Path) {
    let Ok(Some(found)) = DataPointer::read(pointer) else {
        return;
    };
    if found.folder != data {
        return;
    }
    let _ = fs::remove_file(data.join(UNFINISHED));
    let Some(old) = found.empty else {
        return;
    };
    // The rest is removed at the next start.
    match empty(&old, data) {
        Ok(left) => {
            if left > 0 {
                tracing::info!(left, folder = %old.display(), "files that the new data folder has not stay in the old one");
            }
            let over = DataPointer {
                empty: None,
                ..found
            };
            if let Err(error) = over.write(pointer) {
                tracing::warn!(%error, "the move of the data folder is not over");
            }
        }
        Err(error) => {
            tracing::warn!(%error, folder = %old.display(), "the old data folder is not empty")
        }
    }
}

/// Removes from the old folder the files that the new one has, and those that are not moved on purpose. The database
/// goes last. Returns the number of files that stay.
fn empty(old: &Path, data: &Path) -> io::Result<usize> {
    let mut names = match files(old) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        names => names?,
    };
    names.sort_by_key(|name| name.extension() == Some(OsStr::new("db")));
    let mut left = 0;
    for name in names {
        let (file, now) = (old.join(&name), data.join(&name));
        if is_own(&name) || is_same(&file, &now)? || is_copied_database(&name, data) {
            fs::remove_file(file)?;
        } else {
            left += 1;
        }
    }
    for entry in fs::read_dir(old)? {
        let entry = entry?;
        if is_moved(&entry.file_name()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    remove_folders(old);
    Ok(left)
}

fn is_own(name: &Path) -> bool {
    let first = name.components().next();
    first.is_some_and(|first| OWN.iter().any(|own| first.as_os_str() == *own))
}

/// Returns whether it is the database, or a file that SQLite keeps beside it. The one in the new folder was the same
/// when the pointer was written, and was opened since.
fn is_copied_database(name: &Path, data: &Path) -> bool {
    begins_with(name, OsStr::new(folders::DATABASE)) && data.join(folders::DATABASE).exists()
}

/// Returns whether two files exist with the same time and length, or the same content.
fn is_same(a: &Path, b: &Path) -> io::Result<bool> {
    let (a_is, b_is) = match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) if b.is_file() && a.len() == b.len() => (a, b),
        _ => return Ok(false),
    };
    if a_is.modified()? == b_is.modified()? {
        return Ok(true);
    }
    same(&mut File::open(a)?, &mut File::open(b)?)
}

/// Returns whether an entry of the data folder is moved: not the lock, the web view's own data, or the crash markers. A
/// copied marker has no lock, and would count as a crash.
fn is_moved(name: &OsStr) -> bool {
    name != folders::LOCK_FILE && name != folders::WEB_VIEW && !CrashMarkers::is_marker(name)
}

/// Lists the files in a folder and its subfolders; links are not followed, and files that are not moved are skipped.
fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            if !is_moved(name.as_os_str()) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(name);
            } else if kind.is_file() {
                found.push(name);
            }
        }
    }
    Ok(found)
}

/// Removes the empty subfolders of a folder, and the folder itself.
fn remove_folders(root: &Path) {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_folders(&entry.path());
        }
    }
    // Stays if it is not empty.
    let _ = fs::remove_dir(root);
}

/// Returns whether a file is copied only once nobody writes it any more.
fn is_late(name: &Path, database: &OsStr) -> bool {
    begins_with(name, database) || name == Path::new(DOWNLOADS_FILE)
}

/// Returns whether a file is the database, or one of those that SQLite keeps beside it.
fn begins_with(name: &Path, database: &OsStr) -> bool {
    name.as_os_str()
        .as_encoded_bytes()
        .starts_with(database.as_encoded_bytes())
}

fn same(a: &mut impl Read, b: &mut impl Read) -> io::Result<bool> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        a.by_ref().take(1 << 16).read_to_end(&mut left)?;
        b.by_ref().take(1 << 16).read_to_end(&mut right)?;
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::other(match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("The disk of {path} is full. Your data stays where it is.")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("Nothing can be written in {path}. Your data stays where it is.")
        }
        _ => format!("{path}: {error}. Your data stays where it is."),
    })
}

#[cfg(test)]
mod tests;

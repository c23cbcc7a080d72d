//! The data folder: where it is, and how it moves.
//!
//! A move copies everything, and then writes one small file, which names the new folder: until then the old one is in
//! use as ever, from then on the new one. The old folder is emptied at the next start, once the chats have been opened in
//! the new one. The file is in the platform's folder for configuration.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use chat::Failure;
use serde::Serialize;
use system::private;

use crate::data_pointer::{DataPointer, sync_parent};
use crate::folders::{self, Folders};

/// In a new folder until all is there: one that an interrupted move left may be used again.
const UNFINISHED: &str = ".goldcrest-move";
/// What the new folder does not get: the lock, and what the web view keeps for itself.
const NOT_MOVED: [&str; 2] = ["goldcrest.lock", "webview"];
/// Bytes that stay free.
const RESERVE: u64 = 64 << 20;

/// What the page shows of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct DataFolder {
    pub path: String,
    /// Why it cannot be moved, where it cannot.
    pub fixed: Option<String>,
}

impl DataFolder {
    pub fn of(folders: &Folders) -> DataFolder {
        DataFolder {
            path: folders.data.to_string_lossy().into_owned(),
            fixed: folders::fixed().then(|| {
                format!(
                    "{} names this folder, so it is changed there.",
                    folders::DATA_DIR
                )
            }),
        }
    }
}

/// A move that can be made.
#[derive(Debug)]
pub struct Move {
    from: PathBuf,
    to: PathBuf,
    bytes: u64,
}

impl Move {
    /// Refuses a folder in which something is, which lies within the old one, or in which there is no room. The folder is
    /// made where it is not there.
    pub fn plan(from: &Path, to: &Path) -> Result<Move, Failure> {
        let cannot = |error: io::Error| refused(to, &error);
        private::folder(to).map_err(cannot)?;
        let (real_from, real_to) = (
            from.canonicalize().map_err(|error| refused(from, &error))?,
            to.canonicalize().map_err(cannot)?,
        );
        if real_from == real_to {
            return Err(Failure::other("Your chats are in this folder already."));
        }
        if real_to.starts_with(&real_from) {
            return Err(Failure::other(
                "This folder is within the present one. Choose one outside of it.",
            ));
        }
        let is_mine = to.join(UNFINISHED).exists();
        let mut entries = fs::read_dir(to).map_err(cannot)?;
        if !is_mine && entries.next().is_some() {
            return Err(Failure::other(format!(
                "{} is not empty. Choose an empty folder, or a new one.",
                to.display()
            )));
        }
        let mut bytes = 0;
        for name in files(from).map_err(|error| refused(from, &error))? {
            bytes += fs::metadata(from.join(name)).map_or(0, |file| file.len());
        }
        // Where the system does not say how much is free, the copying finds out.
        let free = fs4::available_space(to).unwrap_or(u64::MAX);
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
            to: real_to,
            bytes,
        })
    }

    /// The new folder, to be shown.
    pub fn target(&self) -> String {
        self.to.to_string_lossy().into_owned()
    }

    /// Copies all but the database, in use or not. `progress` hears how many bytes of how many are copied.
    pub fn copy_others(
        &self,
        database: &OsStr,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool, Failure> {
        let mut copy = || -> io::Result<bool> {
            private::file(&self.to.join(UNFINISHED))?;
            for old in files(&self.to)? {
                if old != Path::new(UNFINISHED) {
                    fs::remove_file(self.to.join(old))?;
                }
            }
            let mut done = 0;
            for name in files(&self.from)? {
                let is_of_database = begins_with(&name, database);
                if is_of_database {
                    continue;
                }
                match self.copy(&name) {
                    Ok(bytes) => done += bytes,
                    // A cache, or a log of last week: it may go at any time.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
                if !progress(done, self.bytes) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let copied = copy().map_err(|error| refused(&self.to, &error));
        if !matches!(copied, Ok(true)) {
            self.clear();
        }
        copied
    }

    /// Copies the database, which nobody has open, checks it, and writes the pointer: from then on the new folder is used.
    pub fn copy_database(
        &self,
        database: &OsStr,
        pointer: &Path,
        keep: bool,
    ) -> Result<(), Failure> {
        let copy = || -> io::Result<()> {
            for name in files(&self.from)? {
                if begins_with(&name, database) {
                    self.copy(&name)?;
                }
            }
            Ok(())
        };
        let copied = copy().map_err(|error| refused(&self.to, &error));
        let checked = copied.and_then(|()| Ok(chat::check(&self.to.join(database))?));
        let switched = checked.and_then(|()| {
            let file = DataPointer {
                folder: self.to.clone(),
                empty: (!keep).then(|| self.from.clone()),
            };
            file.write(pointer)
                .map_err(|error| refused(pointer, &error))
        });
        if switched.is_err() {
            self.clear();
        }
        switched
    }

    /// Copies a file, and compares what was written with what was read.
    fn copy(&self, name: &Path) -> io::Result<u64> {
        let (from, to) = (self.from.join(name), self.to.join(name));
        if let Some(folder) = to.parent() {
            private::folder(folder)?;
        }
        private::file(&to)?;
        let mut source = File::open(&from)?;
        let mut target = File::options().write(true).truncate(true).open(&to)?;
        let bytes = io::copy(&mut source, &mut target)?;
        target.sync_all()?;
        drop(target);
        sync_parent(&to)?;
        let mut copy = File::open(&to)?;
        let mut source = File::open(&from)?.take(bytes);
        if same(&mut source, &mut copy)? {
            Ok(bytes)
        } else {
            let message = format!("{} was not copied as it is", name.display());
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        }
    }

    /// Removes what was copied.
    fn clear(&self) {
        for name in files(&self.to).unwrap_or_default() {
            let _ = fs::remove_file(self.to.join(name));
        }
        remove_folders(&self.to);
    }
}

/// After a start with the folder that the pointer names: the old one is emptied, and the move is over.
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
    // What is still there is removed at the next start.
    match empty(&old, data) {
        Ok(()) => {
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

/// Removes from the old folder what the new one has, and what was not moved on purpose. The database goes last.
fn empty(old: &Path, data: &Path) -> io::Result<()> {
    let mut names = match files(old) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        names => names?,
    };
    names.sort_by_key(|name| name.extension() == Some(OsStr::new("db")));
    for name in names {
        if data.join(&name).exists() {
            fs::remove_file(old.join(name))?;
        }
    }
    for name in NOT_MOVED {
        let path = old.join(name);
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else if path.exists() {
            fs::remove_file(path)?;
        }
    }
    remove_folders(old);
    Ok(())
}

/// The files in a folder and those below it; links are not followed, and what is not moved is not there.
fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            if NOT_MOVED.iter().any(|other| name == Path::new(other)) {
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

/// Removes the folders in a folder in which nothing is any more, and itself.
fn remove_folders(root: &Path) {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_folders(&entry.path());
        }
    }
    // It stays where something is in it.
    let _ = fs::remove_dir(root);
}

/// Whether a file is the database, or one of those that SQLite keeps beside it.
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
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use chat::Store;
    use tempfile::TempDir;

    use super::*;

    const DATABASE: &str = "goldcrest.db";

    /// A data folder with a bit of everything.
    fn filled() -> (TempDir, PathBuf, PathBuf) {
        let home = tempfile::tempdir().expect("made");
        let (data, pointer) = (
            home.path().join("data"),
            home.path().join("config/data-folder.json"),
        );
        private::folder(&data).expect("made");
        let store = Store::open(&data.join(DATABASE)).expect("made");
        store.chats().create("Kept", "2026-03-05", 1).expect("made");
        drop(store);
        chat::daily_copy(&data.join(DATABASE), "2026-03-05").expect("copied");
        for (name, content) in [
            ("logs/goldcrest.2026-03-05.log", "a line"),
            ("kv/blocks/ab/cd", "a block"),
            ("models.json", "{}"),
            ("goldcrest.lock", ""),
            ("webview/cache", "x"),
        ] {
            let path = data.join(name);
            private::folder(path.parent().expect("a folder")).expect("made");
            fs::write(path, content).expect("written");
        }
        (home, data, pointer)
    }

    fn titles(data: &Path) -> Vec<String> {
        let store = Store::open(&data.join(DATABASE)).expect("opened");
        let chats = store.chats().list().expect("read");
        chats.into_iter().map(|chat| chat.title).collect()
    }

    fn relocate(plan: &Move, pointer: &Path, keep: bool) {
        assert!(
            plan.copy_others(OsStr::new(DATABASE), &mut |_, _| true)
                .expect("copied")
        );
        plan.copy_database(OsStr::new(DATABASE), pointer, keep)
            .expect("copied");
    }

    #[test]
    fn everything_moves_and_the_old_folder_is_emptied_after_the_next_start() {
        let (home, data, pointer) = filled();
        let new = home.path().join("elsewhere/chats");
        let plan = Move::plan(&data, &new).expect("possible");
        relocate(&plan, &pointer, false);
        // Until the new one was opened nothing is gone.
        assert_eq!(titles(&data), ["Kept"]);
        let found = DataPointer::read(&pointer).expect("read").expect("there");
        assert_eq!(found.folder, new.canonicalize().expect("there"));
        assert_eq!(titles(&found.folder), ["Kept"]);
        for name in [
            "copies/day-2026-03-05.db",
            "logs/goldcrest.2026-03-05.log",
            "kv/blocks/ab/cd",
            "models.json",
        ] {
            assert!(new.join(name).exists(), "{name}");
        }
        assert!(!new.join("webview").exists());
        fs::write(data.join("notes.txt"), "not ours").expect("written");
        finish_move(&pointer, &found.folder);
        let left: Vec<_> = fs::read_dir(&data)
            .expect("there")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(left, ["notes.txt"], "what the app did not write stays");
        assert_eq!(
            DataPointer::read(&pointer)
                .expect("read")
                .expect("there")
                .empty,
            None
        );
        assert!(!new.join(UNFINISHED).exists());
        // And back again, where nothing is left but that file.
        fs::remove_file(data.join("notes.txt")).expect("removed");
        let back = Move::plan(&found.folder, &data).expect("possible");
        relocate(&back, &pointer, false);
        finish_move(&pointer, &data.canonicalize().expect("there"));
        assert_eq!(titles(&data), ["Kept"]);
        assert!(!found.folder.exists());
    }

    #[test]
    fn the_old_folder_stays_where_that_is_wanted() {
        let (home, data, pointer) = filled();
        let new = home.path().join("new");
        let plan = Move::plan(&data, &new).expect("possible");
        relocate(&plan, &pointer, true);
        finish_move(&pointer, &new.canonicalize().expect("there"));
        assert_eq!(titles(&data), ["Kept"]);
    }

    /// Each number of files after which the process ends: at every one the chats are in the folder that is used.
    #[test]
    fn a_move_that_ends_anywhere_loses_nothing() {
        let (home, data, pointer) = filled();
        let new = home.path().join("new");
        for end in 0..8 {
            let plan = Move::plan(&data, &new).expect("a folder that an earlier move left");
            let copied = AtomicU64::new(0);
            let done = plan.copy_others(OsStr::new(DATABASE), &mut |_, _| {
                assert!(copied.fetch_add(1, Ordering::Relaxed) < 100);
                copied.load(Ordering::Relaxed) < end
            });
            if done.expect("no error") {
                break;
            }
            assert_eq!(DataPointer::read(&pointer).expect("no error"), None);
            assert_eq!(titles(&data), ["Kept"]);
            // As after a crash: the mark and some files are there.
            private::folder(&new).expect("made");
            fs::write(new.join(UNFINISHED), "").expect("written");
            fs::write(new.join("half.db"), "half").expect("written");
        }
        let plan = Move::plan(&data, &new).expect("possible");
        relocate(&plan, &pointer, false);
        assert!(!new.join("half.db").exists());
        // The process ends while the old folder is being emptied.
        fs::remove_file(data.join("models.json")).expect("removed");
        finish_move(&pointer, &new.canonicalize().expect("there"));
        assert!(!data.exists());
        assert_eq!(titles(&new), ["Kept"]);
        // A start with another folder changes nothing.
        finish_move(&pointer, &home.path().join("other"));
    }

    #[test]
    fn a_folder_that_does_not_fit_is_refused() {
        let (home, data, _) = filled();
        let refusal = |to: &Path| Move::plan(&data, to).expect_err("refused").message;
        assert!(refusal(&data).contains("in this folder already"));
        assert!(refusal(&data.join("kv")).contains("within the present one"));
        let full = home.path().join("full");
        private::folder(&full).expect("made");
        fs::write(full.join("thesis.txt"), "x").expect("written");
        assert!(refusal(&full).contains("is not empty"));
        assert!(full.join("thesis.txt").exists());
        let file = home.path().join("file");
        fs::write(&file, "x").expect("written");
        assert!(refusal(&file).contains("Your data stays where it is."));
    }

    #[test]
    fn a_database_that_is_damaged_on_its_way_is_not_used() {
        let (home, data, pointer) = filled();
        let database = data.join(DATABASE);
        let mut bytes = fs::read(&database).expect("read");
        bytes[4096..8192].fill(7);
        fs::write(&database, &bytes).expect("written");
        let new = home.path().join("new");
        let plan = Move::plan(&data, &new).expect("possible");
        plan.copy_others(OsStr::new(DATABASE), &mut |_, _| true)
            .expect("copied");
        plan.copy_database(OsStr::new(DATABASE), &pointer, false)
            .expect_err("damaged");
        assert_eq!(DataPointer::read(&pointer).expect("no error"), None);
        assert!(!new.exists());
        assert_eq!(fs::read(&database).expect("there"), bytes);
    }
}

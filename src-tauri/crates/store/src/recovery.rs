//! What can be done about a database that does not open: put a copy in its place, or begin an empty
//! one. The file that was there is kept under another name in either case.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::copies;
use crate::error::StoreError;
use crate::private;

/// Puts a copy of [`good_copies`](crate::good_copies) in the database's place. Returns where the
/// file that was there is kept.
///
/// `day` is an ISO date, for that name. A process that ends in the middle leaves the old file, or
/// the restored one once the store is opened again.
pub fn restore_copy(database: &Path, name: &str, day: &str) -> Result<PathBuf, StoreError> {
    let copy = copies::good(database)
        .into_iter()
        .find(|copy| copy.name == name)
        .ok_or(StoreError::NotFound("copy"))?;
    let unfinished = database.with_extension("unfinished");
    duplicate(&copy.path, &unfinished).map_err(StoreError::io(&unfinished))?;
    let restored = restored(database);
    rename(&unfinished, &restored)?;
    let kept = set_aside(database, day)?;
    finish_restoring(database)?;
    Ok(kept)
}

/// Moves the database away, so that the next [`Store::open`](crate::Store::open) makes an empty one.
/// Returns where it is kept.
///
/// `day` is an ISO date, for that name.
pub fn set_aside(database: &Path, day: &str) -> Result<PathBuf, StoreError> {
    let kept = name_aside(database, day);
    // The journal first: SQLite would play it into whatever file has the database's name.
    for suffix in ["-shm", "-wal", ""] {
        let from = with_suffix(database, suffix);
        if from.exists() {
            rename(&from, &with_suffix(&kept, suffix))?;
        }
    }
    forget_check(database);
    sync_folder(database);
    Ok(kept)
}

/// The name that [`set_aside`] would give to the file: no other has it.
pub fn name_aside(database: &Path, day: &str) -> PathBuf {
    let stem = database.file_stem().unwrap_or_default().to_string_lossy();
    let name = |n: u32| {
        let number = if n == 1 {
            String::new()
        } else {
            format!("-{n}")
        };
        database.with_file_name(format!("{stem}-set-aside-{day}{number}.db"))
    };
    let is_free = |path: &PathBuf| {
        ["", "-wal", "-shm"]
            .iter()
            .all(|suffix| !with_suffix(path, suffix).exists())
    };
    (1..).map(name).find(is_free).unwrap_or_else(|| name(0))
}

/// Reads the whole file, and fails with [`StoreError::Damaged`] where it is.
///
/// This takes a while with a large file.
pub fn check(database: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(database, flags)?;
    match fault(&db) {
        Some(detail) => Err(damaged(database, &detail, true)),
        None => Ok(()),
    }
}

/// Has the next [`Store::open`](crate::Store::open) check the whole file, and fail where it is
/// damaged. A file beside the database remembers it.
pub fn ask_for_check(database: &Path) -> Result<(), StoreError> {
    let mark = mark(database);
    private::file(&mark).map_err(StoreError::io(&mark))
}

/// Takes [`ask_for_check`] back: the file is to be used as it is.
pub fn forget_check(database: &Path) {
    let _ = fs::remove_file(mark(database));
}

/// What SQLite finds wrong with a file.
pub(crate) fn fault(db: &Connection) -> Option<String> {
    match db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)) {
        Ok(state) if state == "ok" => None,
        Ok(state) => Some(state),
        Err(error) => Some(error.to_string()),
    }
}

pub(crate) fn damaged(database: &Path, detail: &str, opens: bool) -> StoreError {
    StoreError::Damaged {
        path: database.to_owned(),
        copies: copies::folder(database),
        detail: detail.to_owned(),
        opens,
    }
}

pub(crate) fn check_where_asked(db: &Connection, database: &Path) -> Result<(), StoreError> {
    if !mark(database).exists() {
        return Ok(());
    }
    if let Some(detail) = fault(db) {
        return Err(damaged(database, &detail, true));
    }
    forget_check(database);
    Ok(())
}

/// Whether nothing is left of a database that once had something in it: SQLite takes an empty file
/// for a new database, and all chats would seem never to have been.
pub(crate) fn was_emptied(database: &Path) -> bool {
    let is_empty =
        |path: &Path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0);
    is_empty(database) && !with_suffix(database, "-wal").exists() && copies::any(database)
}

/// Ends a restoring that was interrupted after the old file was moved away.
pub(crate) fn finish_restoring(database: &Path) -> Result<(), StoreError> {
    let restored = restored(database);
    if !restored.exists() {
        return Ok(());
    }
    if database.exists() {
        return fs::remove_file(&restored).map_err(StoreError::io(&restored));
    }
    rename(&restored, database)?;
    sync_folder(database);
    Ok(())
}

/// The whole copy, under a name that tells that it is to become the database.
fn restored(database: &Path) -> PathBuf {
    database.with_extension("restored")
}

fn mark(database: &Path) -> PathBuf {
    database.with_extension("check")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn duplicate(from: &Path, to: &Path) -> io::Result<()> {
    private::file(to)?;
    let mut target = OpenOptions::new().write(true).truncate(true).open(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()
}

fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(StoreError::io(from))
}

/// Makes names that changed survive a power cut, where the system can.
pub(crate) fn sync_folder(file: &Path) {
    if let Some(folder) = file.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
}

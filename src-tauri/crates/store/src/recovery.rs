//! What can be done about a database that does not open: put a copy or an empty one in its place.
//! The file that was there is kept under another name in either case, and nothing here ever removes
//! it: it may hold what no copy has.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::error::{self, StoreError};
use system::private;

use crate::{copies, open};

/// What a file that is being made is called, and one that is written to see whether that is
/// possible.
const UNFINISHED: &str = "unfinished";
pub(crate) const PROBE: &str = "probe";

/// Puts a copy of [`good_copies`](crate::good_copies) in the database's place. Returns where the
/// file that was there is kept.
///
/// `day` is an ISO date, for that name. A process that ends in the middle leaves the old file, or
/// the restored one once the store is opened again.
pub fn restore_copy(database: &Path, name: &str, day: &str) -> Result<PathBuf, StoreError> {
    let copy = copies::find(database, name).ok_or(StoreError::NotFound("copy"))?;
    replace(database, day, |new| {
        duplicate(&copy.path, new).map_err(StoreError::io(new))
    })
}

/// Puts an empty database in the database's place, as [`restore_copy`] does with a copy.
pub fn start_empty(database: &Path, day: &str) -> Result<PathBuf, StoreError> {
    replace(database, day, open::create)
}

/// Puts what `make` makes in the database's place.
fn replace(
    database: &Path,
    day: &str,
    make: impl FnOnce(&Path) -> Result<(), StoreError>,
) -> Result<PathBuf, StoreError> {
    let unfinished = database.with_extension(UNFINISHED);
    let _ = fs::remove_file(&unfinished);
    let made = make(&unfinished).and_then(|()| rename(&unfinished, &restored(database)));
    if made.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    made?;
    let kept = set_aside(database, day)?;
    finish_restoring(database)?;
    Ok(kept)
}

/// Moves the database away with its journal, which may hold what was written last.
///
/// The journal has both names until the database is moved, so that a process that ends in between
/// does not leave the one without the other.
fn set_aside(database: &Path, day: &str) -> Result<PathBuf, StoreError> {
    let kept = name_aside(database, day);
    let kept_journal = with_suffix(&kept, WAL);
    let moved = keep_journal(&with_suffix(database, WAL), &kept_journal).and_then(|()| {
        if is_there(database) {
            rename(database, &kept)?;
        }
        Ok(())
    });
    if moved.is_err() {
        let _ = fs::remove_file(&kept_journal);
    }
    moved?;
    forget_check(database);
    Ok(kept)
}

fn keep_journal(journal: &Path, kept: &Path) -> Result<(), StoreError> {
    if !is_there(journal) {
        return Ok(());
    }
    fs::hard_link(journal, kept)
        .or_else(|_| duplicate(journal, kept))
        .map_err(StoreError::io(kept))?;
    sync_folder(kept);
    Ok(())
}

/// The name that the database would be kept under: no other file has it.
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
        ["", WAL, SHM]
            .iter()
            .all(|suffix| !is_there(&with_suffix(path, suffix)))
    };
    (1..).map(name).find(is_free).unwrap_or_else(|| name(0))
}

/// Reads the whole file, and fails with [`StoreError::Damaged`] where it is.
///
/// This takes a while with a large file.
pub fn check(database: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(database, flags)?;
    match fault(&db)? {
        Some(detail) => Err(damaged(database, &detail, true)),
        None => Ok(()),
    }
}

pub(crate) fn ask_for_check(database: &Path) -> Result<(), StoreError> {
    let mark = mark(database);
    private::file(&mark).map_err(StoreError::io(&mark))
}

/// Takes [`Store::ask_for_check`](crate::Store::ask_for_check) back: the file is to be used as it is.
pub fn forget_check(database: &Path) {
    let _ = fs::remove_file(mark(database));
}

/// What SQLite finds wrong with a file. That it could not look is an error, and no damage.
pub(crate) fn fault(db: &Connection) -> Result<Option<String>, StoreError> {
    match db.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)) {
        Ok(state) => Ok(Some(state).filter(|state| state != "ok")),
        Err(error) if error::is_damage(&error) => Ok(Some(error.to_string())),
        Err(error) => Err(error.into()),
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
    if let Some(detail) = fault(db)? {
        return Err(damaged(database, &detail, true));
    }
    forget_check(database);
    Ok(())
}

/// Whether there is no database where one was: there are copies of it.
pub(crate) fn is_missing(database: &Path) -> bool {
    !is_there(database) && copies::any(database)
}

/// Whether nothing is left of a database that once had something in it. SQLite takes an empty file
/// for a new database and removes the journal beside it, which may hold all that was written.
pub(crate) fn was_emptied(database: &Path) -> bool {
    let length = |path: &Path| {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        file.map(|file| file.len())
    };
    let has_journal = length(&with_suffix(database, WAL)).is_some_and(|length| length > 0);
    length(database) == Some(0) && (has_journal || copies::any(database))
}

/// Ends a [`replace`] that was interrupted: the new file is used once the old one was moved away.
/// Removes what such a process may leave.
pub(crate) fn finish_restoring(database: &Path) -> Result<(), StoreError> {
    for temporary in [UNFINISHED, PROBE] {
        let _ = fs::remove_file(database.with_extension(temporary));
    }
    let restored = restored(database);
    if !is_there(&restored) {
        return Ok(());
    }
    if is_there(database) {
        return remove(&restored);
    }
    // SQLite would play the journal of the old file, which is kept with it, into the new one.
    remove(&with_suffix(database, WAL))?;
    remove(&with_suffix(database, SHM))?;
    rename(&restored, database)
}

/// The new file, whole, under a name that says that it is to become the database.
fn restored(database: &Path) -> PathBuf {
    database.with_extension("restored")
}

fn mark(database: &Path) -> PathBuf {
    database.with_extension("check")
}

/// The files that SQLite keeps beside a database: its journal, and an index into that.
const WAL: &str = "-wal";
const SHM: &str = "-shm";

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

/// A symbolic link counts, wherever it leads.
fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(path)(error)),
        _ => Ok(()),
    }
}

/// Survives a power cut before anything that comes after it.
fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(StoreError::io(from))?;
    sync_folder(to);
    Ok(())
}

/// Makes names that changed survive a power cut, where the system can.
pub(crate) fn sync_folder(file: &Path) {
    if let Some(folder) = file.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
}

//! Copies of the database: one before each migration, one a day, and those that the user requests.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use rusqlite::{Connection, OpenFlags};

use serde::Serialize;
use system::private;

use crate::connect::{connect, connect_immutable};
use crate::error::StoreError;
use crate::files::{
    ASIDE, SHM, UNFINISHED, WAL, aside_prefix, copies_folder, is_there, remove, sync_folder,
    with_suffix,
};
use crate::schema::{self, APPLICATION_ID};
use crate::{integrity, migrate, table};

/// Number of copies to keep: of the daily ones, and of those that the user requested.
const KEPT: usize = 5;
/// Days to keep a copy made before a migration: as long as a deleted chat in the bin.
const DAYS_KEPT: i64 = 30;
const DAILY: &str = "day-";
const ASKED_FOR: &str = "manual-";
const BEFORE_MIGRATION: &str = "version-";
/// Bytes of a date as 2026-03-05.
const ISO_DATE: usize = 10;

/// Held while a copy is made: unfinished files then belong to nobody else.
static MAKING: Mutex<()> = Mutex::new(());

/// The result of a daily copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copy {
    /// The copy was made.
    Made(PathBuf),
    /// The day has a copy already.
    Present,
    /// The database failed SQLite's check, so that no copy of it may replace a good one. The next
    /// [`Store::open`](crate::Store::open) fails with [`StoreError::Damaged`].
    Refused(String),
}

/// Reasons for a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum CopyReason {
    /// The daily copy.
    Daily,
    /// The user requested it.
    AskedFor,
    /// An update of the app was about to change the database.
    BeforeUpdate,
    /// The former database, which another file has replaced.
    SetAside,
}

/// A copy that can replace the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct DatabaseCopy {
    /// Its file name.
    pub name: String,
    /// Path of the copy.
    #[serde(skip)]
    pub path: PathBuf,
    /// Reason for the copy.
    pub reason: CopyReason,
    /// ISO date of the copy; `None` if it was made before an update of the app.
    pub day: Option<String>,
    /// Time of that day, as 14:05, if the user requested it.
    pub time: Option<String>,
    /// Number within the day, if several were set aside.
    pub number: u32,
    /// Its size in bytes.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub bytes: u64,
    /// The chats in it that are not deleted.
    pub chats: u32,
}

/// Lists the copies that this version can open: the daily ones and those that the user requested, the newest first,
/// then databases that were set aside, and copies made before a migration. Only the number of chats is read of their
/// content: one may be damaged.
pub fn listed(database: &Path) -> Vec<DatabaseCopy> {
    let copies = all(database).into_iter();
    let opened = copies.filter_map(|path| open(&path).ok());
    opened.map(|(copy, _)| copy).collect()
}

/// Lists the copies of [`listed`] that are undamaged and unaltered. This reads them all.
pub fn good(database: &Path) -> Vec<DatabaseCopy> {
    let copies = all(database).into_iter();
    copies.filter_map(|path| examine(&path).ok()).collect()
}

/// Returns the copy of this name, if it is undamaged and unaltered.
pub(crate) fn find(database: &Path, name: &str) -> Result<DatabaseCopy, StoreError> {
    match examine(&path_of(database, name)?) {
        Err(error @ StoreError::Altered { .. }) => Err(error),
        examined => examined.map_err(|_| StoreError::NotFound("undamaged copy")),
    }
}

/// Removes the copy of this name. This cannot be undone.
pub fn remove_copy(database: &Path, name: &str) -> Result<(), StoreError> {
    let path = path_of(database, name)?;
    for suffix in [WAL, SHM] {
        remove(&with_suffix(&path, suffix))?;
    }
    remove(&path)?;
    sync_folder(&path);
    Ok(())
}

fn path_of(database: &Path, name: &str) -> Result<PathBuf, StoreError> {
    let mut paths = all(database).into_iter();
    let found = paths.find(|path| file_name(path) == name);
    found.ok_or(StoreError::NotFound("copy"))
}

/// Lists all copies in the order of [`listed`].
fn all(database: &Path) -> Vec<PathBuf> {
    let by_day = |path: &PathBuf| {
        // The daily copy is made soon after the start.
        let (_, day, time, number) = parts(file_name(path));
        std::cmp::Reverse((day.map(str::to_owned), time.map(str::to_owned), number))
    };
    let mut found = named(database, DAILY);
    found.extend(named(database, ASKED_FOR));
    found.sort_by_key(by_day);
    let mut aside = set_aside(database);
    aside.sort_by_key(by_day);
    found.extend(aside);
    let mut others = named(database, BEFORE_MIGRATION);
    others.sort_by_key(|path| std::cmp::Reverse(days_of(path)));
    found.extend(others);
    found
}

/// Lists the databases that were set aside, except one that is still being read: its WAL is not merged yet.
fn set_aside(database: &Path) -> Vec<PathBuf> {
    let prefix = aside_prefix(database);
    let mut found = with_extension(database.parent().unwrap_or(Path::new(".")), "db");
    found.retain(|path| file_name(path).starts_with(&prefix) && is_whole(path));
    found
}

/// Returns whether a database that was set aside is complete without its WAL. The WAL beside it is merged once nobody
/// reads it any more.
fn is_whole(path: &Path) -> bool {
    let journal = with_suffix(path, WAL);
    if !is_there(&journal) {
        return true;
    }
    // SQLite merges it when the last connection closes that has read the file.
    let opened = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
    let _ = opened.and_then(|db| Ok(migrate::version(&db)?));
    !is_there(&journal)
}

/// Copies the database into the folder `copies` beside it, and removes old copies: all daily ones but the last five,
/// those made before a migration after 30 days, and unfinished files of interrupted processes.
///
/// `day` is an ISO date. The copy is a consistent snapshot despite concurrent writes, and appears under its name only
/// when it is complete. This reads the whole file through a connection of its own, so that it can run beside the
/// [`Store`](crate::Store).
pub fn daily_copy(database: &Path, day: &str) -> Result<Copy, StoreError> {
    let target = copies_folder(database).join(format!("{DAILY}{day}.db"));
    if target.exists() {
        return Ok(Copy::Present);
    }
    let _making = making();
    remove_all(with_extension(&copies_folder(database), UNFINISHED))?;
    let db = connect(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    if let Some(detail) = integrity::fault(&db)? {
        // If this fails, the damage is reported now all the same.
        let _ = integrity::ask_for_check(database);
        return Ok(Copy::Refused(detail));
    }
    write(&db, &target)?;
    // Even if a wrong clock has given the others later days.
    let old = named(database, DAILY).into_iter().rev().skip(KEPT);
    remove_all(old.filter(|path| *path != target))?;
    if let Some(today) = days_since_1970(day) {
        let is_old = |path: &PathBuf| days_of(path).is_some_and(|made| made + DAYS_KEPT < today);
        remove_all(named(database, BEFORE_MIGRATION).into_iter().filter(is_old))?;
    }
    Ok(Copy::Made(target))
}

/// Copies the database now, at the user's request, beside the daily copies.
///
/// `day` is an ISO date, `time` a time as 14:05. A copy of the same minute is replaced.
pub fn back_up(database: &Path, day: &str, time: &str) -> Result<(), StoreError> {
    let name = format!("{ASKED_FOR}{day}-{}.db", time.replace(':', "."));
    let target = copies_folder(database).join(name);
    let _making = making();
    let db = connect(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    if let Some(detail) = integrity::fault(&db)? {
        // If this fails, the damage is reported now all the same.
        let _ = integrity::ask_for_check(database);
        return Err(integrity::damaged(database, &detail, true));
    }
    write(&db, &target)?;
    let old = named(database, ASKED_FOR).into_iter().rev().skip(KEPT);
    remove_all(old.filter(|path| *path != target))
}

fn making() -> MutexGuard<'static, ()> {
    MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether there is any copy. A database that was set aside does not count: another has replaced it.
pub(crate) fn any(database: &Path) -> bool {
    [DAILY, ASKED_FOR, BEFORE_MIGRATION]
        .iter()
        .any(|kind| !named(database, kind).is_empty())
}

/// Copies the database before a migration. Never overwrites an earlier copy, which may be the only good one. A copy
/// that equals the last is dropped, so that a migration that fails at each start does not fill the disk.
pub(crate) fn before_migration(
    db: &Connection,
    database: &Path,
    version: u32,
) -> Result<(), StoreError> {
    let folder = copies_folder(database);
    let name = |n: u32| folder.join(format!("{BEFORE_MIGRATION}{version}-{n}.db"));
    let Some(n) = (1..).find(|n| !name(*n).exists()) else {
        return Ok(());
    };
    let target = name(n);
    write(db, &target)?;
    let last = name(n - 1);
    if n > 1 && same(&last, &target).map_err(StoreError::io(&last))? {
        fs::remove_file(&target).map_err(StoreError::io(&target))?;
    }
    Ok(())
}

/// Writes a copy in one read transaction, so that a concurrent commit does not restart it, and without free pages, so
/// that it holds nothing deleted.
fn write(db: &Connection, target: &Path) -> Result<(), StoreError> {
    if let Some(folder) = target.parent() {
        private::folder(folder).map_err(StoreError::io(folder))?;
    }
    let unfinished = target.with_extension(UNFINISHED);
    remove_all(unfinished.exists().then(|| unfinished.clone()))?;
    // SQLite writes into an existing empty file, and keeps its mode.
    private::file(&unfinished).map_err(StoreError::io(&unfinished))?;
    let written = vacuum(db, &unfinished).and_then(|()| {
        let sync = || File::open(&unfinished)?.sync_all();
        sync().map_err(StoreError::io(&unfinished))?;
        fs::rename(&unfinished, target).map_err(StoreError::io(target))
    });
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    sync_folder(target);
    written
}

fn vacuum(db: &Connection, target: &Path) -> Result<(), StoreError> {
    let name = target.to_str().ok_or_else(|| StoreError::Io {
        path: target.to_owned(),
        source: std::io::ErrorKind::InvalidFilename.into(),
    })?;
    db.execute("VACUUM INTO ?1", [name])?;
    Ok(())
}

/// Opens a copy if it is undamaged and unaltered.
fn examine(path: &Path) -> Result<DatabaseCopy, StoreError> {
    let (copy, db) = open(path)?;
    if let Some(detail) = integrity::fault(&db)? {
        return Err(integrity::damaged(path, &detail, true));
    }
    match schema::altered_part(&db)? {
        Some(part) => Err(StoreError::Altered {
            path: path.to_owned(),
            part,
        }),
        None => Ok(copy),
    }
}

/// Opens a copy that nothing writes any more, so that SQLite needs no file beside it.
fn open(path: &Path) -> Result<(DatabaseCopy, Connection), StoreError> {
    let db = connect_immutable(path)?;
    let application: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let is_known = migrate::version(&db)? <= migrate::latest(&table::steps());
    if application != APPLICATION_ID || !is_known {
        return Err(StoreError::NotFound("copy"));
    }
    let chats = db.query_row(
        "SELECT count(*) FROM chat WHERE deleted_at IS NULL",
        [],
        |row| row.get(0),
    )?;
    let name = file_name(path).to_owned();
    let (reason, day, time, number) = parts(&name);
    let (day, time) = (
        day.map(str::to_owned),
        time.map(|time| time.replace('.', ":")),
    );
    let bytes = fs::metadata(path).map_err(StoreError::io(path))?.len();
    let copy = DatabaseCopy {
        name,
        path: path.to_owned(),
        reason,
        day,
        time,
        number,
        bytes,
        chats,
    };
    Ok((copy, db))
}

/// Parses the name of a copy: the reason, the day, the time, and the number within the day.
fn parts(name: &str) -> (CopyReason, Option<&str>, Option<&str>, u32) {
    let stem = name.strip_suffix(".db").unwrap_or(name);
    if let Some(day) = stem.strip_prefix(DAILY) {
        return (CopyReason::Daily, Some(day), None, 1);
    }
    let asked_for = stem.strip_prefix(ASKED_FOR);
    if let Some((day, time)) = asked_for.and_then(|name| name.rsplit_once('-')) {
        return (CopyReason::AskedFor, Some(day), Some(time), 1);
    }
    if let Some((_, name)) = stem.split_once(ASIDE) {
        let (day, number) = name.split_at_checked(ISO_DATE).unwrap_or((name, ""));
        let number = number.trim_start_matches('-').parse().unwrap_or(1);
        return (CopyReason::SetAside, Some(day), None, number);
    }
    (CopyReason::BeforeUpdate, None, None, 1)
}

/// Returns whether two files hold the same bytes.
fn same(a: &Path, b: &Path) -> std::io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        let n = a.by_ref().take(1 << 16).read_to_end(&mut left)?;
        b.by_ref().take(1 << 16).read_to_end(&mut right)?;
        if left != right {
            return Ok(false);
        }
        if n == 0 {
            return Ok(true);
        }
    }
}

/// Lists the copies of one kind by name, which for daily ones is the oldest first: ISO dates sort by time.
fn named(database: &Path, kind: &str) -> Vec<PathBuf> {
    let mut found = with_extension(&copies_folder(database), "db");
    found.retain(|path| file_name(path).starts_with(kind));
    found.sort();
    found
}

fn with_extension(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

fn remove_all(files: impl IntoIterator<Item = PathBuf>) -> Result<(), StoreError> {
    for file in files {
        fs::remove_file(&file).map_err(StoreError::io(&file))?;
    }
    Ok(())
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// Returns the day when a file was written, counted from 1970.
fn days_of(path: &Path) -> Option<i64> {
    let written = fs::metadata(path).ok()?.modified().ok()?;
    let seconds = written.duration_since(UNIX_EPOCH).ok()?.as_secs();
    i64::try_from(seconds / 86_400).ok()
}

/// Converts an ISO date into days since 1970. Months are counted from March, so that a leap day is a year's last.
fn days_since_1970(day: &str) -> Option<i64> {
    let mut parts = day.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let leap_days = year / 4 - year / 100 + year / 400;
    Some(365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::days_since_1970;

    #[test]
    fn days_are_counted_over_leap_years() {
        for (day, days) in [
            ("1970-01-01", 0),
            ("1970-03-01", 59),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-11-22", 20_779),
        ] {
            assert_eq!(days_since_1970(day), Some(days), "{day}");
        }
        assert_eq!(days_since_1970("yesterday"), None);
    }
}

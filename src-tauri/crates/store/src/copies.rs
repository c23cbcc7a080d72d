//! Copies of the database: one before each migration, and one a day.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;

/// Daily copies that are kept.
const KEPT: usize = 5;
const DAILY: &str = "day-";

/// What became of a daily copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copy {
    /// It was made.
    Made(PathBuf),
    /// That day has one already.
    Present,
    /// The database failed SQLite's check, so that no good copy should give way to one of it.
    Refused(String),
}

/// Lays a copy of the database into the folder `copies` beside it, and removes all but the last
/// five.
///
/// `day` is an ISO date. The copy appears under its name only when it is whole. This reads the
/// whole file through a connection of its own, so that it can run beside the
/// [`Store`](crate::Store).
pub fn daily_copy(database: &Path, day: &str) -> Result<Copy, StoreError> {
    let target = folder(database).join(format!("{DAILY}{day}.db"));
    if target.exists() {
        return Ok(Copy::Present);
    }
    let db = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let state: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if state != "ok" {
        return Ok(Copy::Refused(state));
    }
    write(&db, &target)?;
    for old in daily(database)?.iter().rev().skip(KEPT) {
        fs::remove_file(old).map_err(|source| StoreError::Io {
            path: old.clone(),
            source,
        })?;
    }
    Ok(Copy::Made(target))
}

pub(crate) fn folder(database: &Path) -> PathBuf {
    database.with_file_name("copies")
}

/// Never overwrites an earlier one: it may be the only good one.
pub(crate) fn before_migration(
    db: &Connection,
    database: &Path,
    version: u32,
) -> Result<(), StoreError> {
    let folder = folder(database);
    let name = |n: u32| folder.join(format!("version-{version}-{n}.db"));
    let free = (1..).map(name).find(|path| !path.exists());
    free.map_or(Ok(()), |target| write(db, &target))
}

fn write(db: &Connection, target: &Path) -> Result<(), StoreError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| StoreError::Io { path, source }
    };
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(io(folder))?;
    }
    let unfinished = target.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_file(&unfinished).map_err(io(&unfinished))?;
    }
    db.backup("main", &unfinished, None::<fn(rusqlite::backup::Progress)>)?;
    fs::rename(&unfinished, target).map_err(io(target))
}

/// Oldest first: ISO dates sort by time.
fn daily(database: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let folder = folder(database);
    let entries = fs::read_dir(&folder).map_err(|source| StoreError::Io {
        path: folder.clone(),
        source,
    })?;
    let mut copies: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| is_daily(path))
        .collect();
    copies.sort();
    Ok(copies)
}

fn is_daily(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    name.starts_with(DAILY) && name.ends_with(".db")
}

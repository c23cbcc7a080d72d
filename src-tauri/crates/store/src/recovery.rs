//! Recovery of a database that does not open: a copy or an empty one replaces it. The former file is kept under another
//! name until the user removes it: it may hold data that no copy has.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::files::{
    SHM, UNFINISHED, WAL, aside_prefix, duplicate, is_there, remove, rename, restored, sync_folder,
    with_suffix,
};
use crate::integrity::forget_check;
use crate::preflight::finish_restoring;
use crate::{copies, schema};

/// Replaces the database with a copy of [`good_copies`](crate::good_copies). Returns the path to which the former file
/// was moved.
///
/// `day` is an ISO date, for that name. After a crash in between, the next opening of the store finds the former file
/// or the restored one.
pub fn restore_copy(database: &Path, name: &str, day: &str) -> Result<PathBuf, StoreError> {
    prepare_copy(database, name)?;
    take_prepared(database, day)
}

/// Prepares [`take_prepared`] while the database may be in use: puts a complete copy beside it.
pub fn prepare_copy(database: &Path, name: &str) -> Result<(), StoreError> {
    let copy = copies::find(database, name)?;
    let unfinished = database.with_extension(UNFINISHED);
    let made = duplicate(&copy.path, &unfinished).map_err(StoreError::io(&unfinished));
    if made.is_err() {
        drop_prepared(database);
    }
    made
}

/// Removes the copy of [`prepare_copy`] if it was not taken.
pub fn drop_prepared(database: &Path) {
    let _ = fs::remove_file(database.with_extension(UNFINISHED));
}

/// Replaces a closed database with the copy of [`prepare_copy`]. Returns the path to which the former file was moved.
/// After an error that file is restored; if not even that is possible, the next opening finds the copy.
pub fn take_prepared(database: &Path, day: &str) -> Result<PathBuf, StoreError> {
    replace(database, day, |_| Ok(()))
}

/// Replaces the database with an empty one, as [`restore_copy`] does with a copy.
pub fn start_empty(database: &Path, day: &str) -> Result<PathBuf, StoreError> {
    replace(database, day, |new| {
        remove(new)?;
        schema::create(new)
    })
}

/// Reverts [`take_prepared`] if the new file does not open.
pub fn put_back(database: &Path, kept: &Path) -> Result<(), StoreError> {
    for suffix in [WAL, SHM] {
        remove(&with_suffix(database, suffix))?;
    }
    let kept_journal = with_suffix(kept, WAL);
    move_with_journal(
        (kept, &kept_journal),
        (database, &with_suffix(database, WAL)),
    )?;
    remove(&kept_journal)
}

/// Replaces the database with the file that `make` creates.
fn replace(
    database: &Path,
    day: &str,
    make: impl FnOnce(&Path) -> Result<(), StoreError>,
) -> Result<PathBuf, StoreError> {
    let unfinished = database.with_extension(UNFINISHED);
    let made = make(&unfinished).and_then(|()| rename(&unfinished, &restored(database)));
    if made.is_err() {
        drop_prepared(database);
    }
    made?;
    let kept = set_aside(database, day)?;
    if let Err(error) = finish_restoring(database) {
        if is_there(&kept) {
            put_back(database, &kept)?;
        }
        return Err(error);
    }
    forget_check(database);
    Ok(kept)
}

/// Moves the database away with its WAL, which may hold the latest writes.
fn set_aside(database: &Path, day: &str) -> Result<PathBuf, StoreError> {
    let kept = name_aside(database, day);
    let journals = (with_suffix(database, WAL), with_suffix(&kept, WAL));
    move_with_journal((database, &journals.0), (&kept, &journals.1))?;
    Ok(kept)
}

/// Moves a database, if it exists. Its WAL has both names from then on, so that a crash in between does not separate
/// them.
fn move_with_journal(
    (from, journal): (&Path, &Path),
    (to, new_journal): (&Path, &Path),
) -> Result<(), StoreError> {
    let moved = keep_journal(journal, new_journal).and_then(|()| {
        if is_there(from) {
            rename(from, to)?;
        }
        Ok(())
    });
    if moved.is_err() {
        let _ = fs::remove_file(new_journal);
    }
    moved
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

/// Returns a free name under which the database would be kept.
pub fn name_aside(database: &Path, day: &str) -> PathBuf {
    let prefix = aside_prefix(database);
    let name = |n: u32| {
        let number = if n == 1 {
            String::new()
        } else {
            format!("-{n}")
        };
        database.with_file_name(format!("{prefix}{day}{number}.db"))
    };
    let is_free = |path: &PathBuf| {
        ["", WAL, SHM]
            .iter()
            .all(|suffix| !is_there(&with_suffix(path, suffix)))
    };
    (1..).map(name).find(is_free).unwrap_or_else(|| name(0))
}

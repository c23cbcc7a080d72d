//! Renames that fail, for tests.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Targets of renames that fail, once per entry.
static UNREACHABLE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Makes the next `times` renames to `path` fail.
pub fn refuse_renames(path: &Path, times: usize) {
    let mut unreachable = UNREACHABLE.lock().unwrap_or_else(PoisonError::into_inner);
    unreachable.extend(std::iter::repeat_n(path.to_owned(), times));
}

pub(crate) fn check(to: &Path) -> io::Result<()> {
    let mut unreachable = UNREACHABLE.lock().unwrap_or_else(PoisonError::into_inner);
    match unreachable.iter().position(|path| path == to) {
        Some(at) => {
            unreachable.remove(at);
            Err(io::Error::other("the drive is gone"))
        }
        None => Ok(()),
    }
}

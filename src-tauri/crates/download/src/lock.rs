//! A lock across programs: one download of a file at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Number of attempts to lock a file that the previous holder has just removed.
const TRIES: usize = 10;

/// Lock that is held while a file is downloaded. The system releases it when the process ends, however that ends.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
    /// Lock file, if it is removed with the lock.
    temporary: Option<PathBuf>,
}

/// Reasons for not getting a lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("another program is downloading this file at the moment")]
    Held,
    /// The lock file cannot be created.
    #[error(transparent)]
    File(#[from] io::Error),
}

impl FileLock {
    /// Takes the lock on this file, which is created if missing and stays afterwards.
    ///
    /// # Errors
    /// Fails if another process holds it, or the file cannot be created.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        for _ in 0..TRIES {
            let file = shared_file().truncate(false).open(path)?;
            if let Some(lock) = Self::of(file, path)? {
                return Ok(lock);
            }
        }
        Err(LockError::Held)
    }

    /// Locks an open file. `None` if the previous holder has removed it meanwhile: another process may lock a new one.
    fn of(file: File, path: &Path) -> Result<Option<Self>, LockError> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held),
            // Two downloads may then write the same file: before a write, each checks that the file is its own.
            Err(TryLockError::Error(error)) if is_without_locks(&error) => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        Ok(is_at(&file, path).then_some(Self {
            _file: file,
            temporary: None,
        }))
    }

    /// Takes the lock on a file that is removed when the lock is released.
    ///
    /// # Errors
    /// Fails if another process holds it, or the file cannot be created.
    pub fn take_temporary(path: &Path) -> Result<Self, LockError> {
        let mut lock = Self::take(path)?;
        lock.temporary = Some(path.to_owned());
        Ok(lock)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Some(path) = &self.temporary {
            // A leftover file is harmless: the next holder locks it again.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns whether the file system has no locks, as some network file systems do not.
fn is_without_locks(error: &io::Error) -> bool {
    const ENOLCK: i32 = if cfg!(target_os = "macos") { 77 } else { 37 };
    error.kind() == io::ErrorKind::Unsupported || cfg!(unix) && error.raw_os_error() == Some(ENOLCK)
}

/// Returns whether an open file is the one at this path, and not one that was removed or replaced since, nor one that a
/// link points to.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Returns whether there is a file at this path: the standard library cannot identify files here.
#[cfg(not(unix))]
pub(crate) fn is_at(_: &File, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|named| named.is_file())
}

/// Opens files with the umask's mode, but never writable by everyone: a cache may be shared by a group.
pub(crate) fn shared_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o664);
    }
    options
}

/// Creates a folder and its parents, with the same mode.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o775);
    }
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_refused_until_the_first_is_released() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/b.lock");
        let first = FileLock::take(&path).expect("free");
        assert!(matches!(FileLock::take(&path), Err(LockError::Held)));
        drop(first);
        assert!(FileLock::take(&path).is_ok());
    }

    #[test]
    fn a_temporary_one_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("b.lock");
        drop(FileLock::take_temporary(&path).expect("free"));
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_the_holder_before_has_removed_is_no_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("b.lock");
        let first = FileLock::take_temporary(&path).expect("free");
        let opened = File::open(&path).expect("there");
        drop(first);
        let _third = FileLock::take_temporary(&path).expect("free");
        let second = FileLock::of(opened, &path).expect("nobody holds this one");
        assert!(second.is_none(), "two hold it");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_network_file_system_without_locks_is_no_failure() {
        assert!(is_without_locks(&io::Error::from_raw_os_error(37)));
        assert!(is_without_locks(&io::ErrorKind::Unsupported.into()));
        assert!(!is_without_locks(&io::ErrorKind::PermissionDenied.into()));
    }
}

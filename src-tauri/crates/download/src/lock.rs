//! One download of a file at a time, in all programs.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// Held while a file is downloaded. The system releases it when the process ends, however that ends.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

/// Why a lock is not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("another program is downloading this file at the moment")]
    Held,
    /// The lock's file cannot be made.
    #[error(transparent)]
    File(#[from] io::Error),
}

impl FileLock {
    /// Takes the lock on this file, which is made where it is not there and stays afterwards.
    ///
    /// # Errors
    /// Where another holds it, or the file cannot be made.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let file = shared_file().truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Held),
            // Some network file systems have no locks. Two downloads would then write the same file, whose hash shows it.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                Ok(Self { _file: file })
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}

/// A file to be written that all may read and only the user may write, whatever the umask is.
pub(crate) fn shared_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o644);
    }
    options
}

/// The same for a folder and those above it.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o755);
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
}

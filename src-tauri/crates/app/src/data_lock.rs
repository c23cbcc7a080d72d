//! The lock of a data folder: one app at a time has it open.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use system::private;

use crate::folders::LOCK_FILE;

const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Content of the lock file while chats are imported from the command line.
const IMPORT: &[u8] = b"import";

/// Lock that is held while the app runs; the system releases it when the process ends, however that ends.
#[derive(Debug)]
pub struct DataLock(File);

impl DataLock {
    /// Notes in the lock file that an import runs, for the window of an app that finds it locked.
    pub fn note_import(&self) {
        // Otherwise the window says that an app is open.
        let _ = (&self.0).write_all(IMPORT);
    }
}

impl Drop for DataLock {
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
    }
}

/// Returns whether the lock of a data folder is held by an import.
pub fn is_import(data: &Path) -> bool {
    fs::read(data.join(LOCK_FILE)).is_ok_and(|content| content == IMPORT)
}

/// Takes the lock of a data folder, which is created if missing; `None` if another app has it.
pub fn lock(data: &Path) -> io::Result<Option<DataLock>> {
    private::folder(data)?;
    let path = data.join(LOCK_FILE);
    // The target of a link would be emptied.
    if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
        let refused = format!("{LOCK_FILE} is not a file: remove it");
        return Err(io::Error::new(ErrorKind::InvalidInput, refused));
    }
    private::file(&path)?;
    let file = OpenOptions::new().read(true).append(true).open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
            tracing::warn!("this file system has no locks: a second start is not detected");
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // An import may have left its note.
    file.set_len(0)?;
    Ok(Some(DataLock(file)))
}

/// Takes the lock as soon as it is free, within `limit`: an app that is closing still has it.
pub fn lock_within(data: &Path, limit: Duration) -> io::Result<Option<DataLock>> {
    let deadline = Instant::now() + limit;
    loop {
        let lock = lock(data)?;
        if lock.is_some() || Instant::now() >= deadline {
            return Ok(lock);
        }
        thread::sleep(ASK_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_is_locked_by_one_at_a_time() {
        let home = tempfile::tempdir().expect("made");
        let data = home.path().join("data");
        let first = lock(&data).expect("no error").expect("free");
        assert!(lock(&data).expect("no error").is_none());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| path.metadata().expect("made").permissions().mode() & 0o777;
            assert_eq!((mode(&data), mode(&data.join(LOCK_FILE))), (0o700, 0o600));
        }
        let other = lock(&home.path().join("other")).expect("no error");
        assert!(other.is_some(), "another folder is free");
        assert!(!is_import(&data));
        first.note_import();
        assert!(is_import(&data) && lock(&data).expect("no error").is_none());
        drop(first);
        drop(lock(&data).expect("no error").expect("free"));
        assert!(!is_import(&data));
        assert!(lock(&data).expect("no error").is_some());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_a_file_is_no_lock_and_stays_as_it_is() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let data = tempfile::tempdir().expect("made");
        let (path, target) = (data.path().join(LOCK_FILE), data.path().join("thesis"));
        fs::write(&target, "mine").expect("written");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).expect("set");
        let refused = || lock(data.path()).expect_err("refused").to_string();
        symlink(&target, &path).expect("made");
        assert_eq!(refused(), "goldcrest.lock is not a file: remove it");
        assert_eq!(fs::read(&target).expect("there"), b"mine");
        let mode = fs::metadata(&target).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        fs::remove_file(&path).expect("removed");
        symlink(data.path().join("nothing"), &path).expect("made");
        refused();
        assert!(!data.path().join("nothing").exists());
        fs::remove_file(&path).expect("removed");
        let pipe = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(pipe.expect("started").success());
        refused();
    }

    #[test]
    fn the_lock_of_an_app_that_closes_is_waited_for() {
        let data = tempfile::tempdir().expect("made");
        let first = lock(data.path()).expect("no error").expect("free");
        let none = lock_within(data.path(), Duration::from_millis(120)).expect("no error");
        assert!(none.is_none(), "it is not free");
        let closing = thread::spawn(move || {
            thread::sleep(Duration::from_millis(120));
            drop(first);
        });
        let taken = lock_within(data.path(), Duration::from_secs(60)).expect("no error");
        assert!(taken.is_some());
        closing.join().expect("no panic");
    }
}

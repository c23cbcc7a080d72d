//! One app per data folder: a lock on a file there. On the session bus, where there is one, the app
//! has a name by which a second start raises its window.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use chat::private;

const FILE: &str = "goldcrest.lock";
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Held for as long as the app runs; the system lets go when the process ends in whatever way.
#[derive(Debug)]
pub struct DataLock(#[expect(dead_code, reason = "open, it is the lock")] File);

/// Takes the lock of a data folder, which is made where there is none; `None`: another app has it.
pub fn lock(data: &Path) -> io::Result<Option<DataLock>> {
    private::folder(data)?;
    let path = data.join(FILE);
    private::file(&path)?;
    let file = OpenOptions::new().read(true).append(true).open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
            tracing::warn!("this file system has no locks: a second start is not noticed");
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
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

#[cfg(target_os = "linux")]
pub use bus::{raise_first, serve};

#[cfg(target_os = "linux")]
mod bus {
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::time::Duration;

    use tauri::{AppHandle, Runtime};
    use zbus::blocking::{Connection, connection};

    use crate::window;

    const PATH: &str = "/org/goldcrest/Goldcrest";
    const INTERFACE: &str = "org.goldcrest.Goldcrest";
    /// A first app that hangs does not hold the second one up for longer.
    const TIMEOUT: Duration = Duration::from_secs(5);

    /// The name is the app's for as long as this lives.
    pub struct Name(#[expect(dead_code, reason = "open, it serves")] Connection);

    struct Window<R: Runtime>(AppHandle<R>);

    #[zbus::interface(name = "org.goldcrest.Goldcrest")]
    impl<R: Runtime> Window<R> {
        fn raise(&self) {
            window::bring_forward(&self.0);
        }
    }

    /// Lets later starts with this data folder raise the window.
    pub fn serve<R: Runtime>(app: &AppHandle<R>, data: &Path) -> zbus::Result<Name> {
        let connection = connection::Builder::session()?
            .name(name(data))?
            .serve_at(PATH, Window(app.clone()))?
            .build()?;
        Ok(Name(connection))
    }

    /// Raises the window of the app that has the lock of this data folder.
    pub fn raise_first(data: &Path) -> zbus::Result<()> {
        let bus = connection::Builder::session()?
            .method_timeout(TIMEOUT)
            .build()?;
        bus.call_method(
            Some(name(data).as_str()),
            PATH,
            Some(INTERFACE),
            "Raise",
            &(),
        )?;
        Ok(())
    }

    /// Apps with other data folders have other names.
    pub(super) fn name(data: &Path) -> String {
        let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
        // FNV-1a: the name only tells folders of one user apart.
        let hash = data
            .as_os_str()
            .as_bytes()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{INTERFACE}.data{hash:016x}")
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
        let other = lock(&home.path().join("other")).expect("no error");
        assert!(other.is_some(), "another folder is free");
        drop(first);
        assert!(lock(&data).expect("no error").is_some());
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

    #[cfg(target_os = "linux")]
    #[test]
    fn each_data_folder_has_a_name_of_its_own_on_the_bus() {
        let home = tempfile::tempdir().expect("made");
        let (a, b) = (home.path().join("a"), home.path().join("b"));
        for folder in [&a, &b] {
            std::fs::create_dir(folder).expect("made");
        }
        assert_ne!(bus::name(&a), bus::name(&b));
        assert_eq!(bus::name(&a), bus::name(&b.join("../a")));
    }
}

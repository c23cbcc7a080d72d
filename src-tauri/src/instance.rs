//! The app's name on the session bus, if there is one, by which a second start with the same data folder raises its
//! window.
//!
//! The bus does not check the caller, because any program of the same user could write into the data folder, too. So a
//! path that comes by it is only opened as a model; nothing is imported.

#[cfg(target_os = "linux")]
pub use bus::{raise_first, serve, withdraw};

#[cfg(not(target_os = "linux"))]
pub fn withdraw<R: tauri::Runtime>(_: &tauri::AppHandle<R>) {}

#[cfg(target_os = "linux")]
mod bus {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use tauri::{AppHandle, Manager, Runtime};
    use zbus::blocking::Connection;
    use zbus::blocking::connection::Builder;

    use crate::{given_files, main_window};

    const PATH: &str = "/org/goldcrest/Goldcrest";
    const INTERFACE: &str = "org.goldcrest.Goldcrest";
    /// Time limit for a first app that hangs.
    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Connection that owns the name until the app closes.
    struct Served(Mutex<Option<Connection>>);

    struct Window<R: Runtime>(AppHandle<R>);

    #[zbus::interface(name = "org.goldcrest.Goldcrest")]
    impl<R: Runtime> Window<R> {
        fn raise(&self) {
            main_window::bring_forward(&self.0);
        }

        /// Paths are bytes: a name need not be UTF-8.
        fn open(&self, files: Vec<Vec<u8>>) {
            let files = files.into_iter().map(OsString::from_vec);
            given_files::open(&self.0, files.map(PathBuf::from).collect());
            self.raise();
        }
    }

    /// Lets later starts with this data folder raise the window.
    pub fn serve<R: Runtime>(app: &AppHandle<R>, data: &Path) -> zbus::Result<()> {
        serve_on(Builder::session()?, app, data)
    }

    pub(super) fn serve_on<R: Runtime>(
        bus: Builder<'_>,
        app: &AppHandle<R>,
        data: &Path,
    ) -> zbus::Result<()> {
        let connection = bus
            .name(name(data))?
            .serve_at(PATH, Window(app.clone()))?
            .build()?;
        app.manage(Served(Mutex::new(Some(connection))));
        Ok(())
    }

    /// Releases the name. An app that is closing has no window to raise; a start in this time finds nobody to ask, and
    /// waits for the data folder.
    pub fn withdraw<R: Runtime>(app: &AppHandle<R>) {
        let Some(served) = app.try_state::<Served>() else {
            return;
        };
        let connection = served
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(Err(error)) = connection.map(Connection::close) {
            tracing::warn!("the connection to the session bus did not close: {error}");
        }
    }

    /// Raises the window of the app that has the lock of this data folder, and passes it `files`, of which it opens a
    /// model.
    pub fn raise_first(data: &Path, files: &[PathBuf]) -> zbus::Result<()> {
        raise_on(Builder::session()?, data, files)
    }

    pub(super) fn raise_on(bus: Builder<'_>, data: &Path, files: &[PathBuf]) -> zbus::Result<()> {
        let bus = bus.method_timeout(TIMEOUT).build()?;
        let name = name(data);
        let (app, interface) = (Some(name.as_str()), Some(INTERFACE));
        if files.is_empty() {
            bus.call_method(app, PATH, interface, "Raise", &())?;
            return Ok(());
        }
        let paths = files.iter().map(|file| file.as_os_str().as_bytes());
        let paths: Vec<&[u8]> = paths.collect();
        bus.call_method(app, PATH, interface, "Open", &(paths,))?;
        Ok(())
    }

    /// Returns the name of the app, which depends on the data folder.
    pub(super) fn name(data: &Path) -> String {
        let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
        // FNV-1a: the name only distinguishes folders of one user.
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
    use std::path::Path;

    use super::*;

    /// A private session bus of the test, until this is dropped.
    #[cfg(target_os = "linux")]
    struct Bus {
        daemon: std::process::Child,
        address: String,
    }

    #[cfg(target_os = "linux")]
    impl Bus {
        /// Starts it; `None` if there is no D-Bus.
        fn start() -> Option<Self> {
            use std::io::{BufRead, BufReader};
            use std::process::{Command, Stdio};
            let mut daemon = Command::new("dbus-daemon")
                .args(["--session", "--nofork", "--print-address"])
                .stdout(Stdio::piped())
                .spawn()
                .ok()?;
            let mut address = String::new();
            BufReader::new(daemon.stdout.take()?)
                .read_line(&mut address)
                .ok()?;
            let address = address.trim().to_owned();
            Some(Self { daemon, address })
        }

        fn builder(&self) -> zbus::blocking::connection::Builder<'static> {
            zbus::blocking::connection::Builder::address(self.address.as_str()).expect("an address")
        }
    }

    #[cfg(target_os = "linux")]
    impl Drop for Bus {
        fn drop(&mut self) {
            let _ = self.daemon.kill();
            let _ = self.daemon.wait();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_second_start_hands_its_files_over_whatever_their_names() {
        use crate::given_files::GivenFile;
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        use tauri::Manager;
        use tauri::test::{mock_builder, mock_context, noop_assets};
        let Some(bus) = Bus::start() else {
            return testing::skip("there is no dbus-daemon");
        };
        let home = tempfile::tempdir().expect("made");
        let app = mock_builder()
            .manage(GivenFile::default())
            .build(mock_context(noop_assets()))
            .expect("built");
        bus::serve_on(bus.builder(), app.handle(), home.path()).expect("served");
        let file = Path::new(OsStr::from_bytes(b"/models/gr\xfc\xdfe.gguf")).to_owned();
        let files = ["/notes.txt".into(), file.clone()];
        bus::raise_on(bus.builder(), home.path(), &files).expect("opened");
        assert_eq!(app.state::<GivenFile>().take(), Some(file));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_window_is_raised_by_its_data_folder_until_its_app_closes() {
        use tauri::test::{mock_builder, mock_context, noop_assets};
        let Some(bus) = Bus::start() else {
            return testing::skip("there is no dbus-daemon");
        };
        let home = tempfile::tempdir().expect("made");
        let app = || mock_builder().build(mock_context(noop_assets()));
        let (first, next) = (app().expect("built"), app().expect("built"));
        let raise = |data: &Path| bus::raise_on(bus.builder(), data, &[]);
        assert!(raise(home.path()).is_err(), "nobody has the name yet");
        bus::serve_on(bus.builder(), first.handle(), home.path()).expect("served");
        raise(home.path()).expect("raised");
        assert!(raise(&home.path().join("other")).is_err());
        withdraw(first.handle());
        withdraw(first.handle());
        assert!(raise(home.path()).is_err(), "it closes");
        bus::serve_on(bus.builder(), next.handle(), home.path()).expect("the name is free");
        raise(home.path()).expect("raised");
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

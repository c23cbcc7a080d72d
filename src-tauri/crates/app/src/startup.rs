//! The start: the data folder is locked and the store opened. On failure the window shows the reason and offers
//! remedies; the app then continues without a restart.

use std::io;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use chat::{Failure, FailureCode};
use store::StoreError;

use crate::folders::Folders;
use crate::wire::{StartProblem, StartProblemKind, StartState};

/// Reasons for which the app did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another Goldcrest holds the lock of the data folder.
    #[error("Goldcrest is already using the data folder {0}.")]
    InUse(String),
    /// `goldcrest import` holds it.
    #[error("Chats are being imported from the command line.")]
    Importing,
    /// The chosen data folder is missing.
    #[error("{0}")]
    FolderMissing(String),
    /// The store did not open.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The threads did not start or ended in a panic, or their first read failed.
    #[error("{0}")]
    Chat(#[from] Failure),
}

impl StartError {
    /// Makes the error for a data folder that cannot be created or locked.
    pub fn data_folder(data: &Path, source: io::Error) -> StartError {
        StartError::Store(match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
            _ => StoreError::FolderNotWritable {
                path: data.to_owned(),
                source,
            },
        })
    }

    fn kind(&self) -> StartProblemKind {
        let StartError::Store(error) = self else {
            return match self {
                StartError::InUse(_) => StartProblemKind::InUse,
                StartError::Importing => StartProblemKind::Importing,
                StartError::FolderMissing(_) => StartProblemKind::FolderMissing,
                _ => StartProblemKind::Other,
            };
        };
        match error {
            StoreError::Damaged { .. } => StartProblemKind::Damaged,
            StoreError::Missing { .. } => StartProblemKind::Missing,
            StoreError::Newer { .. } => StartProblemKind::Newer,
            StoreError::Foreign { .. } => StartProblemKind::Foreign,
            StoreError::Unreadable { .. } => StartProblemKind::Unreadable,
            StoreError::ReadOnly { .. } => StartProblemKind::ReadOnly,
            StoreError::FolderNotWritable { .. } => StartProblemKind::FolderNotWritable,
            StoreError::Held { .. } => StartProblemKind::Held,
            StoreError::DiskFull | StoreError::LittleRoom { .. } => StartProblemKind::DiskFull,
            StoreError::Altered { .. }
            | StoreError::NotFound(_)
            | StoreError::Io { .. }
            | StoreError::Sqlite(_) => StartProblemKind::Other,
        }
    }

    /// Returns whether replacing the database would help.
    fn is_of_the_file(&self) -> bool {
        matches!(
            self.kind(),
            StartProblemKind::Damaged
                | StartProblemKind::Missing
                | StartProblemKind::Newer
                | StartProblemKind::Foreign
                | StartProblemKind::Unreadable
                | StartProblemKind::ReadOnly
        )
    }
}

/// Assembles the app; called again after each attempt to repair it.
pub type OpenStore = Box<dyn Fn() -> Result<(), StartError> + Send + Sync>;

/// Time that the window waits for the store, so that it opens with its position and colours. Migrating a large store
/// takes longer.
const WINDOW_WAITS: Duration = Duration::from_millis(500);

/// State of the start, with its error. Callers wait while the store is being opened.
pub struct Startup {
    folders: Folders,
    open: OpenStore,
    error: Mutex<Option<StartError>>,
}

impl Startup {
    /// Opens for the first time, on a separate thread if it takes long.
    pub fn begin(folders: Folders, open: OpenStore) -> Arc<Startup> {
        let startup = Arc::new(Startup {
            folders,
            open,
            error: Mutex::new(Some(unfinished("it ended in the middle"))),
        });
        let opening = Arc::clone(&startup);
        let (sender, receiver) = channel();
        let thread = thread::Builder::new().name("start".into()).spawn(move || {
            let mut error = opening.error();
            // Holds the error from here on. Sending fails if nobody waits any more.
            let _ = sender.send(());
            *error = said((opening.open)());
            let _ = sender.send(());
        });
        match thread {
            Ok(_) => {
                // From here on callers wait.
                let _ = receiver.recv();
                let _ = receiver.recv_timeout(WINDOW_WAITS);
            }
            Err(error) => *startup.error() = Some(unfinished(&error.to_string())),
        }
        startup
    }

    /// Returns the state for the page. Reads all copies if they would help.
    pub fn view(&self) -> StartState {
        self.show(self.error().as_ref())
    }

    /// Returns an error unless the chosen data folder is missing.
    pub fn needs_folder(&self) -> Result<(), Failure> {
        match self.error().as_ref() {
            Some(StartError::FolderMissing(_)) => Ok(()),
            _ => Err(Failure::other("The data folder is in its place.")),
        }
    }

    /// Retries: the fault may have been repaired.
    pub fn retry(&self) -> StartState {
        self.mend(|_| Ok(())).unwrap_or_else(|_| self.view())
    }

    /// Replaces the database with a copy and opens it.
    pub fn restore(&self, copy: &str) -> Result<StartState, Failure> {
        self.mend(|database| store::restore_copy(database, copy, &today()).map(|_| ()))
    }

    /// Replaces the database with an empty one and opens it.
    pub fn start_empty(&self) -> Result<StartState, Failure> {
        self.mend(|database| store::start_empty(database, &today()).map(|_| ()))
    }

    /// Opens a damaged database as it is, if it opens at all.
    pub fn open_damaged(&self) -> Result<StartState, Failure> {
        self.mend(|database| {
            store::forget_check(database);
            Ok(())
        })
    }

    /// Opens after `act`, which may touch the database only if that is the cause. One at a time.
    fn mend(
        &self,
        act: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<StartState, Failure> {
        let mut error = self.error();
        let Some(found) = error.as_ref() else {
            return Ok(StartState::Ready);
        };
        if found.is_of_the_file() {
            act(&self.folders.database())?;
        }
        *error = said((self.open)());
        Ok(self.show(error.as_ref()))
    }

    fn error(&self) -> MutexGuard<'_, Option<StartError>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, error: Option<&StartError>) -> StartState {
        let Some(error) = error else {
            return StartState::Ready;
        };
        let database = self.folders.database();
        let replaceable = error.is_of_the_file();
        let copies = if replaceable {
            store::good_copies(&database)
        } else {
            Vec::new()
        };
        let kept_as = (replaceable && error.kind() != StartProblemKind::Missing)
            .then(|| store::name_aside(&database, &today()));
        let opens = matches!(
            error,
            StartError::Store(StoreError::Damaged { opens: true, .. })
        );
        StartState::Problem(StartProblem {
            kind: error.kind(),
            message: error.to_string(),
            folder: self.folders.data.to_string_lossy().into_owned(),
            copies,
            kept_as: kept_as
                .as_deref()
                .and_then(Path::file_name)
                .map(|name| name.to_string_lossy().into_owned()),
            opens,
        })
    }
}

/// Returns the cause of a start that failed after the store was open: a check of the whole file finds it.
pub fn cause(folders: &Folders, failure: Failure) -> StartError {
    if failure.code != FailureCode::Store {
        return failure.into();
    }
    match store::check(&folders.database()) {
        Err(error @ StoreError::Damaged { .. }) => error.into(),
        _ => failure.into(),
    }
}

fn unfinished(cause: &str) -> StartError {
    let message = format!("Goldcrest could not open your chats: {cause}.");
    Failure::new(FailureCode::Other, message).into()
}

fn said(opened: Result<(), StartError>) -> Option<StartError> {
    opened.err().inspect(|error| tracing::error!("{error}"))
}

fn today() -> String {
    chat::now().date().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use store::Store;
    use tempfile::TempDir;

    use super::*;

    /// Makes a start that opens the store of a folder, and drops it again.
    fn startup(harm: impl Fn(&Path)) -> (TempDir, Arc<Startup>) {
        let home = tempfile::tempdir().expect("a folder");
        let folders = Folders {
            data: home.path().join("data"),
        };
        let database = folders.database();
        let store = Store::open(&database).expect("made");
        store.chats().create("Kept", "2026-03-05", 1).expect("made");
        store::daily_copy(&database, "2026-03-05").expect("copied");
        drop(store);
        harm(&database);
        let open: OpenStore = Box::new(move || {
            Store::open(&database)?;
            Ok(())
        });
        (home, Startup::begin(folders, open))
    }

    fn garbage(database: &Path) {
        fs::write(database, [7; 5000]).expect("written");
    }

    #[test]
    fn every_error_is_its_own_problem_and_some_are_the_files() {
        use StartProblemKind as Kind;
        let path = || PathBuf::from("/data/goldcrest.db");
        let source = || io::Error::other("no");
        let detail = || "malformed".to_owned();
        let damaged = StoreError::Damaged {
            path: path(),
            copies: path(),
            detail: detail(),
            opens: false,
        };
        let newer = StoreError::Newer {
            path: path(),
            found: 9,
            known: 8,
        };
        let unreadable = StoreError::Unreadable {
            path: path(),
            detail: detail(),
        };
        let not_writable = StoreError::FolderNotWritable {
            path: path(),
            source: source(),
        };
        let failed = StoreError::Io {
            path: path(),
            source: source(),
        };
        for (error, kind, is_of_the_file) in [
            (damaged, Kind::Damaged, true),
            (newer, Kind::Newer, true),
            (StoreError::Foreign { path: path() }, Kind::Foreign, true),
            (unreadable, Kind::Unreadable, true),
            (StoreError::ReadOnly { path: path() }, Kind::ReadOnly, true),
            (not_writable, Kind::FolderNotWritable, false),
            (StoreError::Held { path: path() }, Kind::Held, false),
            (StoreError::DiskFull, Kind::DiskFull, false),
            (StoreError::NotFound("copy"), Kind::Other, false),
            (failed, Kind::Other, false),
            (StoreError::Sqlite(Box::new(source())), Kind::Other, false),
        ] {
            let error = StartError::from(error);
            assert_eq!(
                (error.kind(), error.is_of_the_file()),
                (kind, is_of_the_file),
                "{error}"
            );
        }
        let in_use = StartError::InUse("/data".into());
        assert_eq!(
            (in_use.kind(), in_use.is_of_the_file()),
            (Kind::InUse, false)
        );
        let failed = StartError::from(Failure::new(FailureCode::Store, "no"));
        assert_eq!(
            (failed.kind(), failed.is_of_the_file()),
            (Kind::Other, false)
        );
    }

    fn problem(startup: StartState) -> StartProblem {
        match startup {
            StartState::Problem(problem) => problem,
            StartState::Ready => panic!("it started"),
        }
    }

    fn chats(home: &TempDir) -> usize {
        let store = Store::open(&home.path().join("data/goldcrest.db")).expect("opens");
        store.chats().list().expect("listed").len()
    }

    fn begin(open: impl Fn() -> Result<(), StartError> + Send + Sync + 'static) -> Arc<Startup> {
        let folders = Folders {
            data: PathBuf::from("/data"),
        };
        Startup::begin(folders, Box::new(open))
    }

    #[test]
    fn the_window_does_not_wait_for_a_long_opening_and_what_asks_does() {
        let (go_on, waits) = channel::<()>();
        let waits = Mutex::new(waits);
        let startup = begin(move || {
            let _ = waits.lock().expect("one opens").recv();
            Err(StartError::InUse("/data".into()))
        });
        let asks = Arc::clone(&startup);
        let answer = thread::spawn(move || asks.view());
        thread::sleep(Duration::from_millis(100));
        assert!(!answer.is_finished(), "it is not known yet");
        drop(go_on);
        let answer = answer.join().expect("an answer");
        assert_eq!(problem(answer).kind, StartProblemKind::InUse);
    }

    #[test]
    fn an_opening_that_ends_in_a_panic_is_a_problem() {
        let startup = begin(|| panic!("of this test"));
        let found = problem(startup.view());
        assert_eq!(found.kind, StartProblemKind::Other);
        assert!(found.message.contains("ended in the middle"));
    }

    #[test]
    fn a_copy_is_restored_and_the_damaged_file_is_kept_as_announced() {
        let (home, startup) = startup(garbage);
        let problem = problem(startup.view());
        assert_eq!(problem.kind, StartProblemKind::Damaged);
        assert_eq!(problem.copies[0].day.as_deref(), Some("2026-03-05"));
        assert_eq!(problem.copies[0].chats, 1);
        assert!(!problem.opens);

        let unknown = startup.restore("day-1999-01-01.db");
        assert!(unknown.is_err(), "{unknown:?}");
        let restored = startup.restore(&problem.copies[0].name);
        assert_eq!(restored, Ok(StartState::Ready));
        assert_eq!(startup.view(), StartState::Ready);
        assert_eq!(chats(&home), 1);
        let kept = home
            .path()
            .join("data")
            .join(problem.kept_as.expect("named"));
        assert_eq!(fs::read(kept).expect("kept"), [7; 5000]);
    }

    #[test]
    fn an_empty_file_is_begun_once_and_the_damaged_one_is_kept() {
        let (home, startup) = startup(garbage);
        let kept_as = problem(startup.view()).kept_as.expect("named");
        assert_eq!(startup.start_empty(), Ok(StartState::Ready));
        // A second call does not set the new file aside.
        assert_eq!(startup.start_empty(), Ok(StartState::Ready));
        assert_eq!(chats(&home), 0);
        let data = home.path().join("data");
        assert_eq!(fs::read(data.join(kept_as)).expect("kept"), [7; 5000]);
        let aside = |name: &str| name.contains("set-aside");
        let names = fs::read_dir(data).expect("read");
        let names = names.map(|entry| entry.expect("read").file_name());
        let kept = names.filter(|name| aside(&name.to_string_lossy()));
        assert_eq!(kept.count(), 1);
    }

    #[test]
    fn what_was_mended_elsewhere_opens_when_it_is_tried_again() {
        let (home, startup) = startup(garbage);
        assert_eq!(problem(startup.retry()).kind, StartProblemKind::Damaged);
        let data = home.path().join("data");
        let copy = data.join("copies/day-2026-03-05.db");
        fs::copy(copy, data.join("goldcrest.db")).expect("copied");
        assert_eq!(startup.retry(), StartState::Ready);
        assert_eq!(startup.view(), StartState::Ready);
    }

    /// Damages a part of a database that opening does not read.
    fn damage_in_part(database: &Path) {
        let store = Store::open(database).expect("opens");
        let text = "-".repeat(100_000);
        store
            .drafts()
            .set(chat::DraftPlace::NewChat, &text)
            .expect("saved");
        drop(store);
        let mut bytes = fs::read(database).expect("read");
        // A page of text only, which begins with the number of the next one.
        let is_of_text = |page: &&mut [u8]| page[4..].iter().all(|byte| *byte == b'-');
        let page = bytes.chunks_mut(4096).find(is_of_text);
        page.expect("the text").fill(0xff);
        fs::write(database, bytes).expect("written");
    }

    #[test]
    fn a_failure_after_the_opening_is_the_files_where_the_file_is_damaged() {
        let home = tempfile::tempdir().expect("a folder");
        let folders = Folders {
            data: home.path().to_owned(),
        };
        drop(Store::open(&folders.database()).expect("made"));
        let found = |code| cause(&folders, Failure::new(code, "It could not be read.")).kind();
        assert_eq!(found(FailureCode::Store), StartProblemKind::Other);
        damage_in_part(&folders.database());
        assert_eq!(found(FailureCode::Store), StartProblemKind::Damaged);
        assert_eq!(found(FailureCode::DiskFull), StartProblemKind::Other);
    }

    #[test]
    fn a_missing_file_is_asked_about_and_has_no_name_to_be_kept_under() {
        for (restores, count) in [(true, 1), (false, 0)] {
            let (home, startup) = startup(|database| fs::remove_file(database).expect("removed"));
            let problem = problem(startup.view());
            let kind = StartProblemKind::Missing;
            assert_eq!((problem.kind, problem.kept_as), (kind, None));
            assert_eq!(problem.copies.len(), 1);
            let taken = if restores {
                startup.restore(&problem.copies[0].name)
            } else {
                startup.start_empty()
            };
            assert_eq!(taken, Ok(StartState::Ready));
            assert_eq!(chats(&home), count);
        }
    }

    #[test]
    fn what_is_found_damaged_in_part_can_be_used_as_it_is() {
        let (home, startup) = startup(|database| {
            damage_in_part(database);
            let copy = store::daily_copy(database, "2026-03-06").expect("looked at");
            assert!(matches!(copy, store::Copy::Refused(_)), "{copy:?}");
        });
        let found = problem(startup.view());
        assert_eq!((found.kind, found.opens), (StartProblemKind::Damaged, true));
        assert_eq!(found.copies.len(), 1);
        assert_eq!(problem(startup.retry()).kind, StartProblemKind::Damaged);
        assert_eq!(startup.open_damaged(), Ok(StartState::Ready));
        assert_eq!(chats(&home), 1);
    }

    #[test]
    fn where_the_file_is_not_the_cause_it_stays_and_only_trying_again_is_offered() {
        let home = tempfile::tempdir().expect("a folder");
        let data = home.path().join("data");
        let folders = Folders { data: data.clone() };
        drop(Store::open(&folders.database()).expect("made"));
        for (kind, fail) in [
            (StartProblemKind::DiskFull, io::ErrorKind::StorageFull),
            (StartProblemKind::DiskFull, io::ErrorKind::QuotaExceeded),
            (
                StartProblemKind::FolderNotWritable,
                io::ErrorKind::PermissionDenied,
            ),
        ] {
            let data = data.clone();
            let open: OpenStore =
                Box::new(move || Err(StartError::data_folder(&data, fail.into())));
            let startup = Startup::begin(folders.clone(), open);
            assert!(startup.start_empty().is_ok());
            let problem = problem(startup.view());
            assert_eq!((problem.kind, problem.kept_as), (kind, None));
            assert!(folders.database().exists());
        }
        let in_use: OpenStore = Box::new(|| Err(StartError::InUse("/data".into())));
        let problem = problem(Startup::begin(folders, in_use).view());
        assert_eq!(problem.kind, StartProblemKind::InUse);
        assert!(problem.message.contains("/data"));
    }
}

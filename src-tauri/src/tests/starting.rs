//! The start behind the window: the data folder is locked, the chats are opened, and both are closed properly.

use std::sync::atomic::Ordering;

use app::data_lock;
use chat::{SystemClock, Timing};

use super::requests::Recorder;
use super::*;
use crate::{given_files, shell};
use devices::{CrashMarkers, Work};

/// Makes an app whose chats are not opened yet.
fn unopened(data: &Path) -> (App<MockRuntime>, Arc<QuietDesktop>) {
    let app = mock_builder()
        .build(tauri::generate_context!(test = true))
        .expect("the app is built");
    let desktop = Arc::new(QuietDesktop::default());
    let shared: Arc<dyn Desktop> = desktop.clone();
    app.manage(shared);
    app.manage(Events::default());
    app.manage(GivenFile::default());
    app.manage(CrashMarkers::new(data));
    (app, desktop)
}

#[test]
fn the_chats_are_opened_once_the_data_folder_is_free_and_it_is_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let folders = Folders {
        data: home.path().join("data"),
    };
    let store = Store::open(&folders.database()).expect("made");
    let first = Chat::start(store, Box::new(NoModel::default()), Box::new(|_| {})).expect("a chat");
    let dark = chat::Settings {
        theme: chat::Theme::Dark,
        ..chat::Settings::default()
    };
    first.save_settings(dark).expect("saved");
    first.shutdown();

    let (app, desktop) = unopened(&folders.data);
    let lock = || data_lock::lock(&folders.data).expect("no error");
    let other = lock().expect("free");
    let open = shell::opener(app.handle().clone(), folders.clone(), None);
    let error = open().expect_err("another app has it");
    let place = folders.data.display().to_string();
    assert!(
        matches!(&error, StartError::InUse(data) if *data == place),
        "{error}"
    );
    assert!(app.try_state::<Chat>().is_none());

    other.note_import();
    let error = open().expect_err("an import has it");
    assert!(matches!(error, StartError::Importing), "{error}");
    drop(other);
    open().expect("it opens");
    let chat = app.state::<Chat>();
    assert_eq!(
        chat.snapshot().expect("read").settings.theme,
        chat::Theme::Dark
    );
    let theme = *desktop.theme.lock().expect("not poisoned");
    assert_eq!(theme, Some(chat::Theme::Dark), "the frame has the colours");
    assert!(lock().is_none(), "no other app takes the folder");

    let markers = app.state::<CrashMarkers>();
    let mark = markers.begin(Work::GpuInUse, &1).expect("marked");
    shell::leave(app.handle());
    assert!(chat.snapshot().is_err(), "the chats are closed");
    assert!(!markers.file(Work::GpuInUse).exists(), "this is no crash");
    drop(mark);
}

/// Returns the file of the model, once its status is final.
fn model_file(chat: &Chat) -> Option<PathBuf> {
    let settled = || {
        let status = chat.snapshot().expect("read").model.status;
        (!status.is_opening()).then_some(status)
    };
    until(|| settled().is_some(), "the model is not settled");
    let status = settled()?;
    status.ready()?.file.clone().map(PathBuf::from)
}

#[test]
fn a_file_waits_for_the_chats_and_is_opened_with_them() {
    let home = tempfile::tempdir().expect("a folder");
    let folders = Folders {
        data: home.path().join("data"),
    };
    let mine = home.path().join("mine.gguf");
    std::fs::copy(testing::tiny_model(), &mine).expect("copied");
    let (app, _) = unopened(&folders.data);
    let held = data_lock::lock(&folders.data)
        .expect("no error")
        .expect("free");
    let open = shell::opener(app.handle().clone(), folders.clone(), None);
    given_files::open(app.handle(), vec![mine.clone()]);
    open().expect_err("another app has the folder");
    drop(held);
    open().expect("it opens");
    let chat = app.state::<Chat>();
    assert_eq!(model_file(&chat), Some(mine));

    let next = home.path().join("next.gguf");
    std::fs::copy(testing::tiny_model(), &next).expect("copied");
    given_files::open(app.handle(), vec![next.clone()]);
    until(
        || model_file(&chat).as_ref() == Some(&next),
        "it was not opened",
    );
    shell::leave(app.handle());
}

#[test]
fn a_data_folder_that_cannot_be_made_is_the_reason() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    std::fs::write(&data, "a file in the folder's place").expect("written");
    let (app, _) = unopened(&data);
    let folders = Folders { data: data.clone() };
    let open = shell::opener(app.handle().clone(), folders.clone(), None);
    let startup = Startup::begin(folders, open);
    let kind = |startup: StartState| match startup {
        StartState::Problem(problem) => Some(problem.kind),
        StartState::Ready => None,
    };
    let not_writable = app::wire::StartProblemKind::FolderNotWritable;
    assert_eq!(kind(startup.view()), Some(not_writable));
    std::fs::remove_file(&data).expect("removed");
    assert_eq!(kind(startup.retry()), None);
    app.state::<Chat>().shutdown();
}

#[test]
fn a_model_that_does_not_stop_stays_marked_and_one_that_stops_does_not() {
    for (is_deaf, close_within) in [
        (true, Duration::from_millis(50)),
        (false, Duration::from_secs(60)),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let markers = CrashMarkers::new(folder.path());
        let model = Recorder::endless(is_deaf);
        let timing = Timing {
            close_within,
            ..Timing::default()
        };
        let chat = Chat::start_with(
            Store::in_memory().expect("a store"),
            Box::new(model.clone()),
            Box::new(SystemClock),
            timing,
            Box::new(|_| {}),
        )
        .expect("a chat");
        chat.send(None, "Hello", false).expect("sent");
        until(|| model.turns() == 1, "nothing is asked of the model");
        let mark = markers.begin(Work::GpuInUse, &1).expect("marked");
        host::close(&chat, &markers);
        assert_eq!(markers.file(Work::GpuInUse).exists(), is_deaf);
        model.is_endless.store(false, Ordering::Relaxed);
        drop(mark);
    }
}

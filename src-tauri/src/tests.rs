//! The commands through Tauri's own dispatch, with the capabilities that ship: allowed and refused requests.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use app::folders::Folders;
use app::local_api::LocalApi;
use app::model_check::ModelChecker;
use app::startup::{StartError, Startup};
use app::tool_servers::ToolServers;
use app::wire::StartState;
use chat::{Chat, Failure, FailureCode, ModelChoice, ModelHost, ModelInfo, ModelOptions, Opening};
use engine::{Conversation, Event, Finished, ModelRequest, Prompt, RequestId};
use serde_json::{Value, json};
use store::Store;
use tauri::ipc::{CallbackFn, Channel, InvokeBody};
use tauri::test::{INVOKE_KEY, MockRuntime, get_ipc_response, mock_builder};
use tauri::webview::InvokeRequest;
use tauri::{App, DragDropEvent, Manager, Url, WebviewWindow, WebviewWindowBuilder, WindowEvent};
use tempfile::TempDir;

use crate::desktop::{Desktop, FileFilter};
use crate::events::Events;
use crate::given_files::GivenFile;
use crate::transfers::Transfers;
use crate::{commands, window};

mod data;
mod model_list;
mod presets;
pub mod requests;
mod starting;

/// A host without a model, which records the requested ones.
#[derive(Clone, Default)]
struct NoModel {
    asked: Arc<Mutex<Vec<ModelChoice>>>,
}

impl ModelHost for NoModel {
    fn open(
        &mut self,
        model: &ModelChoice,
        _: &ModelOptions,
        _: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure> {
        self.asked.lock().expect("not poisoned").push(model.clone());
        Err(Failure::new(FailureCode::BadModel, "there is none"))
    }

    fn close(&mut self) {}

    fn info(&self) -> Option<&ModelInfo> {
        None
    }

    fn prompt(&mut self, _: &Conversation, _: &AtomicBool) -> Result<Prompt, Failure> {
        Err(Failure::new(FailureCode::Other, "there is none"))
    }

    fn submit(&mut self, _: ModelRequest) -> Result<(), Failure> {
        Err(Failure::new(FailureCode::Other, "there is none"))
    }

    fn step(
        &mut self,
        _: &AtomicBool,
        _: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Vec<(RequestId, Result<Finished, Failure>)> {
        Vec::new()
    }
}

/// A desktop whose user picks nothing unless a test sets it, and which records the opened items.
#[derive(Default)]
struct QuietDesktop {
    picks: Mutex<Option<PathBuf>>,
    /// Folder in which the last file dialog began.
    from: Mutex<Option<PathBuf>>,
    opened: Mutex<Vec<String>>,
    trashed: Mutex<Vec<PathBuf>>,
    theme: Mutex<Option<chat::Theme>>,
    zoom: Mutex<Option<u32>>,
}

impl Desktop for QuietDesktop {
    fn open_files(&self, _: &str, _: FileFilter, from: Option<&Path>, _: bool) -> Vec<PathBuf> {
        *self.from.lock().expect("not poisoned") = from.map(Path::to_owned);
        let picked = self.picks.lock().expect("not poisoned").take();
        picked.into_iter().collect()
    }

    fn save_file(&self, _: &str, name: &str, from: Option<&Path>) -> Option<PathBuf> {
        *self.from.lock().expect("not poisoned") = from.map(Path::to_owned);
        let picked = self.picks.lock().expect("not poisoned").take()?;
        Some(if picked.is_dir() {
            picked.join(name)
        } else {
            picked
        })
    }

    fn pick_folder(&self, _: &str, _: &Path) -> Option<PathBuf> {
        self.picks.lock().expect("not poisoned").take()
    }

    fn print(&self) -> Result<(), chat::Failure> {
        self.opened
            .lock()
            .expect("not poisoned")
            .push("print".to_owned());
        Ok(())
    }

    fn restart(&self) {
        self.opened
            .lock()
            .expect("not poisoned")
            .push("restart".to_owned());
    }

    fn reveal(&self, file: &Path) -> Result<(), chat::Failure> {
        self.show_folder(file)
    }

    fn trash(&self, files: &[PathBuf]) -> Result<(), chat::Failure> {
        self.trashed
            .lock()
            .expect("not poisoned")
            .extend_from_slice(files);
        for file in files {
            std::fs::remove_file(file).map_err(|error| chat::Failure::other(error.to_string()))?;
        }
        Ok(())
    }

    fn browse(&self, url: &Url) -> Result<(), chat::Failure> {
        self.opened
            .lock()
            .expect("not poisoned")
            .push(url.to_string());
        Ok(())
    }

    fn show_folder(&self, folder: &Path) -> Result<(), chat::Failure> {
        self.opened
            .lock()
            .expect("not poisoned")
            .push(folder.display().to_string());
        Ok(())
    }

    fn quit(&self) {
        self.opened
            .lock()
            .expect("not poisoned")
            .push("quit".to_owned());
    }

    fn set_theme(&self, theme: chat::Theme) {
        *self.theme.lock().expect("not poisoned") = Some(theme);
    }

    fn set_zoom(&self, percent: u32) {
        *self.zoom.lock().expect("not poisoned") = Some(percent);
    }
}

struct Window {
    app: App<MockRuntime>,
    desktop: Arc<QuietDesktop>,
    model: NoModel,
    _data: TempDir,
}

impl Window {
    fn open() -> Self {
        let model = NoModel::default();
        Self::with(Box::new(model.clone()), model)
    }

    /// Makes a window over another model than `model`, which is then not used.
    fn with(generate: Box<dyn ModelHost>, model: NoModel) -> Self {
        let store = Store::in_memory().expect("a store");
        let data = tempfile::tempdir().expect("a folder");
        Self::over(store, data, generate, model)
    }

    /// Makes a window over a store, which may be in this data folder.
    fn over(store: Store, data: TempDir, generate: Box<dyn ModelHost>, model: NoModel) -> Self {
        let app = mock_builder()
            .invoke_handler(commands::handler())
            .build(tauri::generate_context!(test = true))
            .expect("the app is built");
        let events = Events::default();
        let to_page = events.clone();
        let on_event = move |event| to_page.send(event);
        let chat = Chat::start(store, generate, Box::new(on_event)).expect("a chat");
        let models = model_list::start(&chat, &events, data.path());
        let desktop = Arc::new(QuietDesktop::default());
        let shared: Arc<dyn Desktop> = desktop.clone();
        app.manage(shared);
        app.manage(events);
        app.manage(GivenFile::default());
        app.manage(ToolServers::start(&chat, || {}).expect("the tools start"));
        app.manage(LocalApi::start(&chat, |_| {}).expect("it starts"));
        app.manage(chat);
        app.manage(models);
        app.manage(ModelChecker::default());
        app.manage(Transfers::default());
        app.manage(Folders {
            data: data.path().to_owned(),
        });
        Self {
            app,
            desktop,
            model,
            _data: data,
        }
    }

    fn page(&self, label: &str) -> WebviewWindow<MockRuntime> {
        self.app.get_webview_window(label).unwrap_or_else(|| {
            WebviewWindowBuilder::new(&self.app, label, Default::default())
                .build()
                .expect("a window")
        })
    }

    fn invoke(&self, command: &str, arguments: Value) -> Result<Value, Value> {
        self.invoke_from("main", "tauri://localhost", command, arguments)
    }

    fn invoke_from(
        &self,
        label: &str,
        origin: &str,
        command: &str,
        arguments: Value,
    ) -> Result<Value, Value> {
        let request = InvokeRequest {
            cmd: command.to_owned(),
            callback: CallbackFn(0),
            error: CallbackFn(1),
            url: origin.parse().expect("an address"),
            body: InvokeBody::Json(arguments),
            headers: Default::default(),
            invoke_key: INVOKE_KEY.to_owned(),
        };
        get_ipc_response(&self.page(label), request).map(|body| body.deserialize().expect("JSON"))
    }
}

#[test]
fn the_main_page_may_ask() {
    let window = Window::open();
    let snapshot = window.invoke("snapshot", json!({})).expect("allowed");
    assert_eq!(snapshot["firstStart"], true);
    assert_eq!(snapshot["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        snapshot["settings"]["samplingChanges"]["temperature"],
        Value::Null
    );
    assert!(snapshot["model"]["status"]["state"].is_string());
}

#[test]
fn no_other_window_no_other_origin_and_nothing_of_tauri_may() {
    let window = Window::open();
    let refused = |label: &str, origin: &str, command: &str| {
        let error = window
            .invoke_from(label, origin, command, json!({}))
            .expect_err(&format!("{command} from {label} at {origin}"));
        assert!(
            error.to_string().contains("not allowed"),
            "{command}: {error}"
        );
    };
    refused("other", "tauri://localhost", "snapshot");
    refused("main", "https://example.org", "snapshot");
    refused("main", "http://localhost.example.org", "send");
    for command in [
        "plugin:window|close",
        "plugin:event|emit",
        "plugin:dialog|open",
    ] {
        let answer = window.invoke(command, json!({}));
        assert!(answer.is_err(), "{command}: {answer:?}");
    }
}

#[test]
fn a_chat_goes_through_the_door_and_back() {
    let window = Window::open();
    let view = window
        .invoke(
            "send",
            json!({ "id": null, "text": "Hello", "thinking": false }),
        )
        .expect("sent");
    let chat = &view["chat"]["id"];
    assert_eq!(view["messages"][0]["parts"][0]["text"], "Hello");
    assert_eq!(view["messages"][0]["role"], "user");

    window
        .invoke("rename_chat", json!({ "id": chat, "title": "Greeting" }))
        .expect("renamed");
    let opened = window
        .invoke("open_chat", json!({ "id": chat }))
        .expect("opened");
    assert_eq!(opened["chat"]["title"], "Greeting");

    window
        .invoke("delete_chats", json!({ "ids": [chat] }))
        .expect("deleted");
    let error = window
        .invoke("rename_chat", json!({ "id": chat, "title": "Gone" }))
        .expect_err("gone");
    assert_eq!(error["code"], "other");
    window
        .invoke("restore_chats", json!({ "ids": [chat] }))
        .expect("restored");
    window
        .invoke("open_chat", json!({ "id": chat }))
        .expect("back");
}

#[test]
fn settings_come_back_as_they_were_sent() {
    let window = Window::open();
    let usual = window.invoke("snapshot", json!({})).expect("a snapshot")["settings"].clone();
    let mut settings = requests::unusual_settings();
    requests::none_is_as_in(&settings, &usual);
    let saved = window
        .invoke("save_settings", json!({ "settings": settings }))
        .expect("saved");
    assert_eq!(saved, settings);
    let snapshot = window.invoke("snapshot", json!({})).expect("a snapshot");
    assert_eq!(snapshot["settings"], settings);
    assert_eq!(
        *window.desktop.theme.lock().expect("not poisoned"),
        Some(chat::Theme::Dark)
    );

    settings["samplingChanges"]["temperature"] = json!(-1);
    let error = window
        .invoke("save_settings", json!({ "settings": settings }))
        .expect_err("refused");
    assert_eq!(error["code"], "other");
}

#[test]
fn nonsense_is_an_error_and_not_a_crash() {
    let window = Window::open();
    for (command, arguments) in [
        ("send", json!({})),
        ("send", json!({ "id": -1, "text": "x", "thinking": true })),
        ("send", json!({ "id": null, "text": 7, "thinking": true })),
        ("open_chat", json!({ "id": 4_294_967_295_u32 })),
        ("open_chat", json!({ "id": 1e30 })),
        ("regenerate", json!({ "message": 99, "thinking": true })),
        ("save_settings", json!({ "settings": { "theme": "pink" } })),
        ("open_link", json!({ "url": "file:///etc/passwd" })),
        ("subscribe", json!({ "channel": "__CHANNEL__:x" })),
    ] {
        let answer = window.invoke(command, arguments.clone());
        assert!(answer.is_err(), "{command} {arguments}: {answer:?}");
    }
    window.invoke("snapshot", json!({})).expect("all is well");
}

#[test]
fn links_open_in_the_browser_and_files_do_not() {
    let window = Window::open();
    window
        .invoke("open_link", json!({ "url": "https://example.org/a" }))
        .expect("opened");
    for url in [
        "javascript:alert(1)",
        "https://bank.example:443@example.org/",
        "https://bank.example@example.org/",
        "http://:secret@example.org/",
    ] {
        let error = window.invoke("open_link", json!({ "url": url }));
        assert_eq!(error.expect_err(url)["code"], "other");
    }
    assert_eq!(
        *window.desktop.opened.lock().expect("not poisoned"),
        ["https://example.org/a"]
    );
}

#[test]
fn the_picked_model_and_the_bundled_model_are_opened_and_nothing_picked_is_no_error() {
    let window = Window::open();
    let asked = |choice: &ModelChoice| {
        let asked = window.model.asked.lock().expect("not poisoned");
        asked.iter().filter(|it| *it == choice).count()
    };
    let opened = |choice: ModelChoice, times| {
        until(|| asked(&choice) >= times, "the model was not opened");
    };
    opened(ModelChoice::BundledModel, 1);
    let pick = || window.invoke("pick_model", json!({}));
    assert_eq!(pick(), Ok(json!(false)));
    let file = PathBuf::from("/models/mine.gguf");
    *window.desktop.picks.lock().expect("not poisoned") = Some(file.clone());
    assert_eq!(pick(), Ok(json!(true)));
    opened(ModelChoice::File(file), 1);
    let before = asked(&ModelChoice::BundledModel);
    window
        .invoke("use_bundled_model", json!({}))
        .expect("allowed");
    opened(ModelChoice::BundledModel, before + 1);
}

/// Waits for an event on another thread.
#[track_caller]
fn until(happened: impl Fn() -> bool, otherwise: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !happened() {
        assert!(Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_model_dropped_on_the_window_is_opened() {
    let window = Window::open();
    let (to_test, events) = mpsc::channel();
    window
        .app
        .state::<Events>()
        .send_to(Channel::new(move |event| {
            to_test.send(event.deserialize::<Value>()?).ok();
            Ok(())
        }));
    let page = window.page("main");
    let drag = |event| window::on_event(&page.as_ref().window(), &WindowEvent::DragDrop(event));
    let (model, position) = (PathBuf::from("/models/mine.GGUF"), Default::default());
    let paths = vec![PathBuf::from("/notes.txt"), model.clone()];

    drag(DragDropEvent::Enter {
        paths: paths.clone(),
        position,
    });
    drag(DragDropEvent::Drop { paths, position });

    let asked = || window.model.asked.lock().expect("not poisoned").clone();
    let model = ModelChoice::File(model);
    until(|| asked().contains(&model), "the file was not opened");
    // Without a GGUF file the first is opened: the engine describes its fault.
    let other = PathBuf::from("/notes.txt");
    let paths = vec![other.clone()];
    drag(DragDropEvent::Drop { paths, position });
    let other = ModelChoice::File(other);
    until(|| asked().contains(&other), "the file was not opened");
    drag(DragDropEvent::Leave);
    let dragging: Vec<_> = events
        .try_iter()
        .filter(|event| event["type"] == "dragging")
        .collect();
    let over = |over| json!({ "type": "dragging", "over": over });
    assert_eq!(
        dragging,
        [over(true), over(false), over(false), over(false)]
    );
}

#[test]
fn a_start_that_failed_is_mended_through_the_door() {
    let window = Window::open();
    let folders = Folders {
        data: window._data.path().to_owned(),
    };
    let database = folders.database();
    std::fs::write(&database, [7; 5000]).expect("written");
    let open = move || {
        Store::open(&database)?;
        Ok::<_, StartError>(())
    };
    let startup = Startup::begin(folders.clone(), Box::new(open));
    window.app.manage(startup);

    let problem = window.invoke("startup", json!({})).expect("allowed");
    assert_eq!(problem["type"], "problem");
    assert_eq!(problem["kind"], "damaged");
    assert_eq!(problem["folder"], json!(folders.data));
    let retried = window.invoke("retry_start", json!({})).expect("allowed");
    assert_eq!(retried, problem);
    let error = window
        .invoke("restore_copy", json!({ "copy": "../goldcrest.db" }))
        .expect_err("there is none");
    assert_eq!(error["code"], "other");
    window
        .invoke("open_damaged", json!({}))
        .expect("allowed, though it does not help");
    assert_eq!(window.invoke("has_room", json!({})), Ok(json!(true)));
    for command in ["show_data_folder", "quit"] {
        window.invoke(command, json!({})).expect("allowed");
    }
    assert_eq!(
        *window.desktop.opened.lock().expect("not poisoned"),
        [folders.data.display().to_string(), "quit".to_owned()]
    );
    for command in ["choose_data_folder", "begin_in_default_folder"] {
        let error = window.invoke(command, json!({})).expect_err("it is there");
        assert_eq!(error["message"], "The data folder is in its place.");
    }
    let started = window.invoke("start_empty", json!({})).expect("allowed");
    assert_eq!(started, json!({ "type": "ready" }));
    std::fs::remove_dir_all(&folders.data).expect("removed");
    assert_eq!(window.invoke("has_room", json!({})), Ok(json!(false)));
}

//! Puts the app together: the store, the chat, the model and the window.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use app::data_lock::{self, DataLock};
use app::folders::Folders;
use app::local_api::LocalApi;
use app::model_check::ModelChecker;
use app::models::{ModelPlaces, Models, ModelsInbox};
use app::startup::{self, OpenStore, StartError, Startup};
use app::tool_servers::ToolServers;
use app::wire::ShellEvent;
use app::{data_folder, folders};
use chat::{Chat, Failure, ModelChoice};
use devices::{CrashMarkers, Devices};
use host::{EngineModel, bundled_model, environment};
use store::Store;
use tauri::{AppHandle, Manager, RunEvent, Runtime};

use crate::desktop::{Desktop, NativeDesktop};
use crate::events::Events;
use crate::given_files::{self, GivenFile};
use crate::instance;
use crate::transfers::Transfers;
use crate::{commands, window};

/// Time to wait for the data folder of an app that may be closing, before the window says that one is running.
const CLOSING: Duration = Duration::from_secs(2);

/// Opens the window and returns when it is closed. If another app has the data folder, raises that one's window and
/// returns. A model among `files` is opened there.
pub fn run(folders: Folders, files: Vec<PathBuf>) -> tauri::Result<()> {
    // A failure here recurs at the start proper, which reports it.
    let lock = match folders::fault(&folders) {
        Some(_) => None,
        None => match data_lock::lock(&folders.data) {
            Ok(None) if is_raised(&folders, &files) => return Ok(()),
            lock => lock.ok().flatten(),
        },
    };
    tauri::Builder::default()
        .plugin(tauri_plugin_dialog::init())
        .invoke_handler(commands::handler())
        .on_window_event(window::on_event)
        .manage(GivenFile::of(files))
        .setup(move |app| Ok(start(app.handle(), folders, lock)?))
        .build(tauri::generate_context!())?
        .run(|app, event| match event {
            RunEvent::ExitRequested { .. } => {
                instance::withdraw(app);
                window::leave(app);
            }
            RunEvent::Exit => leave(app),
            #[cfg(target_os = "macos")]
            RunEvent::Opened { urls } => {
                let files = urls.iter().filter_map(|url| url.to_file_path().ok());
                given_files::open(app, files.collect());
            }
            _ => {}
        });
    Ok(())
}

/// Ends all work behind the window.
pub fn leave<R: Runtime>(app: &AppHandle<R>) {
    if let (Some(chat), Some(markers)) = (app.try_state::<Chat>(), app.try_state::<CrashMarkers>())
    {
        host::close(&chat, &markers);
    }
    if let Some(api) = app.try_state::<LocalApi>() {
        api.end();
    }
    if let Some(servers) = app.try_state::<ToolServers>() {
        servers.end();
    }
    window::remove_temporary_folder(app);
}

#[cfg(target_os = "linux")]
fn is_raised(folders: &Folders, files: &[PathBuf]) -> bool {
    let raised = instance::raise_first(&folders.data, files);
    if let Err(error) = &raised {
        tracing::warn!("could not raise the window of the running app: {error}");
    }
    raised.is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_raised(_: &Folders, _: &[PathBuf]) -> bool {
    false
}

fn start<R: Runtime>(
    app: &AppHandle<R>,
    folders: Folders,
    lock: Option<DataLock>,
) -> tauri::Result<()> {
    let desktop: Arc<dyn Desktop> = Arc::new(NativeDesktop(app.clone()));
    app.manage(desktop);
    app.manage(Events::default());
    app.manage(ModelChecker::default());
    app.manage(Transfers::default());
    app.manage(folders.clone());
    app.manage(CrashMarkers::new(&folders.data));
    if lock.is_some() {
        serve(app, &folders);
    }
    let open = opener(app.clone(), folders.clone(), lock);
    app.manage(Startup::begin(folders.clone(), open));
    let quit = app.clone();
    // Ctrl+C in the terminal, or the end of the session, ends the app as closing the window does.
    if let Err(error) = ctrlc::set_handler(move || quit.exit(0)) {
        tracing::warn!("no handler for Ctrl+C: {error}");
    }
    window::open(app, &folders)
}

/// Lets later starts raise this window, if there is a session bus.
fn serve<R: Runtime>(app: &AppHandle<R>, folders: &Folders) {
    #[cfg(target_os = "linux")]
    if let Err(error) = instance::serve(app, &folders.data) {
        tracing::warn!("a second start cannot raise the window: {error}");
    }
}

/// Locks the data folder, if that is not done yet, and opens the store in it.
pub fn opener<R: Runtime>(
    app: AppHandle<R>,
    folders: Folders,
    lock: Option<DataLock>,
) -> OpenStore {
    let held = Mutex::new(lock);
    Box::new(move || {
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fault) = folders::fault(&folders) {
            return Err(StartError::FolderMissing(fault));
        }
        if held.is_none() {
            let lock = data_lock::lock_within(&folders.data, CLOSING)
                .map_err(|error| StartError::data_folder(&folders.data, error))?;
            let in_use = || match data_lock::is_import(&folders.data) {
                true => StartError::Importing,
                false => StartError::InUse(folders.data.display().to_string()),
            };
            *held = Some(lock.ok_or_else(in_use)?);
            serve(&app, &folders);
        }
        let store = Store::open(&folders.database())?;
        let (models, inbox) = Models::new();
        let chat = start_chat(&app, &folders, &models, store)
            .map_err(|failure| startup::cause(&folders, failure))?;
        start_models(&app, &folders, &chat, &models, inbox)
            .map_err(|failure| startup::cause(&folders, failure))?;
        let events = Events::clone(&app.state::<Events>());
        let on_change = move || events.send(ShellEvent::ServersChanged);
        let servers = ToolServers::start(&chat, on_change)
            .map_err(|failure| startup::cause(&folders, failure))?;
        app.manage(servers);
        let events = Events::clone(&app.state::<Events>());
        let on_change = move |state| events.send(ShellEvent::ApiChanged { state });
        let api = LocalApi::start(&chat, on_change)
            .map_err(|failure| startup::cause(&folders, failure))?;
        app.manage(api);
        app.manage(models);
        app.manage(chat.clone());
        window::arrange(&app, &chat);
        given_files::open_waiting(&app, &chat);
        if let Some(pointer) = folders::pointer() {
            data_folder::finish_move(&pointer, &folders.data);
        }
        Ok(())
    })
}

fn start_chat<R: Runtime>(
    app: &AppHandle<R>,
    folders: &Folders,
    models: &Models,
    store: Store,
) -> Result<Chat, Failure> {
    let events = Events::clone(&app.state::<Events>());
    let models = models.clone();
    let on_event = move |event| {
        models.observe(&event);
        events.send(event);
    };
    let markers = CrashMarkers::clone(&app.state::<CrashMarkers>());
    let devices = Devices::new(&folders.data, markers.clone(), bundled_model::file());
    let model = EngineModel::choosing(devices)
        .marking(markers)
        .keeping_caches(&folders.kv_caches());
    let waiting = app.state::<GivenFile>();
    let file = waiting.take();
    let given = file.clone().or_else(environment::model);
    let given = given.map(ModelChoice::File);
    let started = Chat::start_on(given, store, Box::new(model), Box::new(on_event));
    // The page's first request: if the snapshot cannot be read, there is nothing to show.
    let readable = started.and_then(|chat| match chat.snapshot() {
        Ok(_) => Ok(chat),
        Err(failure) => {
            chat.shutdown();
            Err(failure)
        }
    });
    if let (Err(_), Some(file)) = (&readable, file) {
        waiting.put(file);
    }
    readable
}

/// Starts the owner of the models page.
fn start_models<R: Runtime>(
    app: &AppHandle<R>,
    folders: &Folders,
    chat: &Chat,
    models: &Models,
    inbox: ModelsInbox,
) -> Result<(), Failure> {
    let events = Events::clone(&app.state::<Events>());
    let settings = chat.snapshot()?.settings;
    let places = ModelPlaces::of_user(folders);
    let on_event = move |event| events.send(event);
    let started = inbox.start(models, chat, settings, places, on_event);
    started.map_err(|error| Failure::other(format!("The list of models did not start: {error}.")))
}

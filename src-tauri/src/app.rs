//! Puts the app together: the store, the desk, the model and the window.

use std::sync::Arc;

use chat::{Chat, Store};
use tauri::{AppHandle, Manager, RunEvent, Runtime};

use crate::desktop::{Desktop, NativeDesktop};
use crate::events::Events;
use crate::folders::Folders;
use crate::gpus::Gpus;
use crate::model::EngineModel;
use crate::wire::HostEvent;
use crate::{commands, window};

/// Opens the window and returns when it is closed.
pub fn run(folders: Folders) -> tauri::Result<()> {
    let one_instance = tauri_plugin_single_instance::Builder::new()
        .callback(|app, _, _| window::bring_forward(app))
        .build();
    tauri::Builder::default()
        .plugin(one_instance)
        .plugin(tauri_plugin_dialog::init())
        .invoke_handler(commands::handler())
        .on_window_event(window::on_event)
        .setup(move |app| Ok(start(app.handle(), folders)?))
        .build(tauri::generate_context!())?
        .run(|app, event| match event {
            RunEvent::ExitRequested { .. } => window::leave(app),
            RunEvent::Exit => app.state::<Chat>().shutdown(),
            _ => {}
        });
    Ok(())
}

fn start<R: Runtime>(app: &AppHandle<R>, folders: Folders) -> Result<(), StartError> {
    let desk = open_desk(&folders, app)?;
    let theme = desk.snapshot()?.settings.theme;
    let desktop: Arc<dyn Desktop> = Arc::new(NativeDesktop(app.clone()));
    app.manage(desktop);
    app.manage(desk.clone());
    app.manage(folders.clone());
    let quit = app.clone();
    // Ctrl+C in the terminal, or the end of the session, ends the app as closing the window does.
    if let Err(error) = ctrlc::set_handler(move || quit.exit(0)) {
        tracing::warn!("Ctrl+C will not be heard: {error}");
    }
    Ok(window::open(app, &desk, &folders, theme)?)
}

fn open_desk<R: Runtime>(folders: &Folders, app: &AppHandle<R>) -> Result<Chat, StartError> {
    let store = Store::open(&folders.database())?;
    let events = Events::default();
    app.manage(events.clone());
    let on_event = move |event| events.send(HostEvent::from(event));
    Ok(Chat::start(
        store,
        Box::new(EngineModel::choosing(Gpus::new(folders))),
        Box::new(on_event),
    )?)
}

/// Why the app did not come up.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("{0}")]
    Store(#[from] chat::StoreError),
    #[error("{0}")]
    Chat(#[from] chat::Failure),
    #[error("the window did not open: {0}")]
    Window(#[from] tauri::Error),
}

//! Commands for the user's data: exports, imports, print, backups, the data folder.

use std::sync::Arc;

use app::data_folder::Move;
use app::exporting::Export;
use app::folders::{self, Folders};
use app::lost_folder;
use app::models::Models;
use app::startup::Startup;
use app::worker;
use chat::{Chat, ChatId, Failure};
use store::DatabaseCopy;
use tauri::State;

use crate::applied_settings::follow;
use crate::desktop::{Desktop, FileFilter};
use crate::events::Events;
use crate::file_dialogs::{FileDialogs, Purpose};
use crate::reply::{Reply, ask, blocking};
use crate::transfers::Transfers;

/// Sources of an import.
const CHATS: FileFilter = (
    "Chats of Goldcrest, ChatGPT, Claude, Jan, LM Studio",
    &["jsonl", "json", "zip"],
);

/// Lets the person choose a file, and exports chats to it. The progress comes as events. Returns false if the dialog
/// was closed without a choice.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn export_chats(
    what: Export,
    chat: State<'_, Chat>,
    folders: State<'_, Folders>,
    transfers: State<'_, Transfers>,
    events: State<'_, Events>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<bool> {
    let (chat, folders) = (chat.inner().clone(), folders.inner().clone());
    let (transfers, events) = (Transfers::clone(&transfers), Events::clone(&events));
    let dialogs = FileDialogs::new(&desktop, &folders);
    blocking(move || {
        let title = match what.chats.as_deref() {
            Some([one]) => Some(chat.title(*one)?),
            _ => None,
        };
        let name = what.file_name(title.as_deref());
        let Some(file) = dialogs.save_file("Export chats", &name) else {
            return Ok(false);
        };
        transfers.export(&chat, &events, &folders, what, file)?;
        Ok(true)
    })
    .await?
}

/// Lets the person choose files, and imports the chats in them. The progress comes as events. Returns false if the
/// dialog was closed without a choice.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn import_chats(
    chat: State<'_, Chat>,
    folders: State<'_, Folders>,
    transfers: State<'_, Transfers>,
    events: State<'_, Events>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<bool> {
    let chat = chat.inner().clone();
    let (transfers, events) = (Transfers::clone(&transfers), Events::clone(&events));
    let dialogs = FileDialogs::new(&desktop, &folders);
    blocking(move || {
        let files = dialogs.open_files(Purpose::Import, "Import chats", CHATS, true);
        if files.is_empty() {
            return Ok(false);
        }
        transfers.import(&chat, &events, files)?;
        Ok(true)
    })
    .await?
}

/// Shows a file that was exported since the start of the app in the file manager.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn show_exported(
    file: String,
    transfers: State<'_, Transfers>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<()> {
    let (transfers, desktop) = (Transfers::clone(&transfers), Arc::clone(&desktop));
    blocking(move || desktop.reveal(&transfers.exported(&file)?)).await?
}

/// Cancels the running export, import or move.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn cancel_transfer(transfers: State<'_, Transfers>) -> Reply<()> {
    transfers.cancel();
    Ok(())
}

/// Returns the shown branch of a chat as HTML, for paper.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn chat_as_html(id: ChatId, thinking: bool, chat: State<'_, Chat>) -> Reply<String> {
    ask(&chat, move |chat| {
        worker::printed(&chat.record(id)?, thinking)
    })
    .await
}

/// Opens the dialog that prints the page.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn print_page(desktop: State<'_, Arc<dyn Desktop>>) -> Reply<()> {
    let desktop = Arc::clone(&desktop);
    blocking(move || desktop.print()).await?
}

/// Returns the copies of the database, and databases that were set aside by a restore. They are checked when one is
/// restored.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn list_backups(folders: State<'_, Folders>) -> Reply<Vec<DatabaseCopy>> {
    let database = folders.database();
    blocking(move || store::listed_copies(&database)).await
}

/// Makes a copy of the database now; returns all of them.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn back_up(folders: State<'_, Folders>) -> Reply<Vec<DatabaseCopy>> {
    let database = folders.database();
    blocking(move || {
        let now = chat::now();
        let time = now.strftime("%H:%M").to_string();
        store::back_up(&database, &now.date().to_string(), &time)?;
        Ok(store::listed_copies(&database))
    })
    .await?
}

/// Removes a copy of the database, or a database that was set aside, for good; returns the rest.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn remove_backup(copy: String, folders: State<'_, Folders>) -> Reply<Vec<DatabaseCopy>> {
    let database = folders.database();
    blocking(move || {
        store::remove_copy(&database, &copy)?;
        Ok(store::listed_copies(&database))
    })
    .await?
}

/// Replaces the database with a copy; returns the name under which the database is kept. The page must then be
/// reloaded.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn restore_backup(
    copy: String,
    chat: State<'_, Chat>,
    folders: State<'_, Folders>,
    models: State<'_, Models>,
    transfers: State<'_, Transfers>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<String> {
    let database = folders.database();
    let transfers = Transfers::clone(&transfers);
    let (kept, settings) = ask(&chat, move |chat| {
        transfers.between(|| {
            let kept = chat.restore_copy(&database, &copy)?;
            Ok((kept, chat.snapshot()?.settings))
        })
    })
    .await?;
    follow(&settings, &models, &desktop);
    let name = kept.file_name().unwrap_or_default();
    Ok(name.to_string_lossy().into_owned())
}

/// If the data folder is gone: lets the person choose another one with chats, with which the app restarts. Returns
/// false if the dialog was closed without a choice.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn choose_data_folder(
    startup: State<'_, Arc<Startup>>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<bool> {
    let (startup, desktop) = (Arc::clone(&startup), Arc::clone(&desktop));
    blocking(move || {
        startup.needs_folder()?;
        let pointer = folders::pointer().ok_or_else(no_home)?;
        let from = pointer.parent().unwrap_or(&pointer);
        let Some(folder) = desktop.pick_folder("Choose the folder with your chats", from) else {
            return Ok(false);
        };
        lost_folder::choose(&pointer, &folder)?;
        desktop.restart();
        Ok(true)
    })
    .await?
}

/// If the data folder is gone: restarts the app with the default folder.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn begin_in_default_folder(
    startup: State<'_, Arc<Startup>>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<()> {
    let (startup, desktop) = (Arc::clone(&startup), Arc::clone(&desktop));
    blocking(move || {
        startup.needs_folder()?;
        lost_folder::begin_again(&folders::pointer().ok_or_else(no_home)?)?;
        desktop.restart();
        Ok(())
    })
    .await?
}

fn no_home() -> Failure {
    Failure::other("No home folder was found, so the choice could not be kept.")
}

/// Lets the person choose a folder, and moves the data there. The progress comes as events; at the end the app
/// restarts. `keep`: the old folder stays as it is. Returns false if the dialog was closed without a choice.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn move_data_folder(
    keep: bool,
    chat: State<'_, Chat>,
    folders: State<'_, Folders>,
    models: State<'_, Models>,
    transfers: State<'_, Transfers>,
    events: State<'_, Events>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<bool> {
    let models = models.inner().clone();
    let (chat, data) = (chat.inner().clone(), folders.inner().clone());
    let (transfers, events) = (Transfers::clone(&transfers), Events::clone(&events));
    let desktop = Arc::clone(&desktop);
    blocking(move || {
        if let Some(reason) = folders::fixed() {
            return Err(Failure::other(reason));
        }
        let from = data.data.parent().unwrap_or(&data.data);
        let Some(to) = desktop.pick_folder("Choose an empty folder for your chats", from) else {
            return Ok(false);
        };
        let plan = Move::plan(&data.data, &to)?.keeping_old(keep);
        let database = data.database();
        transfers.move_data(&chat, &models, &events, desktop, &database, plan)?;
        Ok(true)
    })
    .await?
}

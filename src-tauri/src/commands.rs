//! The page's letters: each goes to `chat`, and the answer comes back. No decision is made here.
//!
//! The list of them is `each_command.rs`. A verb waits for the desk, so each runs on a blocking
//! thread and never on the window's.

use std::sync::Arc;

use chat::{Chat, ChatId, Failure, MessageId, ModelChoice};
use tauri::ipc::{Channel, Invoke};
use tauri::{Runtime, State};

use crate::desktop::{Desktop, link};
use crate::error::{ErrorCode, WireError};
use crate::events::Events;
use crate::folders::Folders;
use crate::startup::Startup;
use crate::wire::{
    self, ChatSummary, ChatView, HostEvent, QueuedMessage, SearchHit, Settings, Snapshot,
};

type Answer<T> = Result<T, WireError>;

/// Hands every command to Tauri.
pub fn handler<R: Runtime>() -> impl Fn(Invoke<R>) -> bool + Send + Sync + 'static {
    each_command!(tauri::generate_handler)
}

/// Asked before anything else: while there is a problem there are no chats to ask for.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn startup(startup: State<'_, Arc<Startup>>) -> Answer<wire::Startup> {
    let startup = Arc::clone(&startup);
    blocking(move || startup.view()).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn retry_start(startup: State<'_, Arc<Startup>>) -> Answer<wire::Startup> {
    let startup = Arc::clone(&startup);
    blocking(move || startup.retry()).await
}

/// Puts a copy in the place of a database that does not open, which is kept.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn restore_copy(copy: String, startup: State<'_, Arc<Startup>>) -> Answer<wire::Startup> {
    let startup = Arc::clone(&startup);
    blocking(move || startup.restore(&copy)).await?
}

/// Begins an empty database in the place of one that does not open, which is kept.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn start_empty(startup: State<'_, Arc<Startup>>) -> Answer<wire::Startup> {
    let startup = Arc::clone(&startup);
    blocking(move || startup.start_empty()).await?
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn open_damaged(startup: State<'_, Arc<Startup>>) -> Answer<wire::Startup> {
    let startup = Arc::clone(&startup);
    blocking(move || startup.open_damaged()).await?
}

/// Whether a disk that was full is so no more.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn has_room(folders: State<'_, Folders>) -> Answer<bool> {
    let database = folders.database();
    blocking(move || chat::has_room(&database)).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn show_data_folder(
    folders: State<'_, Folders>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Answer<()> {
    let (folder, desktop) = (folders.data.clone(), Arc::clone(&desktop));
    blocking(move || desktop.show_folder(&folder)).await?
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn quit(desktop: State<'_, Arc<dyn Desktop>>) -> Answer<()> {
    desktop.quit();
    Ok(())
}

/// The latest subscriber gets the events from now on.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn subscribe(channel: Channel<HostEvent>, events: State<'_, Events>) -> Answer<()> {
    events.send_to(channel);
    Ok(())
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn snapshot(desk: State<'_, Chat>, folders: State<'_, Folders>) -> Answer<Snapshot> {
    let snapshot = ask(&desk, Chat::snapshot).await?;
    Ok(Snapshot::new(snapshot, &folders.data, &folders.log_file()))
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn open_chat(chat: u32, desk: State<'_, Chat>) -> Answer<ChatView> {
    Ok(ask(&desk, move |desk| desk.open_chat(chat_id(chat)))
        .await?
        .into())
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn send(
    chat: Option<u32>,
    text: String,
    thinking: bool,
    desk: State<'_, Chat>,
) -> Answer<ChatView> {
    Ok(ask(&desk, move |desk| {
        desk.send(chat.map(chat_id), &text, thinking)
    })
    .await?
    .into())
}

/// Sends the first message of the queue, as `text`: `rest` is the queue from now on, and the draft stays.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn send_queued(
    chat: u32,
    text: String,
    thinking: bool,
    rest: Vec<QueuedMessage>,
    desk: State<'_, Chat>,
) -> Answer<ChatView> {
    let rest = rest.into_iter().map(Into::into).collect();
    Ok(ask(&desk, move |desk| {
        desk.send_queued(chat_id(chat), &text, thinking, rest)
    })
    .await?
    .into())
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn regenerate(message: u32, thinking: bool, desk: State<'_, Chat>) -> Answer<ChatView> {
    Ok(ask(&desk, move |desk| {
        desk.regenerate(message_id(message), thinking)
    })
    .await?
    .into())
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn continue_answer(message: u32, desk: State<'_, Chat>) -> Answer<ChatView> {
    Ok(
        ask(&desk, move |desk| desk.continue_answer(message_id(message)))
            .await?
            .into(),
    )
}

/// `answer`: the edited question is answered, with thinking or without.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn edit_message(
    message: u32,
    text: String,
    answer: Option<bool>,
    desk: State<'_, Chat>,
) -> Answer<ChatView> {
    Ok(ask(&desk, move |desk| {
        desk.edit_message(message_id(message), &text, answer)
    })
    .await?
    .into())
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn show_sibling(message: u32, desk: State<'_, Chat>) -> Answer<ChatView> {
    Ok(
        ask(&desk, move |desk| desk.show_sibling(message_id(message)))
            .await?
            .into(),
    )
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn stop(chat: u32, desk: State<'_, Chat>) -> Answer<()> {
    ask(&desk, move |desk| desk.stop(chat_id(chat))).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn rename_chat(chat: u32, title: String, desk: State<'_, Chat>) -> Answer<ChatSummary> {
    Ok(ask(&desk, move |desk| desk.rename(chat_id(chat), &title))
        .await?
        .into())
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn delete_chat(chat: u32, desk: State<'_, Chat>) -> Answer<()> {
    ask(&desk, move |desk| desk.delete(chat_id(chat))).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn restore_chat(chat: u32, desk: State<'_, Chat>) -> Answer<ChatSummary> {
    Ok(ask(&desk, move |desk| desk.restore(chat_id(chat)))
        .await?
        .into())
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn search(query: String, desk: State<'_, Chat>) -> Answer<Vec<SearchHit>> {
    let hits = ask(&desk, move |desk| desk.search(&query)).await?;
    Ok(hits.into_iter().map(Into::into).collect())
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn save_draft(chat: Option<u32>, text: String, desk: State<'_, Chat>) -> Answer<()> {
    ask(&desk, move |desk| desk.save_draft(chat.map(chat_id), &text)).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn save_pastes(chat: Option<u32>, pastes: Vec<String>, desk: State<'_, Chat>) -> Answer<()> {
    ask(&desk, move |desk| {
        desk.save_pastes(chat.map(chat_id), pastes)
    })
    .await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn save_queue(chat: u32, queue: Vec<QueuedMessage>, desk: State<'_, Chat>) -> Answer<()> {
    let queue = queue.into_iter().map(Into::into).collect();
    ask(&desk, move |desk| desk.save_queue(chat_id(chat), queue)).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn save_settings(
    settings: Settings,
    desk: State<'_, Chat>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Answer<Settings> {
    let saved = ask(&desk, move |desk| desk.save_settings(settings.into())).await?;
    desktop.set_theme(saved.theme);
    desktop.set_zoom(saved.zoom);
    Ok(saved.into())
}

/// False when the person closed the picker without a choice. The result comes as `model` events.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn pick_model(desk: State<'_, Chat>, desktop: State<'_, Arc<dyn Desktop>>) -> Answer<bool> {
    let desktop = Arc::clone(&desktop);
    let Some(file) = blocking(move || desktop.pick_model()).await? else {
        return Ok(false);
    };
    ask(&desk, move |desk| desk.open_model(ModelChoice::File(file))).await?;
    Ok(true)
}

/// Opens the model of the last session, which was not opened at the start.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn retry_model(chat: State<'_, Chat>) -> Answer<()> {
    ask(&chat, Chat::retry_model).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn use_demo_model(desk: State<'_, Chat>) -> Answer<()> {
    ask(&desk, move |desk| desk.open_model(ModelChoice::DemoModel)).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn open_link(url: String, desktop: State<'_, Arc<dyn Desktop>>) -> Answer<()> {
    let desktop = Arc::clone(&desktop);
    let url = link(&url)?;
    blocking(move || desktop.browse(&url)).await?
}

/// Sends a verb to the desk and waits for its answer.
async fn ask<T: Send + 'static>(
    desk: &Chat,
    verb: impl FnOnce(&Chat) -> Result<T, Failure> + Send + 'static,
) -> Answer<T> {
    let desk = desk.clone();
    Ok(blocking(move || verb(&desk)).await??)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Answer<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| WireError {
            code: ErrorCode::Store,
            message: error.to_string(),
        })
}

fn chat_id(id: u32) -> ChatId {
    ChatId(id.into())
}

fn message_id(id: u32) -> MessageId {
    MessageId(id.into())
}

/// The same commands for the TypeScript.
#[cfg(test)]
pub fn collect() -> tauri_specta::Commands<tauri::Wry> {
    each_command!(tauri_specta::collect_commands)
}

//! The page's commands: each is a request to `chat`, whose result is returned. No decision is made here.
//!
//! The list of them is `each_command.rs`. A request waits for chat's actor, so each runs on a blocking thread and never
//! on the window's.

mod data;
mod local_api;
mod tool_servers;

use std::sync::Arc;

use ::models::ModelList;
use app::folders::Folders;
use app::model_check::{CheckSubject, ModelChecker};
use app::models::Models;
use app::network_check::{self, NetworkCheck};
use app::startup::Startup;
use app::tool_servers::ToolServers;
use app::wire::{GuideAnswer, GuideTopic, HostEvent, ShellEvent, Snapshot, StartState};
use chat::{
    Chat, ChatId, ChatPreset, ChatSnapshot, ChatSummary, ChatView, Consent, ContextUsage,
    DeletedMessage, Failure, FolderId, LengthWish, MessageId, ModelChoice, PresetContent, PresetId,
    QueuedMessage, SearchAnswer, SearchHit, Settings, ToolView, Undone,
};
use guide::Guide;
use host::context_options::{self, ContextOptions};
use tauri::ipc::{Channel, Invoke};
use tauri::{Runtime, State};

use crate::applied_settings::follow;
use crate::desktop::{Desktop, FileFilter, link};
use crate::events::Events;
use crate::file_dialogs::{FileDialogs, Purpose};
use crate::preset_files::{self, ImportedPresets};
use crate::reply::{Reply, ask, ask_models, blocking};

use data::*;
use local_api::*;
use tool_servers::*;

/// Hands every command to Tauri.
pub fn handler<R: Runtime>() -> impl Fn(Invoke<R>) -> bool + Send + Sync + 'static {
    each_command!(tauri::generate_handler)
}

/// Defines commands that pass their arguments on to a method of `Chat` or `Models` and return its result, as
/// `command = method(arguments) -> result`.
macro_rules! forward {
    ($owner:ty, $ask:ident: $(
        $(#[$doc:meta])*
        $command:ident = $method:ident($($name:ident: $type:ty),* $(,)?) -> $result:ty;
    )+) => {$(
        $(#[$doc])*
        #[tauri::command]
        #[cfg_attr(test, specta::specta)]
        async fn $command($($name: $type,)* owner: State<'_, $owner>) -> Reply<$result> {
            $ask(&owner, move |owner| owner.$method($($name),*)).await
        }
    )+};
}

forward! { Chat, ask:
    open_chat = open_chat(id: ChatId) -> ChatView;
    send = send(id: Option<ChatId>, text: String, thinking: bool) -> ChatView;
    /// Sends the first message of the queue, as `text`; `rest` becomes the queue, and the draft stays.
    send_queued = send_queued(
        id: ChatId,
        text: String,
        thinking: bool,
        rest: Vec<QueuedMessage>,
    ) -> ChatView;
    regenerate = regenerate(
        message: MessageId,
        thinking: bool,
        length: Option<LengthWish>,
    ) -> ChatView;
    delete_message = delete_message(message: MessageId) -> ChatView;
    /// Makes a new chat of the branch up to this message.
    fork_chat = fork(message: MessageId) -> ChatView;
    answer_now = answer_now(id: ChatId) -> ();
    continue_answer = continue_answer(message: MessageId) -> ChatView;
    /// Edits a message. `answer`: answers the edited question, with thinking or without.
    edit_message = edit_message(message: MessageId, text: String, answer: Option<bool>) -> ChatView;
    show_sibling = show_sibling(message: MessageId) -> ChatView;
    stop = stop(id: ChatId) -> ();
    /// Applies the user's decision about a call that waits.
    answer_call = answer_call(message: MessageId, call: String, consent: Consent) -> ();
    /// Returns the tools that chats can have on.
    list_tools = tools() -> Vec<ToolView>;
    rename_chat = rename(id: ChatId, title: String) -> ChatSummary;
    /// Pins or unpins chats. Returns the label for undo, like the other commands that return a text.
    pin_chats = pin(ids: Vec<ChatId>, pinned: bool) -> String;
    archive_chats = archive(ids: Vec<ChatId>, archived: bool) -> String;
    /// Moves chats into a folder; none: out of theirs.
    move_chats = move_chats(ids: Vec<ChatId>, folder: Option<FolderId>) -> String;
    delete_chats = delete(ids: Vec<ChatId>) -> String;
    restore_chats = restore(ids: Vec<ChatId>) -> String;
    /// Returns the deleted chats that can be restored.
    bin = bin() -> Vec<ChatSummary>;
    /// Returns deleted messages of other chats, which can be restored.
    deleted_messages = deleted_messages() -> Vec<DeletedMessage>;
    restore_message = restore_message(message: MessageId) -> String;
    /// Purges chats of the bin, which cannot be undone.
    delete_for_good = delete_for_good(ids: Vec<ChatId>) -> ();
    create_folder = create_folder(name: String, chats: Vec<ChatId>) -> FolderId;
    rename_folder = rename_folder(id: FolderId, name: String) -> ();
    delete_folder = delete_folder(id: FolderId) -> String;
    collapse_folder = collapse_folder(id: FolderId, collapsed: bool) -> ();
    /// Creates an empty temporary chat. It is in memory only, and exists before its first message, so that its draft is in
    /// memory, too.
    begin_temporary_chat = new_temporary_chat() -> ChatView;
    /// Copies a temporary chat to the disk. Returns the saved chat.
    keep_chat = keep_chat(id: ChatId) -> ChatSummary;
    search = search(query: String) -> SearchAnswer;
    /// Returns the messages of a chat that a search has found.
    search_chat = search_chat(query: String, id: ChatId) -> Vec<SearchHit>;
    /// Prefills the draft of a chat's next message, or of a new chat, in idle time.
    read_ahead = read_ahead(id: Option<ChatId>, text: String, thinking: bool) -> ();
    /// Returns the tokens that the next prompt would take of the context, with `text` and `pasted` tokens of attached
    /// texts; none while no model is open.
    context_usage = context_usage(
        id: Option<ChatId>,
        text: String,
        pasted: u32,
        thinking: bool,
    ) -> Option<ContextUsage>;
    /// Begins a new chat with a summary of this one.
    start_summary = start_summary(id: ChatId) -> ChatView;
    /// Lets the next answer read the parts that this one left out.
    read_again = read_again(message: MessageId) -> ChatView;
    save_draft = save_draft(id: Option<ChatId>, text: String) -> ();
    save_pastes = save_pastes(id: Option<ChatId>, pastes: Vec<String>) -> ();
    save_queue = save_queue(id: ChatId, queue: Vec<QueuedMessage>) -> ();
    /// Saves a preset. Without an id it is a new one, whose name gets a number if it is taken.
    save_preset = save_preset(id: Option<PresetId>, preset: PresetContent) -> PresetId;
    delete_preset = delete_preset(id: PresetId) -> ();
    /// Chooses the preset of a chat, or of the next new one without a chat.
    choose_preset = choose_preset(id: Option<ChatId>, preset: ChatPreset) -> ();
    /// Opens the model of the last session, which was not opened at the start.
    retry_model = retry_model() -> ();
    /// Unloads the model, which frees its memory; the next message, or `reload_model`, loads it again.
    eject_model = eject_model() -> ();
    /// Loads the model that was unloaded.
    reload_model = reload_model() -> ();
}

forward! { Models, ask_models:
    /// Returns the present models page; folders are searched again, which ends in an event.
    list_models = list() -> ModelList;
    /// Starts or resumes the download of a model of the list.
    get_model = get(id: String) -> ();
    /// Starts the download of a typed address.
    get_address = get_address(url: String) -> ();
    pause_download = pause(id: String) -> ();
    /// Stops a download and deletes the partial file.
    drop_download = drop_download(id: String) -> ();
}

/// Returns the state of the start. The page calls it first: while there is a problem there are no chats.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn startup(startup: State<'_, Arc<Startup>>) -> Reply<StartState> {
    let startup = Arc::clone(&startup);
    blocking(move || startup.view()).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn retry_start(startup: State<'_, Arc<Startup>>) -> Reply<StartState> {
    let startup = Arc::clone(&startup);
    blocking(move || startup.retry()).await
}

/// Replaces a database that does not open with a copy. The database is kept.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn restore_copy(copy: String, startup: State<'_, Arc<Startup>>) -> Reply<StartState> {
    let startup = Arc::clone(&startup);
    blocking(move || startup.restore(&copy)).await?
}

/// Replaces a database that does not open with an empty one. The database is kept.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn start_empty(startup: State<'_, Arc<Startup>>) -> Reply<StartState> {
    let startup = Arc::clone(&startup);
    blocking(move || startup.start_empty()).await?
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn open_damaged(startup: State<'_, Arc<Startup>>) -> Reply<StartState> {
    let startup = Arc::clone(&startup);
    blocking(move || startup.open_damaged()).await?
}

/// Returns whether space is free again on a disk that was full.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn has_room(folders: State<'_, Folders>) -> Reply<bool> {
    let database = folders.database();
    blocking(move || store::has_room(&database)).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn show_data_folder(
    folders: State<'_, Folders>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<()> {
    let (folder, desktop) = (folders.data.clone(), Arc::clone(&desktop));
    blocking(move || desktop.show_folder(&folder)).await?
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn quit(desktop: State<'_, Arc<dyn Desktop>>) -> Reply<()> {
    desktop.quit();
    Ok(())
}

/// Subscribes to the events. Only the latest subscriber gets them.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn subscribe(channel: Channel<HostEvent>, events: State<'_, Events>) -> Reply<()> {
    events.send_to(channel);
    Ok(())
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn snapshot(chat: State<'_, Chat>, folders: State<'_, Folders>) -> Reply<Snapshot> {
    let snapshot = ask(&chat, Chat::snapshot).await?;
    Ok(Snapshot::new(snapshot, &folders.data, &folders.log_file()))
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn move_folder(id: FolderId, to: u32, chat: State<'_, Chat>) -> Reply<()> {
    ask(&chat, move |chat| chat.move_folder(id, to as usize)).await
}

/// Undoes the last change; none if there is nothing to undo.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn undo(
    chat: State<'_, Chat>,
    models: State<'_, Models>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<Option<Undone>> {
    let undone = ask(&chat, Chat::undo).await?;
    Ok(followed(undone, &models, &desktop))
}

/// Redoes the last undone change; none if there is nothing to redo.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn redo(
    chat: State<'_, Chat>,
    models: State<'_, Models>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<Option<Undone>> {
    let redone = ask(&chat, Chat::redo).await?;
    Ok(followed(redone, &models, &desktop))
}

/// Applies the settings if the undone change was one of them.
fn followed(undone: Option<Undone>, models: &Models, desktop: &Arc<dyn Desktop>) -> Option<Undone> {
    if let Some(settings) = undone
        .as_ref()
        .and_then(|undone| undone.settings.as_deref())
    {
        follow(settings, models, desktop);
    }
    undone
}

/// Returns the number of tokens of each text; none while no model is open.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn count_tokens(texts: Vec<String>, chat: State<'_, Chat>) -> Reply<Option<Vec<u32>>> {
    ask(&chat, move |chat| chat.count_tokens(&texts)).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn save_settings(
    settings: Settings,
    chat: State<'_, Chat>,
    models: State<'_, Models>,
    servers: State<'_, ToolServers>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<Settings> {
    let saved = ask(&chat, move |chat| chat.save_settings(settings)).await?;
    follow(&saved, &models, &desktop);
    let (servers, settings) = (ToolServers::clone(&servers), saved.clone());
    blocking(move || servers.settings_changed(&settings)).await??;
    Ok(saved)
}

/// Writes presets to a file that the user chooses, and returns its name; none if the dialog was closed.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn export_presets(
    ids: Vec<PresetId>,
    chat: State<'_, Chat>,
    folders: State<'_, Folders>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<Option<String>> {
    let dialogs = FileDialogs::new(&desktop, &folders);
    ask(&chat, move |chat| {
        preset_files::export(chat, &dialogs, &ids)
    })
    .await
}

/// Adds the presets of a file that the user chooses; none if the dialog was closed.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn import_presets(
    chat: State<'_, Chat>,
    folders: State<'_, Folders>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<Option<ImportedPresets>> {
    let dialogs = FileDialogs::new(&desktop, &folders);
    ask(&chat, move |chat| preset_files::import(chat, &dialogs)).await
}

const MODELS: FileFilter = ("GGUF models", &["gguf"]);

/// Lets the person pick a model file and opens it; the result comes as `model` events. Returns false if the picker was
/// closed.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn pick_model(
    chat: State<'_, Chat>,
    folders: State<'_, Folders>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<bool> {
    let dialogs = FileDialogs::new(&desktop, &folders);
    let pick = move || dialogs.open_files(Purpose::Model, "Open a model", MODELS, false);
    let Some(file) = blocking(pick).await?.pop() else {
        return Ok(false);
    };
    ask(&chat, move |chat| chat.open_model(ModelChoice::File(file))).await?;
    Ok(true)
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn use_bundled_model(chat: State<'_, Chat>) -> Reply<()> {
    ask(&chat, move |chat| {
        chat.open_model(ModelChoice::BundledModel)
    })
    .await
}

/// Returns the lengths of context that the model can have; none if there is no model.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn context_options(chat: State<'_, Chat>) -> Reply<Option<ContextOptions>> {
    let ChatSnapshot {
        model, settings, ..
    } = ask(&chat, Chat::snapshot).await?;
    blocking(move || context_options::of_model(&model.status, &settings)).await?
}

/// Compares a model of the models page, or the open one, with an independent program in a child process; the progress
/// comes as events. Returns false if no model is open.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn check_model(
    id: Option<String>,
    chat: State<'_, Chat>,
    models: State<'_, Models>,
    checker: State<'_, ModelChecker>,
    events: State<'_, Events>,
) -> Reply<bool> {
    let ChatSnapshot {
        model, settings, ..
    } = ask(&chat, Chat::snapshot).await?;
    let subject = match id {
        Some(id) => {
            let file = ask_models(&models, move |models| models.file(id)).await?;
            Some(CheckSubject::of_file(file, &settings))
        }
        None => CheckSubject::of_chat(&model.status, &settings),
    };
    let Some(subject) = subject else {
        return Ok(false);
    };
    let events = Events::clone(&events);
    checker.start(subject, move |check| {
        events.send(ShellEvent::ModelCheck { check });
    });
    Ok(true)
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn stop_model_check(checker: State<'_, ModelChecker>) -> Reply<()> {
    checker.stop();
    Ok(())
}

/// Opens a model of the list. The result comes as `model` events.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn open_model(id: String, models: State<'_, Models>, chat: State<'_, Chat>) -> Reply<()> {
    let choice = ask_models(&models, move |models| models.choice(id)).await?;
    ask(&chat, move |chat| chat.open_model(choice)).await
}

/// Shows a model's file in the file manager.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn show_model(
    id: String,
    models: State<'_, Models>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<()> {
    let desktop = Arc::clone(&desktop);
    ask_models(&models, move |models| desktop.reveal(&models.file(id)?)).await
}

/// Moves a model's file to the trash of the system.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn remove_model(
    id: String,
    models: State<'_, Models>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<()> {
    let desktop = Arc::clone(&desktop);
    ask_models(&models, move |models| {
        let removed = desktop.trash(&models.removable(id)?);
        // Searched again in any case: some of several paths may be gone.
        models.files_removed();
        removed
    })
    .await
}

/// Lets the user choose the download folder; none if the dialog was closed.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn pick_download_folder(
    models: State<'_, Models>,
    desktop: State<'_, Arc<dyn Desktop>>,
) -> Reply<Option<String>> {
    let desktop = Arc::clone(&desktop);
    ask_models(&models, move |models| {
        let title = "Choose a folder for downloaded models";
        let Some(folder) = desktop.pick_folder(title, &models.download_folder()?) else {
            return Ok(None);
        };
        // A setting is text.
        let text = folder.into_os_string().into_string();
        text.map(Some).map_err(|folder| {
            let folder = folder.to_string_lossy();
            Failure::other(format!(
                "{folder}: the name of this folder is not valid text. Please choose another one."
            ))
        })
    })
    .await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn open_link(url: String, desktop: State<'_, Arc<dyn Desktop>>) -> Reply<()> {
    let desktop = Arc::clone(&desktop);
    let url = link(&url)?;
    blocking(move || desktop.browse(&url)).await?
}

/// Counts the network sockets of the app and of all programs that it has started.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn check_network() -> Reply<NetworkCheck> {
    blocking(network_check::run).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn guide_topics() -> Reply<Vec<GuideTopic>> {
    Ok(Guide::shared()
        .topics()
        .iter()
        .map(GuideTopic::from)
        .collect())
}

/// Finds the topics that fit what was typed so far, as ids, the best first.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn search_guide(typed: String) -> Reply<Vec<&'static str>> {
    blocking(move || {
        let found = Guide::shared().search(&typed);
        found.into_iter().map(|topic| &*topic.id).collect()
    })
    .await
}

/// Finds the topic that answers a question about the app.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
async fn guide_answer(question: String) -> Reply<GuideAnswer> {
    blocking(move || Guide::shared().answer(&question).into()).await
}

/// Collects the same commands for the TypeScript.
#[cfg(test)]
pub fn collect() -> tauri_specta::Commands<tauri::Wry> {
    each_command!(tauri_specta::collect_commands)
}

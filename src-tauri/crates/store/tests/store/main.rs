//! The store, table by table, and the file as a whole.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests read and damage files behind the store's back"
)]

mod backups;
mod chats;
mod copies;
mod crashing;
mod deleting;
mod drafts;
mod folders;
mod messages;
mod modes;
mod moments;
mod opening;
mod parts;
mod presets;
mod private;
mod records;
mod recovering;
mod room;
mod scripts;
mod search;
mod settings;
mod upgrading;
mod windows;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use store::{ChatId, MessageId, MessageState, NewMessage, Parts, Role, Store};

/// Names the database of a child process; without it, the child's test does nothing.
const FILE: &str = "GOLDCREST_STORE_TEST_FILE";

/// Time limit that no test reaches.
const LONG: Duration = Duration::from_secs(60);

/// Makes an empty folder, and the path of the database in it.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    (folder, path)
}

/// Makes a database with one chat.
fn on_file() -> (TempDir, PathBuf, Store) {
    let (folder, path) = folder();
    let store = Store::open(&path).unwrap();
    chat(&store, "Goldcrests", "How heavy?");
    (folder, path, store)
}

/// Runs the ignored test `name` in a process of its own.
fn child(name: &str, file: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(FILE, file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the titles of all chats, in alphabetical order.
fn titles(store: &Store) -> Vec<String> {
    let chats = store.chats().list().unwrap();
    let mut titles: Vec<_> = chats.into_iter().map(|chat| chat.title).collect();
    titles.sort();
    titles
}

/// Returns the names in a folder, in alphabetical order.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the hits of a search, chat by chat: messages, and `None` for a title.
fn found(store: &Store, query: &str) -> Vec<Option<MessageId>> {
    let mut found = Vec::new();
    for chat in store.search().find(query, 300).unwrap().chats {
        let hits = store.search().find_in_chat(query, chat.chat, 1000).unwrap();
        assert_eq!(hits.len(), chat.count as usize, "{query}");
        found.extend(chat.in_title.then_some(None));
        found.extend(hits.into_iter().map(|hit| Some(hit.message)));
    }
    found
}

/// Adds a chat with its first message.
fn chat(store: &Store, title: &str, text: &str) -> (ChatId, MessageId) {
    let chat = store.chats().create(title, "2026-03-05", 100).unwrap();
    (chat, say(store, chat, None, text))
}

/// Adds a complete message of the user.
fn say(store: &Store, chat: ChatId, parent: Option<MessageId>, text: &str) -> MessageId {
    let state = MessageState::Done;
    let role = Role::User;
    let created_at = 100;
    let message = NewMessage {
        chat,
        parent,
        role,
        state,
        parts: Parts::of_text(text),
        thinks: false,
        created_at,
    };
    store.messages().add(&message).unwrap()
}

/// Adds an answer in progress.
fn answer(store: &Store, chat: ChatId, parent: MessageId) -> MessageId {
    let message = NewMessage {
        chat,
        parent: Some(parent),
        role: Role::Assistant,
        state: MessageState::Writing,
        parts: Parts::of_text(""),
        thinks: true,
        created_at: 101,
    };
    store.messages().add(&message).unwrap()
}

//! A temporary chat with the real engine: nothing of it is on the disk, and blocks shared with a stored chat are not
//! marked as its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use chat::{Chat, ChatEvent, ChatId, Timing};
use store::Store;
use tempfile::TempDir;

use super::*;

/// Long enough for blocks of the KV cache.
fn question(word: &str) -> String {
    format!("{word} ") + &"is a word of a list that the bundled model reads. ".repeat(60)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("read").path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// Returns whether a file of the folder contains this text, in its content or in its name.
fn holds(folder: &Path, text: &str) -> bool {
    files(folder).iter().any(|path| {
        let bytes = fs::read(path).expect("read");
        path.to_string_lossy().contains(text)
            || bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
    })
}

fn start(folder: &Path) -> (Chat, Receiver<ChatEvent>) {
    let store = Store::open(&folder.join("goldcrest.db")).expect("a store");
    let host = EngineModel::default().keeping_caches(&folder.join("kv"));
    let (tell, events) = channel();
    let on_event = Box::new(move |event| drop(tell.send(event)));
    let timing = Timing {
        idle_after: Duration::from_millis(10),
        ..Timing::default()
    };
    let clock = Box::new(chat::SystemClock);
    let chat = Chat::start_with(store, Box::new(host), clock, timing, on_event).expect("a chat");
    chat.open_model(ModelChoice::BundledModel).expect("asked");
    (chat, events)
}

fn answered(chat: &Chat, events: &Receiver<ChatEvent>, of: Option<ChatId>, text: &str) -> ChatId {
    let id = chat.send(of, text, false).expect("sent").chat.id;
    let is_end = |event: &ChatEvent| matches!(event, ChatEvent::Ended { chat, .. } if *chat == id);
    while !is_end(
        &events
            .recv_timeout(Duration::from_secs(120))
            .expect("an end"),
    ) {}
    id
}

/// Returns the cached tokens of a chat's last prompt, and those that were prefilled.
fn cached_and_read(chat: &Chat, id: ChatId) -> (usize, usize) {
    let view = chat.open_chat(id).expect("there");
    let last = view.messages.last().expect("an answer");
    let stats = last.stats.as_ref().expect("its figures");
    (stats.figures.cached_tokens, stats.figures.prompt_tokens)
}

fn lists(folder: &Path) -> Vec<String> {
    let names = files(&folder.join("kv/chats"));
    let name = |path: PathBuf| {
        path.file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    names.into_iter().map(name).collect()
}

#[test]
fn nothing_of_a_temporary_chat_is_on_the_disk_not_even_its_kv_cache() {
    let folder = TempDir::new().expect("a folder");
    let (chat, events) = start(folder.path());
    let usual = answered(&chat, &events, None, &question("quetzal"));
    let blocks = folder.path().join("kv/blocks");
    while files(&blocks).is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let temporary = chat.new_temporary_chat().expect("one").chat.id;
    chat.save_draft(Some(temporary), "a shoebill")
        .expect("in memory");
    chat.read_ahead(Some(temporary), question("turaco"), false)
        .expect("asked");
    answered(&chat, &events, Some(temporary), &question("turaco"));
    // It begins like the stored one.
    let twin = chat.rename(temporary, "a hoatzin").expect("renamed").id;
    let next = chat.new_temporary_chat().expect("another").chat.id;
    assert_ne!(twin, next);
    answered(&chat, &events, Some(next), &question("quetzal"));
    chat.shutdown();

    assert!(holds(folder.path(), "quetzal"), "a usual chat is found");
    for word in ["turaco", "shoebill", "hoatzin"] {
        assert!(!holds(folder.path(), word), "{word}");
    }
    for id in [temporary, next] {
        assert!(!holds(folder.path(), &id.0.to_string()), "a file names it");
    }
    assert_eq!(
        lists(folder.path()),
        [usual.0.to_string()],
        "only the kept chat has blocks"
    );
}

#[test]
fn a_chat_that_is_temporary_again_goes_on_with_what_was_read_while_it_was_kept() {
    let folder = TempDir::new().expect("a folder");
    let (chat, events) = start(folder.path());
    let temporary = chat.new_temporary_chat().expect("one").chat.id;
    answered(&chat, &events, Some(temporary), &question("turaco"));
    let kept = chat.keep_chat(temporary).expect("kept").id;
    answered(&chat, &events, Some(kept), &question("quetzal"));
    let undone = chat.undo().expect("undone").expect("the keeping");
    let back = undone.chat.expect("a chat");
    assert!(back.is_temporary());
    let is_free = || files(&folder.path().join("kv/blocks")).is_empty();
    while !(is_free() && lists(folder.path()).is_empty()) {
        std::thread::sleep(Duration::from_millis(10));
    }
    answered(&chat, &events, Some(back), "And a wren?");
    let (cached, read) = cached_and_read(&chat, back);
    chat.shutdown();
    assert!(cached + 100 > read, "{cached} of {read} tokens");
    assert!(is_free(), "nothing of it is on the disk");
    assert_eq!(lists(folder.path()), Vec::<String>::new());
    assert!(
        !holds(folder.path(), &back.0.to_string()),
        "a file names it"
    );
}

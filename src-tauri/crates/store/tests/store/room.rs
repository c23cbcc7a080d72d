use std::fs;
use std::path::Path;
use std::time::Duration;

use store::{ChatId, Store};

use crate::{chat, folder, say, titles};

fn bytes(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn purge(store: &Store, chats: &[ChatId]) {
    for chat in chats {
        store.chats().delete(*chat, 500).unwrap();
    }
    while store.chats().purge(501, Duration::from_millis(50)).unwrap() {}
    assert!(store.empty_wal().unwrap());
}

/// Long texts, of one word and of many.
fn large(store: &Store) -> Vec<ChatId> {
    let texts = (0..10).map(|at| match at % 2 {
        0 => "word ".repeat(400_000 + at),
        _ => (0..20_000).map(|n| format!("{} ", n * at)).collect(),
    });
    texts.map(|text| chat(store, "Large", &text).0).collect()
}

#[test]
fn a_large_purge_gives_its_room_back_and_changes_nothing_else() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let (kept, first) = chat(&store, "Goldcrests", "How heavy?");
    let large = large(&store);
    let last = say(&store, kept, Some(first), "Six grams");
    purge(&store, &large);
    assert!(bytes(&path) > 20 << 20, "{}", bytes(&path));
    store.compact().unwrap();
    assert!(store.empty_wal().unwrap());
    assert!(bytes(&path) < 1 << 20, "{}", bytes(&path));
    store.messages().show(last).unwrap();
    assert_eq!(titles(&store), ["Goldcrests"]);
    assert_eq!(store.messages().path(last).unwrap().len(), 2);
    for part in ["grams", "oldcres"] {
        assert_eq!(store.search().find(part, 9).unwrap().chats.len(), 1);
    }
    drop(store);
    store::check(&path).unwrap();
}

#[test]
fn a_file_that_has_little_to_give_back_stays_as_it_is() {
    let (_folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let text = "-".repeat(1_000_000);
    let chats: Vec<_> = (0..3).map(|_| chat(&store, "Large", &text).0).collect();
    purge(&store, &chats);
    let before = bytes(&path);
    store.compact().unwrap();
    assert_eq!(bytes(&path), before);
}

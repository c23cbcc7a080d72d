use std::time::Duration;

use store::{ChatId, Store, StoreError};

use crate::{LONG, chat, say};

#[test]
fn a_chat_comes_back_as_it_was_made() {
    let store = Store::in_memory().unwrap();
    let (id, message) = chat(&store, "Goldcrests", "How heavy?");
    let row = store.chats().get(id).unwrap();
    assert_eq!(
        (row.title.as_str(), row.today.as_str()),
        ("Goldcrests", "2026-03-05")
    );
    assert_eq!(
        (row.created_at, row.updated_at, row.leaf),
        (100, 100, Some(message))
    );
}

#[test]
fn the_list_is_in_order_of_use() {
    let store = Store::in_memory().unwrap();
    let (first, _) = chat(&store, "First", "a");
    let (second, _) = chat(&store, "Second", "b");
    let order = || {
        store
            .chats()
            .list()
            .unwrap()
            .iter()
            .map(|row| row.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(order(), [second, first]);
    store.chats().touch(first, 200).unwrap();
    assert_eq!(order(), [first, second]);
    store.chats().touch(first, 50).unwrap();
    assert_eq!(
        order(),
        [first, second],
        "a clock that was set back does not move it down"
    );
}

#[test]
fn a_deleted_chat_is_out_of_sight_until_it_is_restored() {
    let store = Store::in_memory().unwrap();
    let (id, message) = chat(&store, "Goldcrests", "How heavy?");
    store.chats().delete(id, 500).unwrap();
    assert!(store.chats().list().unwrap().is_empty());
    assert!(matches!(
        store.chats().get(id),
        Err(StoreError::NotFound("chat"))
    ));
    for refused in [store.chats().rename(id, "X"), store.chats().delete(id, 900)] {
        assert!(matches!(refused, Err(StoreError::NotFound("chat"))));
    }
    assert!(matches!(
        store.messages().get(message),
        Err(StoreError::NotFound("message"))
    ));
    assert!(store.chats().any().unwrap());
    store.chats().restore(id).unwrap();
    assert_eq!(store.chats().get(id).unwrap().leaf, Some(message));
    assert!(matches!(
        store.chats().restore(ChatId(99)),
        Err(StoreError::NotFound("chat"))
    ));
}

#[test]
fn purging_takes_what_was_deleted_before_and_nothing_else() {
    let store = Store::in_memory().unwrap();
    let (old, message) = chat(&store, "Old", "a");
    let (young, _) = chat(&store, "Young", "b");
    let (kept, _) = chat(&store, "Kept", "c");
    store.chats().delete(old, 500).unwrap();
    store.chats().delete(young, 900).unwrap();
    assert!(!store.chats().purge(900, LONG).unwrap());
    assert!(store.chats().restore(old).is_err());
    assert!(
        store.messages().path(message).unwrap().is_empty(),
        "its messages went with it"
    );
    store.chats().restore(young).unwrap();
    store.chats().get(kept).unwrap();
    let next = store.chats().create("Next", "2026-03-05", 1).unwrap();
    assert!(next > kept, "an id is never given twice");
}

#[test]
fn a_chat_of_thousands_of_turns_can_be_purged() {
    let store = Store::in_memory().unwrap();
    let (id, root) = chat(&store, "Long", "0");
    store
        .transaction(|store| {
            (1..3000).fold(root, |parent, n| {
                say(store, id, Some(parent), &n.to_string())
            });
            Ok::<_, StoreError>(())
        })
        .unwrap();
    let leaf = store.chats().get(id).unwrap().leaf.unwrap();
    assert_eq!(store.messages().path(leaf).unwrap().len(), 3000);
    store.chats().delete(id, 1).unwrap();
    // A part at a time, and never so little that it goes on for ever.
    let calls = (1..).find(|_| !store.chats().purge(2, Duration::from_millis(5)).unwrap());
    assert!(calls.unwrap() > 1, "{calls:?}");
    assert!(store.messages().tree(id).unwrap().is_empty());
    assert!(store.chats().restore(id).is_err());
    assert!(!store.chats().purge(2, Duration::ZERO).unwrap());
}

use std::time::Duration;

use store::{ChatField, ChatId, DraftPlace, Store, StoreError};

use crate::{LONG, answer, chat, say};

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
    // A part at a time, and never so little that it does not end.
    let calls = (1..).find(|_| !store.chats().purge(2, Duration::from_millis(5)).unwrap());
    assert!(calls.unwrap() > 1, "{calls:?}");
    assert!(store.messages().tree(id).unwrap().is_empty());
    assert!(store.chats().restore(id).is_err());
    assert!(!store.chats().purge(2, Duration::ZERO).unwrap());
}

#[test]
fn a_field_is_set_of_several_chats_and_set_back() {
    let store = Store::in_memory().unwrap();
    let [one, two, gone] = ["One", "Two", "Gone"].map(|title| chat(&store, title, "a").0);
    store.chats().delete(gone, 1).unwrap();
    assert!(!store.chats().purge(2, LONG).unwrap());
    let pinned = |chat| store.chats().get(chat).unwrap().pinned_at;
    let set =
        |values: &[(ChatId, Option<i64>)]| store.chats().set(ChatField::Pinned, &values.to_vec());
    set(&[(one, Some(7))]).unwrap();
    let before = set(&[(one, Some(9)), (two, Some(9)), (gone, Some(9))]).unwrap();
    assert_eq!(before, [(one, Some(7)), (two, None)]);
    assert_eq!((pinned(one), pinned(two)), (Some(9), Some(9)));
    assert_eq!(set(&before).unwrap(), [(one, Some(9)), (two, Some(9))]);
    assert_eq!((pinned(one), pinned(two)), (Some(7), None));
    for none in [set(&[]), set(&[(gone, None)])] {
        assert!(matches!(none, Err(StoreError::NotFound("chat"))));
    }
    let archived = vec![(two, Some(8))];
    store.chats().set(ChatField::Archived, &archived).unwrap();
    assert_eq!(store.chats().get(two).unwrap().archived_at, Some(8));
}

#[test]
fn an_expired_chat_cannot_be_restored_and_goes_at_the_next_purge() {
    let store = Store::in_memory().unwrap();
    let [binned, kept] = ["Binned", "Kept"].map(|title| chat(&store, title, "a").0);
    store.chats().delete(binned, 900).unwrap();
    assert_eq!(store.chats().deleted().unwrap()[0].id, binned);
    assert_eq!(
        store.chats().get_with_deleted(binned).unwrap().deleted_at,
        Some(900)
    );
    assert_eq!(store.chats().expire(&[binned, kept]).unwrap(), [binned]);
    store.chats().get(kept).unwrap();
    assert!(store.chats().deleted().unwrap().is_empty());
    assert!(store.chats().get_with_deleted(binned).is_err());
    assert!(store.chats().restore(binned).is_err());
    assert_eq!(store.chats().ids_of_all().unwrap(), [kept]);
    assert!(!store.chats().purge(1, LONG).unwrap());
    assert!(store.messages().tree(binned).unwrap().is_empty());
}

/// Refuses to restore a half-purged chat, which has lost some of its messages.
#[test]
fn a_chat_whose_purge_has_begun_cannot_be_restored() {
    let store = Store::in_memory().unwrap();
    let (id, root) = chat(&store, "Long", "0");
    (1..10).fold(root, |parent, n| {
        say(&store, id, Some(parent), &n.to_string())
    });
    store.chats().delete(id, 1).unwrap();
    assert!(store.chats().purge(2, Duration::ZERO).unwrap());
    assert!(store.chats().restore(id).is_err());
    assert!(!store.chats().purge(2, LONG).unwrap());
}

#[test]
fn a_copy_in_another_store_is_the_chat_with_ids_of_its_own() {
    let temporary = Store::temporary().unwrap();
    let (id, asked) = chat(&temporary, "Birds", "How heavy?");
    let first = answer(&temporary, id, asked);
    let second = answer(&temporary, id, asked);
    temporary.messages().show(first).unwrap();
    let omitted = store::OmittedRow {
        kept_from: Some(asked),
        messages: 1,
        ..Default::default()
    };
    temporary.messages().omit(second, &omitted).unwrap();
    temporary
        .drafts()
        .set(DraftPlace::Chat(id), "And how")
        .unwrap();
    assert!(id.is_temporary() && first.is_temporary());

    let kept = Store::in_memory().unwrap();
    chat(&kept, "Other", "b");
    let mut copy = temporary.begin_copy(id, &kept).unwrap();
    let mut parts = 0;
    while !copy.is_whole() {
        copy = copy.go_on(&temporary, &kept, Duration::ZERO).unwrap();
        parts += 1;
        assert_eq!(kept.chats().list().unwrap().len(), 1, "it is hidden");
    }
    assert!(parts > 2, "{parts}");
    let copy = copy.finish(&temporary, &kept).unwrap();
    let row = kept.chats().get(copy).unwrap();
    assert_eq!((row.title.as_str(), row.created_at), ("Birds", 100));
    let tree = kept.messages().tree(copy).unwrap();
    let [(root, None), (one, Some(of_one)), (two, Some(of_two))] = tree[..] else {
        panic!("{tree:?}")
    };
    assert!(!copy.is_temporary() && !root.is_temporary());
    assert_eq!((of_one, of_two, row.leaf), (root, root, Some(one)));
    assert_eq!(
        kept.messages().get(two).unwrap().omitted.kept_from,
        Some(root)
    );
    assert_eq!(
        kept.messages().leaf_below(root).unwrap(),
        one,
        "which was shown last"
    );
    let texts = |store: &Store, leaf| {
        let path = store.messages().path(leaf).unwrap();
        path.into_iter().map(|row| row.progress).collect::<Vec<_>>()
    };
    assert_eq!(texts(&kept, two), texts(&temporary, second));
    assert_eq!(
        kept.drafts().get(DraftPlace::Chat(copy)).unwrap().text,
        "And how"
    );
    let answer = kept.search().find("heavy", 9).unwrap();
    assert_eq!(answer.chats[0].chat, copy);
    let next = say(&kept, copy, Some(two), "next");
    assert!(next > two, "an id is never given twice");
}

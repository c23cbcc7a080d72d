use serde_json::json;
use store::{
    ErrorRow, MessageId, MessageState, OmittedRow, Parts, Progress, Role, Store, StoreError,
};

use crate::{answer, chat, say};

fn texts(store: &Store, leaf: MessageId) -> Vec<String> {
    let path = store.messages().path(leaf).unwrap();
    path.into_iter()
        .map(|row| row.progress.parts.text().into_owned())
        .collect()
}

#[test]
fn an_answer_comes_back_as_it_was_journaled() {
    let store = Store::in_memory().unwrap();
    let (id, asked) = chat(&store, "Goldcrests", "How heavy?");
    let message = answer(&store, id, asked);
    let progress = Progress {
        parts: Parts::of_answer(Some("Hm.".into()), "Six grams. 🐦"),
        thinking_ms: Some(1200),
        tokens: vec![0, 1, 128_011, u32::MAX],
        model: Some("abc".into()),
        guide: Some("theme".into()),
    };
    store.messages().journal(message, &progress).unwrap();
    let row = store.messages().get(message).unwrap();
    assert_eq!(row.progress, progress);
    assert_eq!(
        (row.role, row.state, row.thinks),
        (Role::Assistant, MessageState::Writing, true)
    );
    assert_eq!(
        (row.chat, row.parent, row.created_at),
        (id, Some(asked), 101)
    );
    assert_eq!(
        (row.stats, row.error, row.omitted),
        (None, None, OmittedRow::default())
    );
}

#[test]
fn an_answer_ends_in_every_way_and_can_be_reopened() {
    let store = Store::in_memory().unwrap();
    let (id, asked) = chat(&store, "Goldcrests", "How heavy?");
    let message = answer(&store, id, asked);
    let stats = json!({ "tokens": 5 });
    let error = ErrorRow {
        code: "generation".into(),
        message: "out of memory".into(),
    };
    for state in [
        MessageState::Done,
        MessageState::Stopped,
        MessageState::Interrupted,
        MessageState::Limit,
        MessageState::Failed,
    ] {
        store
            .messages()
            .end(message, state, Some(&stats), Some(&error))
            .unwrap();
        let row = store.messages().get(message).unwrap();
        assert_eq!(
            (row.state, row.stats.as_ref(), row.error.as_ref()),
            (state, Some(&stats), Some(&error))
        );
    }
    store.messages().reopen(message).unwrap();
    let row = store.messages().get(message).unwrap();
    assert_eq!((row.state, row.error), (MessageState::Writing, None));
    assert_eq!(
        row.stats,
        Some(stats),
        "those of its first part, until it ends again"
    );
}

#[test]
fn what_a_prompt_left_out_is_kept() {
    let store = Store::in_memory().unwrap();
    let (id, asked) = chat(&store, "Goldcrests", "How heavy?");
    let message = answer(&store, id, asked);
    let omitted = OmittedRow {
        kept_from: Some(asked),
        thinking_from: Some(message),
        messages: 4,
        thinking: 2,
    };
    store.messages().omit(message, &omitted).unwrap();
    assert_eq!(store.messages().get(message).unwrap().omitted, omitted);
}

#[test]
fn a_new_message_is_shown_and_its_siblings_stay() {
    let store = Store::in_memory().unwrap();
    let (id, root) = chat(&store, "Goldcrests", "A");
    let left = say(&store, id, Some(root), "left");
    let right = say(&store, id, Some(root), "right");
    assert_eq!(store.chats().get(id).unwrap().leaf, Some(right));
    assert_eq!(texts(&store, right), ["A", "right"]);
    let tree = store.messages().tree(id).unwrap();
    assert_eq!(
        tree,
        [(root, None), (left, Some(root)), (right, Some(root))]
    );
}

#[test]
fn showing_a_message_restores_the_branch_below_it() {
    let store = Store::in_memory().unwrap();
    let (id, root) = chat(&store, "Goldcrests", "A");
    let left = say(&store, id, Some(root), "left");
    let left_old = say(&store, id, Some(left), "left old");
    let left_new = say(&store, id, Some(left), "left new");
    store.messages().show(left_old).unwrap();
    let right = say(&store, id, Some(root), "right");
    let leaf = || store.chats().get(id).unwrap().leaf;

    assert_eq!(store.messages().leaf_below(left).unwrap(), left_old);
    assert_eq!(leaf(), Some(right), "asking shows nothing");
    store.messages().show(left).unwrap();
    assert_eq!(leaf(), Some(left_old), "where it was left, not the latest");
    store.messages().show(right).unwrap();
    store.messages().show(left_new).unwrap();
    store.messages().show(root).unwrap();
    assert_eq!(leaf(), Some(left_new));
    assert!(matches!(
        store.messages().show(MessageId(99)),
        Err(StoreError::NotFound("message"))
    ));
}

#[test]
fn a_failed_transaction_leaves_nothing() {
    let store = Store::in_memory().unwrap();
    let failed = store.transaction(|store| {
        chat(store, "Goldcrests", "A");
        Err::<(), _>(StoreError::NotFound("chat"))
    });
    assert!(failed.is_err());
    assert!(!store.chats().any().unwrap());
    chat(&store, "Goldcrests", "A");
}

#[test]
fn a_message_needs_its_chat_and_its_parent() {
    let store = Store::in_memory().unwrap();
    let (id, _) = chat(&store, "Goldcrests", "A");
    let parts = Parts::of_text("x");
    let orphan = |chat, parent| store::NewMessage {
        chat,
        parent,
        role: Role::User,
        state: MessageState::Done,
        parts: parts.clone(),
        thinks: false,
        created_at: 1,
    };
    assert!(
        store
            .messages()
            .add(&orphan(store::ChatId(99), None))
            .is_err()
    );
    assert!(
        store
            .messages()
            .add(&orphan(id, Some(MessageId(99))))
            .is_err()
    );
}

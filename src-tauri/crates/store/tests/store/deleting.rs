//! Deletion of messages with their descendants.

use std::time::Duration;

use store::{
    ChatId, LengthWish, MessageId, MessageState, OmittedRow, Parts, Progress, Purged, Store,
    StoreError,
};

use crate::{LONG, answer, chat, found, say};

/// A chat of a question with two answers, a second question below the second one, and its answer.
struct Tree {
    store: Store,
    chat: ChatId,
    asked: MessageId,
    answers: [MessageId; 2],
    second: MessageId,
    last: MessageId,
}

fn tree() -> Tree {
    let store = Store::in_memory().unwrap();
    let (chat, asked) = chat(&store, "Goldcrests", "How heavy?");
    let ended = |asked, text: &str| {
        let id = answer(&store, chat, asked);
        let progress = Progress {
            parts: Parts::of_text(text),
            ..Progress::default()
        };
        store.messages().journal(id, &progress).unwrap();
        store
            .messages()
            .end(id, MessageState::Done, None, None)
            .unwrap();
        id
    };
    let answers = [ended(asked, "Five grams."), ended(asked, "Six grams.")];
    let second = say(&store, chat, Some(answers[1]), "And a wren?");
    let last = answer(&store, chat, second);
    Tree {
        store,
        chat,
        asked,
        answers,
        second,
        last,
    }
}

impl Tree {
    fn leaf(&self) -> Option<MessageId> {
        self.store.chats().get(self.chat).unwrap().leaf
    }

    fn found(&self, query: &str) -> usize {
        found(&self.store, query).len()
    }

    fn delete(&self, message: MessageId) {
        self.store.messages().delete(message, 500).unwrap();
    }
}

#[test]
fn a_deleted_message_is_gone_with_what_follows_it_until_it_is_restored() {
    let tree = tree();
    let messages = tree.store.messages();
    assert_eq!((tree.leaf(), tree.found("wren")), (Some(tree.last), 1));
    tree.delete(tree.answers[1]);
    assert_eq!(tree.leaf(), Some(tree.answers[0]), "the version before it");
    for gone in [tree.answers[1], tree.second, tree.last] {
        assert!(matches!(
            messages.get(gone),
            Err(StoreError::NotFound("message"))
        ));
        assert!(matches!(
            messages.show(gone),
            Err(StoreError::NotFound("message"))
        ));
        assert!(messages.delete(gone, 501).is_err());
    }
    assert_eq!(tree.leaf(), Some(tree.answers[0]));
    let children = messages.children(tree.chat, Some(tree.asked)).unwrap();
    assert_eq!(children, [tree.answers[0]]);
    assert_eq!(messages.tree(tree.chat).unwrap().len(), 2);
    assert_eq!((tree.found("wren"), tree.found("six")), (0, 0));

    messages.undelete(tree.answers[1]).unwrap();
    assert_eq!(
        tree.leaf(),
        Some(tree.answers[0]),
        "it is not shown by that"
    );
    messages.show(tree.answers[1]).unwrap();
    assert_eq!(tree.leaf(), Some(tree.last), "down to where it was left");
    assert_eq!((tree.found("wren"), tree.found("six")), (1, 1));
    assert!(messages.undelete(tree.answers[1]).is_err());
}

#[test]
fn without_another_version_the_branch_ends_with_the_parent() {
    let tree = tree();
    tree.delete(tree.second);
    assert_eq!(tree.leaf(), Some(tree.answers[1]));
    let next = say(&tree.store, tree.chat, tree.leaf(), "And a robin?");
    assert_eq!(tree.leaf(), Some(next));
    tree.delete(tree.asked);
    assert_eq!(tree.leaf(), None, "nothing is left of the chat");
    let messages = tree.store.messages();
    assert_eq!(messages.tree(tree.chat).unwrap(), []);
    messages.undelete(tree.asked).unwrap();
    messages.show(next).unwrap();
    let path = messages.path(next).unwrap();
    assert_eq!(path.len(), 3);
    assert!(
        messages.get(tree.second).is_err(),
        "what was deleted before stays deleted"
    );
    messages.undelete(tree.second).unwrap();
    let children = messages.children(tree.chat, Some(tree.answers[1])).unwrap();
    assert_eq!(children, [tree.second, next]);
}

#[test]
fn deleting_what_is_not_shown_leaves_the_branch() {
    let tree = tree();
    tree.delete(tree.answers[0]);
    assert_eq!(tree.leaf(), Some(tree.last));
}

#[test]
fn deleted_messages_are_purged_in_parts() {
    let tree = tree();
    let messages = tree.store.messages();
    tree.delete(tree.answers[1]);
    assert_eq!(
        messages.purge(500, LONG).unwrap(),
        Purged::default(),
        "it can be restored"
    );
    messages.undelete(tree.answers[1]).unwrap();
    messages.show(tree.answers[1]).unwrap();
    tree.delete(tree.answers[1]);
    assert!(
        messages.purge(501, Duration::ZERO).unwrap().more,
        "some is left"
    );
    let purged = messages.purge(501, LONG).unwrap();
    assert_eq!(
        (purged.chats.into_iter().collect::<Vec<_>>(), purged.more),
        (vec![tree.chat], false)
    );
    assert!(messages.undelete(tree.answers[1]).is_err());
    assert_eq!(messages.tree(tree.chat).unwrap().len(), 2);
    // A chat is purged with its deleted messages.
    tree.delete(tree.answers[0]);
    tree.store.chats().delete(tree.chat, 1).unwrap();
    assert!(!tree.store.chats().purge(2, LONG).unwrap());
    assert_eq!(messages.purge(i64::MAX, LONG).unwrap(), Purged::default());
}

#[test]
fn a_message_is_purged_with_what_was_deleted_below_it_at_a_later_date() {
    let tree = tree();
    let messages = tree.store.messages();
    messages.delete(tree.second, 10_000).unwrap();
    messages.delete(tree.answers[1], 500).unwrap();
    assert!(messages.purge(1_000, Duration::ZERO).unwrap().more);
    let purged = messages.purge(1_000, LONG).unwrap();
    assert_eq!((purged.chats.len(), purged.more), (1, false));
    assert!(messages.undelete(tree.second).is_err());
    assert_eq!(messages.purge(i64::MAX, LONG).unwrap(), Purged::default());
    assert_eq!(messages.tree(tree.chat).unwrap().len(), 2);
}

#[test]
fn a_long_branch_is_deleted_at_once() {
    let store = Store::in_memory().unwrap();
    let (id, first) = chat(&store, "Long", "0");
    let mut last = first;
    store
        .transaction(|store| {
            for at in 1..5000 {
                last = say(store, id, Some(last), &at.to_string());
            }
            Ok::<_, StoreError>(())
        })
        .unwrap();
    store.messages().delete(first, 500).unwrap();
    assert_eq!(store.messages().tree(id).unwrap(), []);
    store.messages().undelete(first).unwrap();
    store.messages().show(last).unwrap();
    assert_eq!(store.messages().path(last).unwrap().len(), 5000);
}

#[test]
fn an_answer_gets_back_what_it_had() {
    let store = Store::in_memory().unwrap();
    let (id, asked) = chat(&store, "Goldcrests", "How heavy?");
    let message = answer(&store, id, asked);
    let progress = Progress {
        parts: Parts::of_answer(Some("Hm.".into()), "Six"),
        thinking_ms: Some(7),
        tokens: vec![4, 5],
        model: Some("m".into()),
        guide: Some("theme".into()),
    };
    let messages = store.messages();
    messages.journal(message, &progress).unwrap();
    messages
        .end(message, MessageState::Stopped, None, None)
        .unwrap();
    let before = messages.get(message).unwrap();
    messages.reopen(message).unwrap();
    messages.journal(message, &Progress::default()).unwrap();
    let stats = serde_json::json!({"tokens": 3});
    messages
        .end(message, MessageState::Done, Some(&stats), None)
        .unwrap();
    let omitted = OmittedRow {
        messages: 3,
        ..OmittedRow::default()
    };
    messages.omit(message, &omitted).unwrap();
    messages.put_back(&before).unwrap();
    assert_eq!(messages.get(message).unwrap(), before);
}

#[test]
fn a_message_is_copied_into_another_chat() {
    let store = Store::in_memory().unwrap();
    let (id, asked) = chat(&store, "Goldcrests", "How heavy?");
    let message = answer(&store, id, asked);
    let messages = store.messages();
    let progress = Progress {
        parts: Parts::of_answer(Some("Hm.".into()), "Six grams."),
        thinking_ms: Some(7),
        tokens: vec![4, 5],
        model: Some("m".into()),
        guide: Some("theme".into()),
    };
    messages.journal(message, &progress).unwrap();
    messages.set_length(message, LengthWish::Shorter).unwrap();
    let stats = serde_json::json!({"tokens": 3});
    messages
        .end(message, MessageState::Done, Some(&stats), None)
        .unwrap();
    let other = store.chats().create("Copy", "2026-03-05", 900).unwrap();
    let root = messages.copy(asked, other, None).unwrap();
    let copied = messages.copy(message, other, Some(root)).unwrap();
    messages.show(copied).unwrap();
    let before = messages.get(message).unwrap();
    let row = messages.get(copied).unwrap();
    assert_eq!((row.chat, row.parent), (other, Some(root)));
    assert_eq!(row.length, Some(LengthWish::Shorter));
    assert_eq!(
        store::MessageRow {
            id: message,
            chat: id,
            parent: Some(asked),
            ..row
        },
        before
    );
    assert_eq!(found(&store, "grams").len(), 2);
    messages.delete(message, 1).unwrap();
    assert!(messages.copy(message, other, Some(root)).is_err());
}

//! From a message to its answer.

use chat::{MessageState, Role};

use crate::scripted::{Bench, Step};

#[test]
fn a_message_makes_a_chat_and_is_answered() {
    let mut bench = Bench::new();
    assert!(bench.chat.snapshot().unwrap().first_start);
    bench
        .script
        .answer([Step::Read(10, 10), Step::Say("Six "), Step::Say("grams.")]);

    let view = bench
        .chat
        .send(None, "How heavy is a goldcrest?\nIn grams.", true)
        .unwrap();
    assert_eq!(view.chat.title, "How heavy is a goldcrest?");
    assert!(view.chat.writing);
    assert_eq!(view.messages.len(), 2);
    assert_eq!(
        view.messages[0].text,
        "How heavy is a goldcrest?\nIn grams."
    );
    assert_eq!(
        (view.messages[1].role, view.messages[1].state),
        (Role::Assistant, MessageState::Writing)
    );

    let ended = bench.until_ended();
    assert_eq!(
        (ended.text.as_str(), ended.state),
        ("Six grams.", MessageState::Done)
    );
    assert_eq!(ended.id, view.messages[1].id);
    assert_eq!(ended.stats.as_ref().unwrap().tokens, 2);
    assert_eq!(ended.thinking, None);
    assert_eq!(ended.thinking_ms, None);

    let snapshot = bench.chat.snapshot().unwrap();
    assert!(!snapshot.first_start);
    assert_eq!(snapshot.current, Some(view.chat.id));
    assert!(!snapshot.chats[0].writing);
}

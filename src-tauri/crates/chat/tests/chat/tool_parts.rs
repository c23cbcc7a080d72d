//! Calls of tools and their results go with their messages, whatever happens to these.

use chat::{Part, Parts, Role, ToolOutcome};

use crate::importing::{chat_titled, chats, import};
use crate::scripted::{Bench, Step};

fn thinking(text: &str) -> Part {
    Part::Thinking { text: text.into() }
}

fn text(text: &str) -> Part {
    Part::Text { text: text.into() }
}

fn call(arguments: &str) -> Part {
    Part::ToolCall {
        id: "call-1".into(),
        name: "weigh".into(),
        arguments: arguments.into(),
    }
}

fn result() -> Part {
    Part::ToolResult {
        id: "call-1".into(),
        text: "5.7 grams".into(),
        outcome: ToolOutcome::Done,
        server: None,
    }
}

/// Imports a chat with a question, an answer with a call, its result, and an answer. Returns the bench and the chat.
fn imported() -> (Bench, chat::ChatId) {
    let bench = Bench::new();
    let mut whole = chats(1, "How heavy is a goldcrest?").remove(0);
    let messages = [
        (
            Role::Assistant,
            vec![thinking("Hm."), text("I weigh it."), call(""), text("So:")],
        ),
        (Role::Tool, vec![result()]),
        (Role::Assistant, vec![text("Six grams.")]),
    ];
    for (id, (role, parts)) in (2..).zip(messages) {
        let mut message = store::MessageRecord::new(id, role, String::new(), 100);
        message.parent = Some(id - 1);
        message.parts = Parts(parts);
        whole.messages.push(message);
    }
    whole.chat.leaf = Some(4);
    import(&bench, vec![whole]).unwrap();
    let chat = chat_titled(&bench, "Chat 0");
    (bench, chat)
}

/// Parts of the messages of a chat's shown branch.
fn parts(bench: &Bench, chat: chat::ChatId) -> Vec<Parts> {
    let view = bench.chat.open_chat(chat).unwrap();
    view.messages.into_iter().map(|it| it.parts).collect()
}

#[test]
fn they_are_in_forks_exports_and_what_is_restored() {
    let (bench, chat) = imported();
    let before = parts(&bench, chat);
    assert_eq!(before[1].0[2], call(""));
    assert_eq!(before[2].0, [result()]);
    let view = bench.chat.open_chat(chat).unwrap();
    let fork = bench.chat.fork(view.messages[3].id).unwrap();
    assert_eq!(parts(&bench, fork.chat.id), before);
    // Deleted, in the bin, and back.
    bench.chat.delete_message(view.messages[1].id).unwrap();
    assert_eq!(parts(&bench, chat), before[..1]);
    bench.chat.undo().unwrap();
    assert_eq!(parts(&bench, chat), before);
    let record = bench.chat.record(chat).unwrap();
    let other = Bench::new();
    import(&other, vec![record]).unwrap();
    assert_eq!(parts(&other, chat_titled(&other, "Chat 0")), before);
}

#[test]
fn an_edit_changes_the_text_alone() {
    let (bench, chat) = imported();
    let view = bench.chat.open_chat(chat).unwrap();
    let answer = view.messages[1].id;
    let edited = bench.chat.edit_message(answer, "I do.", None).unwrap();
    assert_eq!(edited.messages[0].parts.0, [text("I do."), call("")]);
    bench.chat.undo().unwrap();
    assert_eq!(parts(&bench, chat)[1], view.messages[1].parts);
}

#[test]
fn an_answer_that_goes_on_keeps_its_calls() {
    let (mut bench, chat) = imported();
    let view = bench.chat.open_chat(chat).unwrap();
    bench.chat.delete_message(view.messages[2].id).unwrap();
    bench.script.answer([Step::Say(" six.")]);
    bench.chat.continue_answer(view.messages[1].id).unwrap();
    bench.until_ended();
    assert_eq!(
        parts(&bench, chat)[1].0,
        [
            thinking("Hm."),
            text("I weigh it."),
            call(""),
            text("So: six.")
        ]
    );
}

#[test]
fn the_model_sees_calls_before_their_results() {
    let (mut bench, chat) = imported();
    bench.ask(Some(chat), "And in ounces?");
    let history = bench.script.last_turn().history;
    let said: Vec<_> = history
        .iter()
        .map(|turn| (turn.role, &*turn.text, turn.calls.len()))
        .collect();
    assert_eq!(
        said[1..4],
        [
            (Role::Assistant, "I weigh it.\n\nSo:", 1),
            (Role::Tool, "5.7 grams", 0),
            (Role::Assistant, "Six grams.", 0),
        ]
    );
}

#[test]
fn they_are_found() {
    let (bench, chat) = imported();
    for query in ["weigh", "5.7"] {
        let found = bench.chat.search(query).unwrap().chats;
        assert!(found.iter().any(|it| it.chat == chat), "{query}: {found:?}");
    }
}

//! The tree: regenerate, edit, and switching between branches.

use chat::{FailureCode, MessageState, Role};
use inference::StopReason;

use crate::scripted::{Bench, Step, texts};

#[test]
fn another_answer_is_a_sibling() {
    let mut bench = Bench::new();
    bench.script.answer([Step::Say("Six grams.")]);
    let view = bench.ask(None, "How heavy?");
    let first = view.messages[1].id;

    bench.script.answer([Step::Say("Five grams.")]);
    let view = bench.chat.regenerate(first, false, None).unwrap();
    let second = view.messages[0].id;
    assert_eq!(view.messages[0].siblings, [first, second]);
    assert!(!view.messages[0].thinks);
    bench.until_ended();
    assert!(!bench.script.last_turn().thinking);
    assert_eq!(
        bench.script.last_turn().history.len(),
        1,
        "the other answer is not part of it"
    );

    let view = bench.chat.show_sibling(first).unwrap();
    assert_eq!(texts(&view), ["Six grams."]);
    assert_eq!(view.messages[0].siblings, [first, second]);
    let view = bench.chat.show_sibling(second).unwrap();
    assert_eq!(texts(&view), ["Five grams."]);
}

#[test]
fn an_edited_message_is_a_sibling_and_is_answered() {
    let mut bench = Bench::new();
    bench.script.answer([Step::Say("Six grams.")]);
    let view = bench.chat.send(None, "How heavy?", false).unwrap();
    bench.until_ended();
    let asked = view.messages[0].id;

    bench.script.answer([Step::Say("Nine centimetres.")]);
    let view = bench
        .chat
        .edit_message(asked, "How long?", Some(true))
        .unwrap();
    assert_eq!(texts(&view), ["How long?", ""]);
    assert_eq!(view.messages[0].siblings.len(), 2);
    assert!(
        view.messages[0].thinks && view.messages[1].thinks,
        "answered in the mode that was chosen now, not in that of the first time"
    );
    bench.until_ended();
    assert_eq!(bench.script.last_turn().history[0].text, "How long?");
    assert!(bench.script.last_turn().thinking);

    let view = bench
        .chat
        .edit_message(asked, "How old?", Some(false))
        .unwrap();
    assert!(!view.messages[0].thinks && !view.messages[1].thinks);
    bench.until_ended();
    assert!(!bench.script.last_turn().thinking);

    let view = bench.chat.show_sibling(asked).unwrap();
    assert_eq!(texts(&view), ["How heavy?", "Six grams."]);
    assert!(!view.messages[0].thinks, "the first version is as it was");
}

#[test]
fn an_edit_can_be_saved_without_an_answer_and_answered_later() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "How heavy?");
    let view = bench
        .chat
        .edit_message(view.messages[0].id, "How old?", None)
        .unwrap();
    assert_eq!(texts(&view), ["How old?"]);
    assert!(!view.chat.writing);
    let view = bench
        .chat
        .regenerate(view.messages[0].id, true, None)
        .unwrap();
    assert_eq!(texts(&view), [""]);
    assert_eq!(bench.until_ended().state, MessageState::Done);
}

#[test]
fn an_answer_can_be_edited_and_the_chat_goes_on_from_it() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "How heavy?");
    let answer = view.messages[1].id;
    let refused = bench
        .chat
        .edit_message(answer, "Six.", Some(true))
        .unwrap_err();
    assert_eq!(refused.code, FailureCode::Other);
    let view = bench.chat.edit_message(answer, "Six grams.", None).unwrap();
    assert_eq!(
        (view.messages[0].role, view.messages[0].state),
        (Role::Assistant, MessageState::Done)
    );
    bench.ask(Some(view.chat.id), "Sure?");
    let history = bench.script.last_turn().history;
    assert_eq!(history[1].text, "Six grams.");
    assert_eq!(history[1].ids, None, "the model did not make it");
}

#[test]
fn going_back_to_a_branch_goes_to_where_it_was_left() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "A").chat.id;
    bench.ask(Some(chat), "B");
    let deep = bench.ask(Some(chat), "C");
    assert_eq!(texts(&deep), ["A", "Yes.", "B", "Yes.", "C", "Yes."]);
    // In the first branch, an older answer is the one shown last.
    let last = deep.messages[5].id;
    bench.chat.regenerate(last, true, None).unwrap();
    bench.until_ended();
    bench.chat.show_sibling(last).unwrap();

    let root = deep.messages[0].id;
    let other = bench.chat.edit_message(root, "Z", Some(true)).unwrap();
    bench.until_ended();
    assert_eq!(texts(&other), ["Z", ""]);
    let back = bench.chat.show_sibling(root).unwrap();
    assert_eq!(texts(&back), texts(&deep));
    assert_eq!(back.messages[5].id, last);
    assert_eq!(back.messages[5].siblings.len(), 2);
}

#[test]
fn a_verb_returns_the_branch_from_where_it_is_another() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "A").chat.id;
    let whole = bench.ask(Some(chat), "B");
    let ids: Vec<_> = whole.messages.iter().map(|message| message.id).collect();
    assert_eq!((ids.len(), whole.after), (4, None));

    let sent = bench.chat.send(Some(chat), "C", true).unwrap();
    assert_eq!(texts(&sent), ["C", ""]);
    assert_eq!(sent.after, Some(ids[3]));
    bench.until_ended();
    let again = bench.chat.regenerate(ids[3], true, None).unwrap();
    assert_eq!(texts(&again), [""]);
    assert_eq!(again.after, Some(ids[2]));
    bench.until_ended();
    let edited = bench.chat.edit_message(ids[2], "D", None).unwrap();
    assert_eq!(texts(&edited), ["D"]);
    assert_eq!(edited.after, Some(ids[1]));
    let back = bench.chat.show_sibling(ids[2]).unwrap();
    assert_eq!(texts(&back), ["B", "Yes."]);
    assert_eq!(back.after, Some(ids[1]));
    let first = bench.chat.edit_message(ids[0], "E", None).unwrap();
    assert_eq!(texts(&first), ["E"]);
    assert_eq!(first.after, None);
}

#[test]
fn a_chat_that_writes_can_be_looked_through_but_not_changed() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "A");
    let (chat, asked, answer) = (view.chat.id, view.messages[0].id, view.messages[1].id);
    bench.script.answer([Step::Say("partial"), Step::Wait]);
    bench.chat.regenerate(answer, true, None).unwrap();
    bench.until_delta();

    assert_eq!(
        bench.chat.regenerate(answer, true, None).unwrap_err().code,
        FailureCode::Other
    );
    assert_eq!(
        bench
            .chat
            .edit_message(asked, "B", Some(true))
            .unwrap_err()
            .code,
        FailureCode::Other
    );
    assert_eq!(texts(&bench.chat.show_sibling(answer).unwrap()), ["Yes."]);
    bench.chat.stop(chat).unwrap();
    assert_eq!(bench.until_ended().text(), "partial");
    assert_eq!(
        texts(&bench.chat.open_chat(chat).unwrap()),
        ["A", "Yes."],
        "the view stays"
    );
}

#[test]
fn continuing_an_answer_shows_its_branch() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::Say("Six "), Step::End(StopReason::MaxTokens)]);
    let first = bench.ask(None, "How heavy?").messages[1].id;
    bench.chat.regenerate(first, true, None).unwrap();
    bench.until_ended();

    bench.script.answer([Step::Say("grams.")]);
    let view = bench.chat.continue_answer(first).unwrap();
    assert_eq!(view.messages[0].id, first);
    bench.until_ended();
    assert_eq!(
        texts(&bench.chat.open_chat(view.chat.id).unwrap()),
        ["How heavy?", "Six grams."],
        "and it stays shown"
    );
}

//! Steering: the answer begins, or is continued.

use chat::{MessageState, Settings};
use inference::{StopReason, ThinkingCut};

use crate::scripted::{Bench, Step, texts};

#[test]
fn the_answer_begins_at_once_when_it_is_asked_for() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::ThinkOn("Hm"), Step::Tag(8), Step::Say("Six.")]);
    let view = bench.chat.send(None, "How heavy?", true).unwrap();
    assert_eq!(bench.until_delta(), "Hm");
    bench.chat.answer_now(chat::ChatId(77)).unwrap();
    bench.chat.answer_now(view.chat.id).unwrap();
    let ended = bench.until_ended();
    assert_eq!(
        (ended.thinking().as_deref(), &*ended.text()),
        (Some("Hm"), "Six.")
    );
    assert_eq!(ended.state, MessageState::Done);
    let stats = ended.stats.unwrap().figures;
    assert_eq!(stats.thinking_cut, Some(ThinkingCut::AnswerNow));
    bench.ask(Some(view.chat.id), "Sure?");
    let history = bench.script.last_turn().history;
    assert_eq!(
        history[1].ids.as_deref(),
        Some(&[100, 8, 102][..]),
        "forced ids are kept"
    );
    bench.chat.answer_now(view.chat.id).unwrap();
}

#[test]
fn the_budget_of_thinking_is_the_setting() {
    let mut bench = Bench::new();
    bench.ask(None, "A");
    assert_eq!(bench.script.last_turn().thinking_budget, None);
    let settings = Settings {
        thinking_budget: Some(256),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    bench.ask(None, "B");
    assert_eq!(bench.script.last_turn().thinking_budget, Some(256));
}

#[test]
fn the_budget_of_thinking_is_that_of_the_answer_however_often_it_goes_on() {
    let mut bench = Bench::new();
    let settings = Settings {
        thinking_budget: Some(7),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    let stopped = |text| [Step::Think(text), Step::End(StopReason::MaxTokens)];
    bench.script.answer(stopped("one two three"));
    let answer = bench.ask(None, "A").messages[1].id;
    let mut go_on = |text| {
        bench.script.answer(stopped(text));
        bench.chat.continue_answer(answer).unwrap();
        bench.until_ended();
        bench.script.last_turn().thinking_budget
    };
    assert_eq!(go_on(" four five"), Some(4));
    assert_eq!(go_on(" six seven eight"), Some(2));
    assert_eq!(go_on(" nine"), Some(0));
    // Another answer has the whole budget.
    bench.chat.regenerate(answer, true, None).unwrap();
    bench.until_ended();
    assert_eq!(bench.script.last_turn().thinking_budget, Some(7));
}

#[test]
fn a_complete_answer_goes_on_and_undoing_gives_it_back_what_it_had() {
    let mut bench = Bench::new();
    bench.script.answer([
        Step::Tag(7),
        Step::Think("Hm."),
        Step::Tag(8),
        Step::Say("Six."),
    ]);
    let before = bench.ask(None, "How heavy?");
    let (chat, answer) = (before.chat.id, before.messages[1].id);
    bench.script.answer([Step::Say(" Or five.")]);
    bench.chat.continue_answer(answer).unwrap();
    let longer = bench.until_ended();
    assert_eq!(longer.text(), "Six. Or five.");
    let turn = bench.script.last_turn();
    assert!(turn.resume && turn.goes_on);

    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(undone.label, "continued an answer");
    assert_eq!(bench.chat.open_chat(chat).unwrap(), before);
    bench.ask(Some(chat), "Sure?");
    let history = bench.script.last_turn().history;
    assert_eq!(history[1].ids.as_deref(), Some(&[7, 101, 8, 103][..]));

    bench.chat.redo().unwrap();
    let again = bench.chat.open_chat(chat).unwrap();
    assert_eq!(
        texts(&again),
        ["How heavy?", "Six. Or five.", "Sure?", "Yes."]
    );
    assert_eq!(again.messages[1].stats, longer.stats);
}

#[test]
fn an_answer_that_was_cut_off_may_end_at_once() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::Say("Six."), Step::End(StopReason::MaxTokens)]);
    let answer = bench.ask(None, "How heavy?").messages[1].id;
    bench.chat.continue_answer(answer).unwrap();
    bench.until_ended();
    let turn = bench.script.last_turn();
    assert!(turn.resume && !turn.goes_on);
}

#[test]
fn undoing_a_continuation_that_is_being_written_stops_it() {
    let mut bench = Bench::new();
    let before = bench.ask(None, "How heavy?");
    bench.script.answer([Step::Say(" And"), Step::Wait]);
    bench.chat.continue_answer(before.messages[1].id).unwrap();
    bench.until_delta();
    bench.chat.undo().unwrap();
    assert_eq!(bench.chat.open_chat(before.chat.id).unwrap(), before);
}

#[test]
fn a_question_does_not_go_on() {
    let mut bench = Bench::new();
    let asked = bench.ask(None, "How heavy?").messages[0].id;
    assert!(bench.chat.continue_answer(asked).is_err());
}

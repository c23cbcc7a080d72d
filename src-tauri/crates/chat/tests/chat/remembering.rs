//! Data of a chat that the model gets again: ids, thinking, the date.

use chat::{ChatEvent, ModelChoice};
use store::Store;

use crate::scripted::{Bench, Script, Step, TODAY};

const THOUGHT: [Step; 4] = [
    Step::Tag(1),
    Step::Think("Hm."),
    Step::Tag(2),
    Step::Say("Six."),
];

#[test]
fn in_thinking_mode_an_answer_goes_back_verbatim() {
    let mut bench = Bench::new();
    bench.script.answer(THOUGHT);
    let chat = bench.ask(None, "How heavy?").chat.id;
    bench.ask(Some(chat), "Sure?");
    let answer = &bench.script.last_turn().history[1];
    assert_eq!(
        (answer.text.as_str(), answer.thinking.as_deref()),
        ("Six.", Some("Hm."))
    );
    assert_eq!(answer.ids.as_deref(), Some([1, 101, 2, 103].as_slice()));
}

#[test]
fn without_thinking_mode_earlier_thinking_is_left_out() {
    let mut bench = Bench::new();
    bench.script.answer(THOUGHT);
    let chat = bench.ask(None, "How heavy?").chat.id;
    bench.chat.send(Some(chat), "Sure?", false).unwrap();
    bench.until_ended();
    bench.chat.send(Some(chat), "Sure?", false).unwrap();
    bench.until_ended();
    let history = bench.script.last_turn().history;
    assert_eq!(
        (history[1].thinking.as_deref(), history[1].ids.as_deref()),
        (None, None)
    );
    assert_eq!(
        history[3].ids.as_deref(),
        Some([100].as_slice()),
        "it had no thinking to leave out"
    );
}

#[test]
fn ids_of_another_model_are_not_used_and_a_continued_answer_forgets_them() {
    let mut bench = Bench::new();
    bench.script.answer([Step::Say("Six "), Step::Wait]);
    let chat = bench.chat.send(None, "How heavy?", true).unwrap().chat.id;
    bench.until_delta();
    bench.chat.stop(chat).unwrap();
    let answer = bench.until_ended().id;

    bench
        .chat
        .open_model(ModelChoice::File("other.gguf".into()))
        .unwrap();
    let ready = |event: &ChatEvent| matches!(event, ChatEvent::Model { model } if model.status.ready().is_some_and(|info| info.name == "other"));
    bench.until(ready);
    bench.script.answer([Step::Say("grams.")]);
    bench.chat.continue_answer(answer).unwrap();
    assert_eq!(bench.until_ended().text(), "Six grams.");
    let turn = bench.script.last_turn();
    assert_eq!((turn.resume, turn.history[1].ids.as_deref()), (true, None));
    bench.ask(Some(chat), "Sure?");
    let answer = &bench.script.last_turn().history[1];
    assert_eq!(
        (answer.text.as_str(), answer.ids.as_deref()),
        ("Six grams.", None)
    );
}

#[test]
fn a_chat_keeps_its_first_day() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let script = Script::default();
    let mut bench = Bench::start(Store::open(&path).unwrap(), &script, TODAY);
    let chat = bench.ask(None, "What day is it?").chat.id;
    bench.chat.shutdown();
    // 23:30 in New York is the next day in UTC: the date is the user's.
    let later = "2026-03-09T23:30:00-04:00[America/New_York]";
    let mut bench = Bench::start(Store::open(&path).unwrap(), &script, later);
    bench.ask(Some(chat), "And now?");
    assert_eq!(script.last_turn().today, jiff::civil::date(2026, 3, 5));
    bench.ask(None, "And here?");
    assert_eq!(script.last_turn().today, jiff::civil::date(2026, 3, 9));
}

#[test]
fn a_model_without_thinking_mode_is_not_asked_to_think() {
    let script = Script::default();
    script.cannot_think();
    let mut bench = Bench::scripted(&script);
    let view = bench.ask(None, "How heavy?");
    assert!(!script.last_turn().thinking);
    assert!(
        view.messages[1].thinks,
        "the wish is kept, for a model that can"
    );
}

#[test]
fn an_answer_that_begins_again_forgets_the_ids_of_its_first_attempt() {
    let mut bench = Bench::new();
    // Stopped between the tag and the first thought: there is no text to continue.
    bench
        .script
        .answer([Step::Tag(1), Step::End(inference::StopReason::MaxTokens)]);
    let view = bench.ask(None, "How heavy?");
    bench.script.answer(THOUGHT);
    bench.chat.continue_answer(view.messages[1].id).unwrap();
    bench.until_ended();
    assert!(!bench.script.last_turn().resume);
    bench.ask(Some(view.chat.id), "Sure?");
    assert_eq!(
        bench.script.last_turn().history[1].ids.as_deref(),
        Some([1, 101, 2, 103].as_slice())
    );
}

#[test]
fn an_answer_goes_on_with_its_thoughts_though_the_model_cannot_think() {
    let mut bench = Bench::new();
    bench.script.answer([
        Step::Think("Hm."),
        Step::Say("Six "),
        Step::End(inference::StopReason::MaxTokens),
    ]);
    let answer = bench.ask(None, "How heavy?").messages[1].id;
    bench.script.cannot_think();
    bench
        .chat
        .open_model(ModelChoice::File("other.gguf".into()))
        .unwrap();
    bench.until_ready();
    bench.script.answer([Step::Say("grams.")]);
    bench.chat.continue_answer(answer).unwrap();
    let whole = bench.until_ended();
    assert_eq!(
        (&*whole.text(), whole.thinking().as_deref()),
        ("Six grams.", Some("Hm."))
    );
    let turn = bench.script.last_turn();
    assert_eq!(
        (turn.thinking, turn.history[1].thinking.as_deref()),
        (false, Some("Hm."))
    );
}

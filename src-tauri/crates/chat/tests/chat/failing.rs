//! State after failures of the model.

use std::sync::atomic::{AtomicBool, Ordering};

use chat::{ChatEvent, FailureCode, MessageState};
use store::Store;

use crate::scripted::{Bench, Script, Scripted, Step, open, texts};

#[test]
fn a_failure_keeps_the_partial_answer_and_says_why() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::Say("Six"), Step::Fail("out of memory")]);
    let view = bench.chat.send(None, "How heavy?", true).unwrap();
    let ended = bench.until_ended();
    assert_eq!((ended.state, &*ended.text()), (MessageState::Failed, "Six"));
    let error = ended.error.unwrap();
    assert_eq!(
        (error.code, error.message.as_str()),
        (FailureCode::Other, "out of memory")
    );

    let view = bench.chat.open_chat(view.chat.id).unwrap();
    assert_eq!(
        view.messages[1].error.as_ref().unwrap().message,
        "out of memory",
        "it was saved"
    );
    bench.script.answer([Step::Say(" grams.")]);
    bench.chat.continue_answer(view.messages[1].id).unwrap();
    let ended = bench.until_ended();
    assert_eq!((&*ended.text(), ended.error), ("Six grams.", None));
}

#[test]
fn a_failed_answer_without_text_is_no_part_of_the_history() {
    let mut bench = Bench::new();
    bench.script.answer([Step::Fail("out of memory")]);
    let chat = bench.chat.send(None, "One", true).unwrap().chat.id;
    bench.until_ended();
    bench.ask(Some(chat), "Two");
    let history = bench.script.last_turn().history;
    assert_eq!(
        history.iter().map(|m| m.text.as_str()).collect::<Vec<_>>(),
        ["One", "Two"]
    );
}

#[test]
fn a_panic_is_a_failure_and_the_model_is_opened_again() {
    let mut bench = Bench::new();
    bench.script.answer([Step::Say("Six"), Step::Panic]);
    let chat = bench.chat.send(None, "How heavy?", true).unwrap().chat.id;
    let ended = bench.until_ended();
    assert_eq!((ended.state, &*ended.text()), (MessageState::Failed, "Six"));
    let error = ended.error.unwrap();
    assert_eq!(error.code, FailureCode::Other);
    assert!(
        error.message.contains("the kernel broke"),
        "{}",
        error.message
    );

    bench.until(
        |event| matches!(event, ChatEvent::Model { model } if model.status.ready().is_some()),
    );
    assert_eq!(bench.script.opens().len(), 2);
    assert_eq!(texts(&bench.ask(Some(chat), "Again?"))[3], "Yes.");
}

#[test]
fn a_panic_after_stop_is_a_failure_too() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::Say("Six"), Step::Wait, Step::Panic]);
    let chat = bench.chat.send(None, "How heavy?", true).unwrap().chat.id;
    bench.until_delta();
    bench.chat.stop(chat).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Failed);
    bench.until_ready();
    assert_eq!(bench.script.opens().len(), 2);
}

#[test]
fn an_answer_that_waits_for_one_that_panics_gets_the_model_that_is_opened_again() {
    let mut bench = Bench::new();
    let go = bench.script.go();
    bench
        .script
        .answer([Step::Say("Six"), Step::Wait, Step::Panic]);
    let chat = bench.chat.send(None, "How heavy?", true).unwrap().chat.id;
    bench.until_delta();
    bench.chat.start_summary(chat).unwrap();
    go.send(()).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Failed);
    let summary = bench.until_ended();
    assert_eq!(
        (summary.state, &*summary.text()),
        (MessageState::Done, "Yes."),
        "{:?}",
        summary.error
    );
}

#[test]
fn an_answer_whose_job_comes_after_a_panic_gets_the_model_that_is_opened_again() {
    let mut bench = Bench::new();
    let stuck = bench.script.stuck();
    bench
        .script
        .answer([Step::Say("Six"), Step::Stuck, Step::Panic]);
    let first = bench.chat.send(None, "How heavy?", true).unwrap();
    bench.until_delta();
    let second = bench.chat.send(None, "Still there?", true).unwrap();
    drop(stuck);
    let ended = [bench.until_ended(), bench.until_ended()];
    let states = ended.map(|it| (it.id, it.state));
    assert_eq!(
        states,
        [
            (first.messages[1].id, MessageState::Failed),
            (second.messages[1].id, MessageState::Done)
        ]
    );
}

#[test]
fn a_panic_ends_all_answers_and_nothing_that_was_written_is_lost() {
    let mut bench = Bench::new();
    let (first, go) = bench.begin_first();
    bench
        .script
        .answer([Step::Say("Six"), Step::Wait, Step::Panic]);
    let second = bench.chat.send(None, "How heavy?", true).unwrap();
    bench.until_delta();
    drop(go);
    bench.chat.stop(second.chat.id).unwrap();
    for _ in 0..2 {
        assert_eq!(bench.until_ended().state, MessageState::Failed);
    }
    for (view, text) in [(first, "first"), (second, "Six")] {
        let shown = bench.chat.open_chat(view.chat.id).unwrap();
        assert_eq!(shown.messages[1].text(), text);
    }
    bench.until_ready();
    bench.ask(None, "Still there?");
}

#[test]
fn a_prompt_over_which_the_encoder_panics_fails_once() {
    let mut bench = Bench::new();
    bench.script.panic_at_prompts();
    bench.chat.send(None, "How heavy?", true).unwrap();
    let answer = bench.until_ended();
    assert_eq!(answer.state, MessageState::Failed);
    assert!(answer.error.unwrap().message.contains("the encoder broke"));
    bench.until_ready();
    assert_eq!(bench.script.opens().len(), 2);
}

#[test]
fn a_panic_while_a_model_is_opened_is_a_failure_too() {
    let mut bench = Bench::new();
    bench.script.panic_at_open();
    bench
        .chat
        .open_model(chat::ModelChoice::File("broken.gguf".into()))
        .unwrap();
    let failed = |event: &ChatEvent| matches!(event, ChatEvent::Model { model: status } if status.error.is_some());
    let Some(ChatEvent::Model { model: status }) = bench.until(failed).pop() else {
        panic!("no status")
    };
    assert_eq!(open(&status).name, "SmolLM2-135M-Instruct");
    assert!(status.error.unwrap().message.contains("the loader broke"));
    bench.ask(None, "Still there?");
}

#[test]
fn a_listener_that_panics_does_not_end_the_actor() {
    let first = AtomicBool::new(true);
    let on_event =
        Box::new(move |_| assert!(!first.swap(false, Ordering::Relaxed), "the window broke"));
    let generate = Box::new(Scripted::new(&Script::default()));
    let chat = chat::Chat::start(Store::in_memory().unwrap(), generate, on_event).unwrap();
    // The first event of opening the bundled model was emitted, or is now.
    let _ = chat.send(None, "Hello?", true);
    assert!(chat.snapshot().is_ok());
    assert!(chat.send(None, "Hello?", true).is_ok());
}

#[test]
fn a_failure_of_a_later_version_is_shown_with_its_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    let view = bench.ask(None, "How heavy?");
    let error = store::ErrorRow {
        code: "of-a-later-version".into(),
        message: "The scales are broken.".into(),
    };
    let elsewhere = Store::open(&path).unwrap();
    let answer = view.messages[1].id;
    let failed = MessageState::Failed;
    elsewhere
        .messages()
        .end(answer, failed, None, Some(&error))
        .unwrap();
    let view = bench.chat.open_chat(view.chat.id).unwrap();
    let shown = view.messages[1].error.as_ref().unwrap();
    assert_eq!(
        (shown.code, shown.message.as_str()),
        (FailureCode::Other, "The scales are broken.")
    );
}

//! The model is unloaded after an idle time, or at the user's request, and is reopened when it is needed.

use std::time::{Duration, Instant};

use chat::{
    ChatEvent, FailureCode, ModelChoice, ModelStatus, ModelView, Settings, Timing, UnopenedModel,
};
use store::Store;

use crate::scripted::{Bench, EVENT_TIMEOUT, Script, Step, TIMING, TODAY, open};

/// Length of a minute, short enough that a test waits for ten of them.
const MINUTE: Duration = Duration::from_millis(60);

fn mine() -> ModelChoice {
    ModelChoice::File("/models/mine.gguf".into())
}

fn model_until(bench: &mut Bench, wanted: impl Fn(&ModelView) -> bool) -> ModelView {
    let is_wanted =
        |event: &ChatEvent| matches!(event, ChatEvent::Model { model } if wanted(model));
    match bench.until(is_wanted).pop() {
        Some(ChatEvent::Model { model }) => model,
        other => panic!("{other:?}"),
    }
}

fn is_ejected(model: &ModelView) -> bool {
    matches!(model.status, ModelStatus::Ejected { .. })
}

fn until_ejected(bench: &mut Bench) -> ModelView {
    model_until(bench, is_ejected)
}

fn until_ready(bench: &mut Bench) -> ModelView {
    model_until(bench, |model| model.status.ready().is_some())
}

/// Waits until the model thread has closed a model, soon after the window's event.
fn until_closed(bench: &Bench, times: usize) {
    let begun = Instant::now();
    while bench.script.closes() < times && begun.elapsed() < EVENT_TIMEOUT {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(bench.script.closes(), times);
}

fn status(bench: &Bench) -> ModelStatus {
    bench.chat.snapshot().unwrap().model.status
}

/// Makes a bench whose model is a file, with a minute of this length.
fn with_mine(minute: Duration) -> Bench {
    let timing = Timing { minute, ..TIMING };
    let script = Script::default();
    let mut bench = Bench::timed(Store::in_memory().unwrap(), &script, TODAY, timing);
    until_ready(&mut bench);
    bench.chat.open_model(mine()).unwrap();
    assert_eq!(open(&until_ready(&mut bench)).name, "mine");
    bench
}

/// Makes a bench whose model is a file that was ejected.
fn with_mine_ejected() -> Bench {
    let mut bench = with_mine(TIMING.minute);
    bench.chat.eject_model().unwrap();
    until_ejected(&mut bench);
    bench
}

#[test]
fn a_model_that_is_not_used_is_unloaded_and_the_next_message_opens_it_again() {
    let mut bench = with_mine(MINUTE);
    let unloaded = until_ejected(&mut bench);
    let model = UnopenedModel {
        name: "mine".into(),
        file: Some("/models/mine.gguf".into()),
        bundled_model: false,
    };
    assert_eq!(unloaded.status, ModelStatus::Ejected { model });
    assert_eq!((unloaded.error, bench.script.opens().len()), (None, 2));

    bench.chat.send(None, "Hello?", true).unwrap();
    assert_eq!(bench.until_ended().text(), "Yes.");
    assert_eq!(open(&bench.chat.snapshot().unwrap().model).name, "mine");
    let opens = bench.script.opens();
    assert_eq!((opens.len(), &opens[2].0), (3, &mine()));
    assert_eq!(bench.script.closes(), 1);
    until_ejected(&mut bench);
    until_closed(&bench, 2);
}

#[test]
fn a_model_is_not_unloaded_while_an_answer_is_written() {
    let mut bench = with_mine(MINUTE);
    let go = bench.script.go();
    bench
        .script
        .answer([Step::Say("first"), Step::Sleep(400), Step::Wait]);
    bench.chat.send(None, "One", true).unwrap();
    bench.chat.send(None, "Two", true).unwrap();
    bench.until_delta();
    // Longer than the ten minutes.
    std::thread::sleep(MINUTE * 15);
    assert_eq!(bench.script.closes(), 0);
    let refused = bench.chat.eject_model().unwrap_err();
    assert!(refused.message.contains("Stop it first"), "{refused:?}");
    assert!(matches!(status(&bench), ModelStatus::Ready { .. }));
    assert_eq!(bench.until_ended().text(), "Yes.");
    go.send(()).unwrap();
    assert_eq!(bench.until_ended().text(), "first");
    until_ejected(&mut bench);
}

#[test]
fn a_model_stays_where_it_is_never_to_be_unloaded_and_the_bundled_model_always_does() {
    let mut bench = with_mine(MINUTE);
    let never = Settings {
        unload_minutes: None,
        ..Settings::default()
    };
    bench.chat.save_settings(never.clone()).unwrap();
    std::thread::sleep(MINUTE * 15);
    assert_eq!(bench.script.closes(), 0);

    // From now on the idle time counts from the last use.
    let one = Settings {
        unload_minutes: Some(1),
        ..never
    };
    bench.chat.save_settings(one).unwrap();
    until_ejected(&mut bench);

    bench.chat.open_model(ModelChoice::BundledModel).unwrap();
    until_ready(&mut bench);
    std::thread::sleep(MINUTE * 5);
    assert!(matches!(status(&bench), ModelStatus::Ready { .. }));
    assert_eq!(bench.script.closes(), 1);
}

#[test]
fn typing_keeps_a_model_and_loads_one_that_was_unloaded() {
    let mut bench = with_mine_ejected();
    bench.chat.save_draft(None, " \n").unwrap();
    assert!(matches!(status(&bench), ModelStatus::Ejected { .. }));
    bench.chat.save_draft(None, "Hel").unwrap();
    assert_eq!(open(&until_ready(&mut bench)).name, "mine");

    let mut bench = with_mine(MINUTE);
    for _ in 0..15 {
        bench.chat.save_draft(None, "Hello").unwrap();
        std::thread::sleep(MINUTE);
    }
    assert_eq!(bench.script.closes(), 0);
    until_ejected(&mut bench);
}

#[test]
fn a_model_is_ejected_and_reloaded_with_the_settings_of_that_moment() {
    let mut bench = with_mine_ejected();
    // There is nothing to eject twice.
    bench.chat.eject_model().unwrap();
    until_closed(&bench, 1);
    let settings = Settings {
        threads: Some(2),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    assert!(matches!(status(&bench), ModelStatus::Ejected { .. }));
    bench.chat.reload_model().unwrap();
    bench.chat.reload_model().unwrap();
    assert_eq!(open(&until_ready(&mut bench)).name, "mine");
    bench.chat.reload_model().unwrap();
    let opens = bench.script.opens();
    assert_eq!((opens.len(), opens[2].1.threads), (3, Some(2)));
}

#[test]
fn a_model_that_loads_is_not_ejected() {
    let mut bench = with_mine_ejected();
    let loaded = bench.script.slow_open();
    bench.chat.reload_model().unwrap();
    model_until(&mut bench, |model| model.status.is_opening());
    let refused = bench.chat.eject_model().unwrap_err();
    assert!(refused.message.contains("being loaded"), "{refused:?}");
    drop(loaded);
    until_ready(&mut bench);
}

#[test]
fn where_the_file_of_an_unloaded_model_is_gone_the_bundled_model_answers_with_the_reason() {
    let mut bench = with_mine_ejected();
    bench.script.refuse(mine());
    bench.chat.send(None, "Still there?", true).unwrap();
    assert_eq!(bench.until_ended().text(), "Yes.");
    let model = bench.chat.snapshot().unwrap().model;
    assert!(open(&model).bundled_model);
    assert!(model.error.unwrap().message.contains("mine.gguf"));
}

#[test]
fn without_any_model_to_load_again_the_message_fails_with_the_reason() {
    let mut bench = with_mine_ejected();
    bench.script.refuse(mine());
    bench.script.refuse(ModelChoice::BundledModel);
    bench.chat.send(None, "Still there?", true).unwrap();
    let failure = bench.until_ended().error.unwrap();
    assert!(failure.message.contains("mine.gguf"), "{failure:?}");
    assert_eq!(status(&bench), ModelStatus::None);
    assert_eq!(bench.script.opens().len(), 4, "each was tried once");
}

#[test]
fn a_file_that_was_replaced_while_it_was_not_loaded_is_opened_with_a_word_about_it() {
    let mut bench = with_mine_ejected();
    bench.script.fingerprint("another");
    bench.chat.send(None, "Who are you?", true).unwrap();
    assert_eq!(bench.until_ended().text(), "Yes.");
    let error = bench.chat.snapshot().unwrap().model.error.unwrap();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            FailureCode::Other,
            "mine.gguf was replaced since it was last opened: it is another model now."
        )
    );
    // Reported once.
    bench.chat.eject_model().unwrap();
    bench.chat.reload_model().unwrap();
    assert_eq!(until_ready(&mut bench).error, None);
}

#[test]
fn another_model_takes_the_place_of_an_unloaded_one_where_it_opens() {
    let mut bench = with_mine_ejected();
    let other = ModelChoice::File("/models/other.gguf".into());
    bench.script.refuse(other.clone());
    bench.chat.open_model(other).unwrap();
    let failed = until_ejected(&mut bench);
    assert!(failed.error.unwrap().message.contains("other.gguf"));
    bench
        .chat
        .open_model(ModelChoice::File("/models/good.gguf".into()))
        .unwrap();
    assert_eq!(open(&until_ready(&mut bench)).name, "good");
    bench.chat.reload_model().unwrap();
    assert_eq!(open(&bench.chat.snapshot().unwrap().model).name, "good");
}

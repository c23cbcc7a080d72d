//! Opening of models, and requests that wait meanwhile.

use std::path::PathBuf;

use chat::{
    AtEnd, ChatEvent, FailureCode, MessageState, ModelChoice, ModelStatus, ModelView, Settings,
    UnopenedModel,
};
use store::Store;

use crate::scripted::{Bench, Script, Step, TODAY, open};

pub fn file(name: &str) -> ModelChoice {
    ModelChoice::File(name.into())
}

pub fn settled(bench: &mut Bench) -> ModelView {
    let settled = |event: &ChatEvent| matches!(event, ChatEvent::Model { model } if !model.status.is_opening());
    match bench.until(settled).pop() {
        Some(ChatEvent::Model { model }) => model,
        other => panic!("{other:?}"),
    }
}

fn is_half_loaded(model: &ModelView) -> bool {
    matches!(model.status, ModelStatus::Loading { progress: 0.5, .. })
}

fn has_failed(model: &ModelView) -> bool {
    model.status == ModelStatus::None && model.error.is_some()
}

/// Makes a file, and a bench over it whose model is the user's.
pub fn with_mine() -> (tempfile::TempDir, PathBuf, Bench) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    bench.chat.open_model(file("mine.gguf")).unwrap();
    assert_eq!(open(&settled(&mut bench)).name, "mine");
    (folder, path, bench)
}

#[test]
fn what_is_sent_while_the_model_loads_is_answered_when_it_is_there() {
    let script = Script::default();
    let loaded = script.slow_open();
    let mut bench = Bench::start(Store::in_memory().unwrap(), &script, TODAY);
    let progress =
        |event: &ChatEvent| matches!(event, ChatEvent::Model { model } if is_half_loaded(model));
    let events = bench.until(progress);
    let checking = |event: &ChatEvent| matches!(event, ChatEvent::Model { model } if matches!(model.status, ModelStatus::Checking { .. }));
    assert!(events.iter().any(checking));
    assert!(is_half_loaded(&bench.chat.snapshot().unwrap().model));
    let first = bench.chat.send(None, "One", true).unwrap();
    bench.chat.send(None, "Two", true).unwrap();
    assert!(first.chat.writing);
    drop(loaded);
    assert_eq!(bench.until_ended().id, first.messages[1].id);
    assert_eq!(bench.until_ended().state, MessageState::Done);
}

#[test]
fn a_model_that_does_not_open_leaves_the_present_one() {
    let mut bench = Bench::new();
    bench.script.refuse(file("bad.gguf"));
    bench.chat.open_model(file("bad.gguf")).unwrap();
    let status = settled(&mut bench);
    assert_eq!(open(&status).name, "SmolLM2-135M-Instruct");
    assert_eq!(status.error.unwrap().code, FailureCode::BadModel);
    bench.ask(None, "Still there?");

    bench.chat.open_model(file("good.gguf")).unwrap();
    let status = settled(&mut bench);
    assert_eq!(
        (
            open(&status).name.as_str(),
            open(&status).bundled_model,
            status.error.clone()
        ),
        ("good", false, None)
    );
}

#[test]
fn running_answers_end_before_another_model_opens_and_later_ones_get_the_new_one() {
    let mut bench = Bench::new();
    let go = bench.script.go();
    bench.script.answer([Step::Say("old"), Step::Wait]);
    bench.chat.send(None, "One", true).unwrap();
    bench.until_delta();
    bench.script.answer([Step::Say("old too"), Step::Wait]);
    bench.chat.send(None, "Two", true).unwrap();
    bench.until_delta();
    bench.chat.open_model(file("new.gguf")).unwrap();
    bench.chat.send(None, "Three", true).unwrap();
    go.send(()).unwrap();
    let first = bench.until_ended().text();
    assert_eq!(bench.script.opens().len(), 1);
    assert_eq!(bench.script.turns().len(), 2, "the third one waits");
    go.send(()).unwrap();
    let mut ended = [first, bench.until_ended().text()];
    ended.sort();
    assert_eq!(ended, ["old", "old too"]);
    assert_eq!(open(&settled(&mut bench)).name, "new");
    assert_eq!(bench.until_ended().text(), "Yes.");
}

#[test]
fn of_several_models_asked_for_the_last_one_is_opened() {
    let mut bench = Bench::new();
    let loaded = bench.script.slow_open();
    bench.chat.open_model(file("a.gguf")).unwrap();
    let progress =
        |event: &ChatEvent| matches!(event, ChatEvent::Model { model } if is_half_loaded(model));
    bench.until(progress);
    bench.chat.open_model(file("b.gguf")).unwrap();
    bench.chat.open_model(file("c.gguf")).unwrap();
    let shown = bench.chat.snapshot().unwrap().model;
    let model = UnopenedModel {
        name: "a".into(),
        file: Some("a.gguf".into()),
        bundled_model: false,
    };
    let progress = 0.5;
    assert_eq!(
        shown.status,
        ModelStatus::Loading { model, progress },
        "it is still being opened"
    );
    drop(loaded);
    assert_eq!(open(&settled(&mut bench)).name, "c");
    assert_eq!(bench.script.opens().len(), 3, "the bundled model, a and c");
}

#[test]
fn the_choice_is_remembered_and_a_lost_file_falls_back_to_the_bundled_model() {
    let (_folder, path, mut bench) = with_mine();
    bench.script.refuse(file("bad.gguf"));
    bench.chat.open_model(file("bad.gguf")).unwrap();
    settled(&mut bench);
    bench.chat.shutdown();

    let mut bench = Bench::on_file(&path, &Script::default());
    assert_eq!(
        open(&settled(&mut bench)).name,
        "mine",
        "one that did not open is not remembered"
    );
    bench.chat.shutdown();

    let script = Script::default();
    script.refuse(file("mine.gguf"));
    let mut bench = Bench::on_file(&path, &script);
    let status = settled(&mut bench);
    assert!(open(&status).bundled_model);
    assert!(status.error.unwrap().message.contains("mine.gguf"));
    bench.chat.shutdown();

    let mut bench = Bench::on_file(&path, &Script::default());
    assert_eq!(
        open(&settled(&mut bench)).name,
        "mine",
        "it may be back another day"
    );
}

#[test]
fn without_any_model_an_answer_fails_and_the_message_stays() {
    let script = Script::default();
    script.refuse(ModelChoice::BundledModel);
    let mut bench = Bench::start(Store::in_memory().unwrap(), &script, TODAY);
    let view = bench.chat.send(None, "Hello?", true).unwrap();
    let ended = bench.until_ended();
    let error = ended.error.unwrap();
    assert_eq!(error.code, FailureCode::Other);
    assert!(
        error.message.contains("BundledModel is not a model"),
        "it says why there is none: {}",
        error.message
    );
    assert!(has_failed(&bench.chat.snapshot().unwrap().model));

    bench.chat.open_model(file("good.gguf")).unwrap();
    bench.until_ready();
    bench.chat.continue_answer(view.messages[1].id).unwrap();
    assert_eq!(
        bench.until_ended().text(),
        "Yes.",
        "the same answer, tried again"
    );
}

#[test]
fn settings_of_the_model_reopen_it_and_others_do_not() {
    let mut bench = Bench::new();
    let settings = Settings {
        show_stats: true,
        ..Settings::default()
    };
    bench.chat.save_settings(settings.clone()).unwrap();
    let settings = Settings {
        threads: Some(2),
        device: "cpu".into(),
        ..settings
    };
    bench.chat.save_settings(settings).unwrap();
    assert_eq!(open(&settled(&mut bench)).name, "SmolLM2-135M-Instruct");
    let opens = bench.script.opens();
    assert_eq!(opens.len(), 2);
    assert_eq!(opens[1].0, ModelChoice::BundledModel);
    assert_eq!(
        (opens[1].1.threads, opens[1].1.device.as_str()),
        (Some(2), "cpu")
    );
}

#[test]
fn other_settings_try_again_a_model_that_did_not_open() {
    let script = Script::default();
    script.refuse(ModelChoice::BundledModel);
    let mut bench = Bench::start(Store::in_memory().unwrap(), &script, TODAY);
    assert!(has_failed(&settled(&mut bench)));
    let settings = Settings {
        device: "cpu".into(),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    assert!(has_failed(&settled(&mut bench)));
    assert_eq!(script.opens()[1].1.device, "cpu");
}

#[test]
fn names_that_files_give_themselves_have_an_end() {
    let script = Script::default();
    script.name(&"ü".repeat(100_000));
    let mut bench = Bench::start(Store::in_memory().unwrap(), &script, TODAY);
    bench.chat.open_model(file("long.gguf")).unwrap();
    let named = |event: &ChatEvent| matches!(event, ChatEvent::Model { model } if model.status.ready().is_some());
    let Some(ChatEvent::Model { model: status }) = bench.until(named).pop() else {
        panic!("no status")
    };
    let cut = format!("{}…", "ü".repeat(200));
    assert_eq!(open(&status).name, cut);
    let answer = bench.ask(None, "Hello?").messages.pop().unwrap();
    assert_eq!(answer.stats.unwrap().model, cut);
    assert_eq!(open(&bench.chat.snapshot().unwrap().model).name, cut);

    let failure = chat::Failure::new(FailureCode::BadModel, "x".repeat(3_000_000));
    assert!(failure.message.len() < 11_000);
}

#[test]
fn the_window_learns_that_an_answer_went_over_to_another_device() {
    let mut bench = Bench::new();
    bench.script.moves();
    bench.chat.send(None, "How heavy?", true).unwrap();
    let moved = |event: &ChatEvent| {
        matches!(event, ChatEvent::Model { model: status }
            if status.status.ready().is_some_and(|info| info.device.reason == "The GPU failed."))
    };
    bench.until(moved);
    let device = open(&bench.chat.snapshot().unwrap().model).device.clone();
    assert_eq!(device.reason, "The GPU failed.");
}

/// Waits until a model is half open.
fn half_open(bench: &mut Bench) {
    bench.until(|event| matches!(event, ChatEvent::Model { model } if is_half_loaded(model)));
}

#[test]
fn settings_that_change_while_a_model_opens_open_it_again() {
    let mut bench = Bench::new();
    let loaded = bench.script.slow_open();
    bench.chat.open_model(file("a.gguf")).unwrap();
    half_open(&mut bench);
    let settings = Settings {
        threads: Some(2),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    drop(loaded);
    bench.until_ready();
    let opens = bench.script.opens();
    let last = opens.last().unwrap();
    assert_eq!((&last.0, last.1.threads), (&file("a.gguf"), Some(2)));
    // The user requested it both times.
    assert_eq!(opens.len(), 3);
}

#[test]
fn settings_that_change_while_another_model_waits_leave_that_one_to_come() {
    let mut bench = Bench::new();
    let loaded = bench.script.slow_open();
    bench.chat.open_model(file("a.gguf")).unwrap();
    half_open(&mut bench);
    bench.chat.open_model(file("b.gguf")).unwrap();
    let settings = Settings {
        threads: Some(2),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    drop(loaded);
    assert_eq!(open(&settled(&mut bench)).name, "b");
    let opens = bench.script.opens();
    assert_eq!(opens.len(), 3, "the bundled model, a and b");
    assert_eq!(opens[2].1.threads, Some(2));
}

#[test]
fn a_model_picked_while_the_remembered_one_fails_is_opened_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let remembered = serde_json::to_value(file("lost.gguf")).unwrap();
    store.settings().set("app.model", &remembered).unwrap();
    let script = Script::default();
    script.refuse(file("lost.gguf"));
    let loaded = script.slow_open();
    let mut bench = Bench::start(store, &script, TODAY);
    half_open(&mut bench);
    bench.chat.open_model(file("good.gguf")).unwrap();
    drop(loaded);
    assert_eq!(open(&settled(&mut bench)).name, "good");
    let opened: Vec<_> = script
        .opens()
        .into_iter()
        .map(|(choice, _)| choice)
        .collect();
    assert_eq!(opened, [file("lost.gguf"), file("good.gguf")]);
}

#[test]
fn a_remembered_model_that_makes_no_sense_gives_way_to_the_bundled_model() {
    let store = Store::in_memory().unwrap();
    let nonsense = serde_json::json!({ "cloud": "big" });
    store.settings().set("app.model", &nonsense).unwrap();
    let mut bench = Bench::start(store, &Script::default(), TODAY);
    let status = settled(&mut bench);
    assert!(open(&status).bundled_model);
}

#[test]
fn the_bundled_model_is_remembered_under_its_name_in_earlier_versions() {
    let earlier = serde_json::from_str::<ModelChoice>("\"demomodel\"").unwrap();
    assert_eq!(earlier, ModelChoice::BundledModel);
}

#[test]
fn without_any_model_all_answers_that_wait_fail() {
    let script = Script::default();
    script.refuse(ModelChoice::BundledModel);
    let loaded = script.slow_open();
    let mut bench = Bench::start(Store::in_memory().unwrap(), &script, TODAY);
    half_open(&mut bench);
    for text in ["One", "Two", "Three"] {
        bench.chat.send(None, text, true).unwrap();
    }
    drop(loaded);
    for _ in 0..3 {
        let ended = bench.until_ended();
        assert_eq!(ended.error.unwrap().code, FailureCode::Other);
    }
}

#[test]
fn an_old_failure_is_not_shown_while_another_model_opens() {
    let mut bench = Bench::new();
    bench.script.refuse(file("bad.gguf"));
    bench.chat.open_model(file("bad.gguf")).unwrap();
    assert!(settled(&mut bench).error.is_some());
    bench.chat.open_model(file("good.gguf")).unwrap();
    loop {
        let Some(ChatEvent::Model { model: status }) = bench
            .until(|event| matches!(event, ChatEvent::Model { .. }))
            .pop()
        else {
            panic!("no status")
        };
        assert_eq!(status.error, None);
        if status.status.ready().is_some() {
            break;
        }
    }
}

#[test]
fn a_model_over_which_the_app_crashed_is_opened_only_when_it_is_asked_for() {
    let (_folder, path, bench) = with_mine();
    bench.chat.shutdown();

    let script = Script::default();
    script.crashed(file("mine.gguf"));
    let mut bench = Bench::on_file(&path, &script);
    let status = settled(&mut bench);
    assert!(open(&status).bundled_model);
    assert_eq!(status.error.unwrap().code, FailureCode::Crashed);
    bench.ask(None, "Still there?");
    // Other settings reopen the present model, and not the one that crashed.
    let settings = Settings {
        device: "cpu".into(),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    assert!(open(&settled(&mut bench)).bundled_model);
    assert!(
        !script
            .opens()
            .iter()
            .any(|(choice, _)| *choice == file("mine.gguf"))
    );

    bench.chat.retry_model().unwrap();
    let status = settled(&mut bench);
    assert_eq!((&*open(&status).name, status.error.clone()), ("mine", None));
    bench.chat.shutdown();

    // If even the bundled model is one of them, there is a window without a model.
    let script = Script::default();
    script.crashed(file("mine.gguf"));
    script.crashed(ModelChoice::BundledModel);
    let mut bench = Bench::on_file(&path, &script);
    let status = settled(&mut bench);
    assert!(has_failed(&status));
    assert!(status.error.unwrap().message.contains("mine.gguf"));
    assert!(script.opens().is_empty());
    bench.chat.retry_model().unwrap();
    assert_eq!(open(&settled(&mut bench)).name, "mine");
}

fn choices(script: &Script) -> Vec<ModelChoice> {
    script
        .opens()
        .into_iter()
        .map(|(choice, _)| choice)
        .collect()
}

#[test]
fn a_model_given_at_the_start_is_opened_in_place_of_the_last_one_and_remembered() {
    let (_folder, path, bench) = with_mine();
    bench.chat.shutdown();
    let script = Script::default();
    let mut bench = Bench::given(&path, &script, file("given.gguf"));
    let status = settled(&mut bench);
    assert_eq!(
        (&*open(&status).name, status.error.clone()),
        ("given", None)
    );
    assert_eq!(choices(&script), [file("given.gguf")], "no other is loaded");
    bench.chat.shutdown();

    let mut bench = Bench::on_file(&path, &Script::default());
    assert_eq!(open(&settled(&mut bench)).name, "given");
}

#[test]
fn where_a_model_given_at_the_start_does_not_open_the_last_one_is_there_with_the_reason() {
    let (_folder, path, bench) = with_mine();
    bench.chat.shutdown();
    let script = Script::default();
    script.refuse(file("bad.gguf"));
    let mut bench = Bench::given(&path, &script, file("bad.gguf"));
    let status = settled(&mut bench);
    assert_eq!(open(&status).name, "mine");
    assert!(status.error.unwrap().message.contains("bad.gguf"));
    bench.chat.shutdown();

    // Neither of them opens, or they are the same: the bundled model is open, and mine is still remembered.
    for given in ["bad.gguf", "mine.gguf"] {
        let script = Script::default();
        script.refuse(file("bad.gguf"));
        script.refuse(file("mine.gguf"));
        let mut bench = Bench::given(&path, &script, file(given));
        let status = settled(&mut bench);
        assert!(open(&status).bundled_model);
        assert!(status.error.unwrap().message.contains(given));
        bench.chat.shutdown();
    }
    let mut bench = Bench::on_file(&path, &Script::default());
    assert_eq!(open(&settled(&mut bench)).name, "mine");
}

#[test]
fn a_model_that_crashed_the_app_is_opened_where_it_is_given_at_the_start() {
    let (_folder, path, bench) = with_mine();
    bench.chat.shutdown();
    let script = Script::default();
    script.crashed(file("mine.gguf"));
    let mut bench = Bench::given(&path, &script, file("mine.gguf"));
    let status = settled(&mut bench);
    assert_eq!((&*open(&status).name, status.error.clone()), ("mine", None));
}

#[test]
fn closing_tells_what_the_model_was_doing() {
    assert_eq!(Bench::new().chat.shutdown(), AtEnd::Stopped);

    let script = Script::default();
    let loaded = script.slow_open();
    let bench = Bench::start(Store::in_memory().unwrap(), &script, TODAY);
    bench.chat.snapshot().unwrap();
    assert_eq!(bench.chat.shutdown(), AtEnd::Opening);
    drop(loaded);

    let mut bench = Bench::new();
    bench.script.answer([Step::Say("One"), Step::Sleep(8_000)]);
    bench.chat.send(None, "Hello?", true).unwrap();
    bench.until_delta();
    assert_eq!(bench.chat.shutdown(), AtEnd::Stuck);
}

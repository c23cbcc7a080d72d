//! Requests of other programs.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use chat::{
    ApiEvent, ApiPrompt, ApiRequest, Chat, ChatEvent, Failure, FailureCode, ModelChoice,
    ModelStatus, SamplingSettings, Timing,
};
use inference::{Conversation, Event, Finished, Role, Signals, StopReason, ToolDefinition, Turn};
use serde_json::json;
use store::Store;

use crate::scripted::{Bench, EVENT_TIMEOUT, LONGEST_TOKEN, Script, Step, TIMING, TODAY};

/// Progress of a request.
#[derive(Debug)]
enum ApiProgress {
    Begun(String),
    Said(String),
    Ended(Result<Finished, Failure>),
}

fn conversation(text: &str, thinking: bool) -> ApiPrompt {
    ApiPrompt::Conversation(Conversation {
        messages: vec![Turn::new(Role::User, text)],
        instructions: None,
        tools: Arc::default(),
        thinking,
        today: jiff::civil::date(2026, 11, 28),
    })
}

/// Asks as another program. Returns the progress, and the flags.
fn ask(chat: &Chat, prompt: ApiPrompt) -> (Receiver<ApiProgress>, Signals) {
    let signals = Signals::default();
    let request = ApiRequest {
        prompt,
        sampling: SamplingSettings {
            temperature: Some(0.25),
            ..SamplingSettings::default()
        },
        max_tokens: Some(33),
        thinking_budget: Some(44),
        constraint: None,
        logprobs: None,
        signals: signals.clone(),
    };
    let (sender, progress) = channel();
    let listener = move |event: ApiEvent<'_>| {
        let event = match event {
            ApiEvent::Begun(info, _) => ApiProgress::Begun(info.name.clone()),
            ApiEvent::Generated(Event::Token { piece, .. }) => ApiProgress::Said(piece.to_owned()),
            ApiEvent::Generated(_) => return,
            ApiEvent::Ended(result) => ApiProgress::Ended(result),
        };
        let _ = sender.send(event);
    };
    chat.answer_program(request, Box::new(listener));
    (progress, signals)
}

/// Returns the text and the end of a request. Nothing comes after the end.
fn ended(progress: &Receiver<ApiProgress>) -> (String, Result<StopReason, FailureCode>) {
    let mut text = String::new();
    loop {
        match progress.recv_timeout(EVENT_TIMEOUT).expect("an end") {
            ApiProgress::Begun(_) => {}
            ApiProgress::Said(piece) => text.push_str(&piece),
            ApiProgress::Ended(result) => {
                let left = progress.recv_timeout(Duration::from_secs(1));
                assert!(left.is_err(), "{left:?}");
                let result = result.map(|it| it.reason).map_err(|it| it.code);
                return (text, result);
            }
        }
    }
}

fn next(progress: &Receiver<ApiProgress>) -> ApiProgress {
    progress.recv_timeout(EVENT_TIMEOUT).expect("progress")
}

#[test]
fn a_program_is_answered_with_its_parameters_and_nothing_is_stored() {
    let bench = Bench::new();
    let (progress, _) = ask(&bench.chat, conversation("Hi", true));
    assert!(matches!(next(&progress), ApiProgress::Begun(name) if !name.is_empty()));
    let (text, reason) = ended(&progress);
    assert_eq!((text.as_str(), reason), ("Yes.", Ok(StopReason::EndOfTurn)));
    let turn = bench.script.last_turn();
    assert_eq!(
        (turn.max_tokens, turn.thinking_budget),
        (Some(33), Some(44))
    );
    assert_eq!(turn.sampling.temperature, 0.25);
    assert!(turn.thinking);
    let snapshot = bench.chat.snapshot().unwrap();
    assert!(snapshot.chats.is_empty());
}

#[test]
fn a_model_that_cannot_think_is_not_asked_to() {
    let script = Script::default();
    script.cannot_think();
    let bench = Bench::scripted(&script);
    let (progress, _) = ask(&bench.chat, conversation("Hi", true));
    assert_eq!(ended(&progress).0, "Yes.");
    assert!(!bench.script.last_turn().thinking);
}

#[test]
fn a_program_that_goes_away_ends_its_answer_alone() {
    let mut bench = Bench::new();
    let go = bench.script.go();
    bench.script.answer([Step::Say("first"), Step::Wait]);
    let (progress, signals) = ask(&bench.chat, conversation("Hi", false));
    while !matches!(next(&progress), ApiProgress::Said(_)) {}
    bench.chat.send(None, "One", false).unwrap();
    signals.cancel();
    assert_eq!(ended(&progress).1, Ok(StopReason::Cancelled));
    assert_eq!(bench.until_ended().text(), "Yes.");
    drop(go);
}

#[test]
fn requests_wait_for_a_model_that_is_opened() {
    let script = Script::default();
    let opens = script.slow_open();
    let bench = Bench::start(Store::in_memory().unwrap(), &script, TODAY);
    let (progress, _) = ask(&bench.chat, conversation("Hi", false));
    assert!(progress.recv_timeout(Duration::from_millis(100)).is_err());
    let served = bench.chat.served_model().unwrap().expect("it is named");
    assert!(served.info.is_none() && !served.name.is_empty());
    drop(opens);
    assert_eq!(ended(&progress).0, "Yes.");
}

#[test]
fn an_unloaded_model_is_opened_again_and_stays_while_it_answers() {
    let minute = Duration::from_millis(30);
    let timing = Timing { minute, ..TIMING };
    let store = Store::in_memory().unwrap();
    let mut bench = Bench::timed(store, &Script::default(), TODAY, timing);
    bench.until_ready();
    let mine = ModelChoice::File("/models/mine.gguf".into());
    bench.chat.open_model(mine).unwrap();
    let is_ejected = |event: &ChatEvent| matches!(event, ChatEvent::Model { model } if matches!(model.status, ModelStatus::Ejected { .. }));
    bench.until(is_ejected);
    bench.script.answer([Step::Say("a"), Step::Sleep(600)]);
    let (progress, _) = ask(&bench.chat, conversation("Hi", false));
    assert!(matches!(next(&progress), ApiProgress::Begun(name) if name == "mine"));
    assert_eq!(
        ended(&progress),
        ("a".to_owned(), Ok(StopReason::EndOfTurn))
    );
    assert_eq!(bench.script.closes(), 1, "not while it answered");
    bench.until(is_ejected);
}

#[test]
fn a_model_that_goes_ends_its_answers_with_the_reason() {
    let mut bench = Bench::new();
    let _go = bench.script.go();
    bench.script.answer([Step::Say("a"), Step::Wait]);
    let (progress, _) = ask(&bench.chat, conversation("Hi", false));
    while !matches!(next(&progress), ApiProgress::Said(_)) {}
    bench.chat.eject_model().unwrap();
    assert_eq!(ended(&progress).1, Err(FailureCode::NoModel));

    bench.chat.reload_model().unwrap();
    bench.until_ready();
    bench.script.answer([Step::Panic]);
    let (progress, _) = ask(&bench.chat, conversation("Hi", false));
    assert!(ended(&progress).1.is_err());
    bench.until_ready();
    let (progress, _) = ask(&bench.chat, conversation("Hi", false));
    assert_eq!(ended(&progress).0, "Yes.");

    bench.script.answer([Step::Say("a"), Step::Wait]);
    let (progress, _) = ask(&bench.chat, conversation("Hi", false));
    while !matches!(next(&progress), ApiProgress::Said(_)) {}
    bench.chat.shutdown();
    assert_eq!(ended(&progress).1, Err(FailureCode::NoModel));
    let (progress, _) = ask(&bench.chat, conversation("Hi", false));
    assert_eq!(ended(&progress).1, Err(FailureCode::NoModel));
}

#[test]
fn a_prompt_that_is_too_long_with_all_its_parts_is_refused_unread() {
    let bench = Bench::new();
    let ask_with = |instructions: &str, description: &str| {
        let mut prompt = conversation("Hi", false);
        if let ApiPrompt::Conversation(conversation) = &mut prompt {
            conversation.instructions = Some(instructions.to_owned());
            conversation.tools = [ToolDefinition {
                name: "weigh".to_owned(),
                description: description.to_owned(),
                parameters: json!({ "type": "object" }),
                code: None,
            }]
            .into();
        }
        ended(&ask(&bench.chat, prompt).0).1
    };
    // The context has 4,096 tokens. In many bytes, in many words, and in both.
    let (bytes, words) = ("x".repeat(4097 * LONGEST_TOKEN), "word ".repeat(20_000));
    for (instructions, description) in [(&*bytes, ""), ("", &*bytes), (&*words, ""), ("", &*words)]
    {
        let refused = ask_with(instructions, description);
        assert_eq!(refused, Err(FailureCode::TooLong));
    }
    assert!(bench.script.prompted().is_empty());
    let few = format!("{} ", "x".repeat(250)).repeat(200);
    assert_eq!(ask_with(&few, &few), Ok(StopReason::EndOfTurn));
}

#[test]
fn programs_that_went_away_delay_no_other() {
    let bench = Bench::new();
    let slow = (0..60).flat_map(|_| [Step::Say("a"), Step::Sleep(20)]);
    bench.script.answer(slow.collect::<Vec<_>>());
    let (first, _) = ask(&bench.chat, conversation("One", false));
    while !matches!(next(&first), ApiProgress::Said(_)) {}
    for _ in 0..30 {
        let (_, signals) = ask(&bench.chat, conversation("Two", false));
        signals.cancel();
    }
    let (last, _) = ask(&bench.chat, conversation("Three", false));
    assert!(matches!(next(&last), ApiProgress::Begun(_)));
    let said = first.try_iter();
    let said = said.filter(|it| matches!(it, ApiProgress::Said(_))).count();
    assert!(said < 15, "{said} tokens of the first answer meanwhile");
}

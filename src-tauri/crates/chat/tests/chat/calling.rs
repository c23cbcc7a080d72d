//! Calls of tools: the rounds of an answer, and the user's consent.

use std::time::{Duration, Instant};

use chat::{CallStatus, ChatEvent, ChatPreset, Consent, MessageState, Part, Settings, ToolOutcome};
use inference::{Constraint, Role, StopReason};
use serde_json::json;
use tools::Effects;

use crate::importing::chats;
use crate::scripted::{Bench, EVENT_TIMEOUT, Step};
use crate::tool_bench::{CHANGES, Tools, bench, kinds, pure, results, turn_on, until_asked};

#[test]
fn an_answer_calls_a_tool_and_goes_on_with_its_result() {
    let (tools, mut bench) = pure(&["echo"]);
    let call = Step::Call("echo", r#"{"text": "Six grams"}"#);
    bench.script.answer([
        Step::Think("Hm."),
        Step::Tag(2),
        Step::Say("I look. "),
        call,
    ]);
    bench
        .script
        .answer([Step::Think("So."), Step::Tag(2), Step::Say("Six.")]);
    bench.chat.send(None, "How heavy?", true).unwrap();
    let answer = bench.until_ended();
    assert_eq!(answer.state, MessageState::Done);
    let expected = ["thinking", "text", "call", "result", "thinking", "text"];
    assert_eq!(kinds(&answer), expected);
    assert_eq!(
        results(&answer),
        [("Six grams".to_owned(), ToolOutcome::Done)]
    );
    assert!(answer.calls.is_empty());
    assert_eq!(tools.runs(), 1);
    // The second prompt is the first one, what the model wrote in its own ids, and the result.
    let turns = bench.script.turns();
    assert_eq!(turns[0].tools, ["echo"]);
    let roles: Vec<_> = turns[1].history.iter().map(|turn| turn.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(turns[1].history[1].ids, Some(vec![100, 2, 102, 103]));
    assert_eq!(turns[1].history[1].calls.len(), 1);
    assert_eq!(turns[1].history[2].text, "Six grams");
    assert!(!turns[1].resume);
    // As does a later one.
    let chat = bench.chat.snapshot().unwrap().chats[0].id;
    bench.ask(Some(chat), "And?");
    let history = bench.script.last_turn().history;
    let ids: Vec<_> = history.iter().map(|turn| turn.ids.clone()).collect();
    let expected = [
        None,
        Some(vec![100, 2, 102, 103]),
        None,
        Some(vec![100, 2, 102]),
        None,
    ];
    assert_eq!(ids, expected);
}

#[test]
fn the_window_can_follow_an_answer_through_its_rounds() {
    let (_, mut bench) = pure(&["echo"]);
    bench
        .script
        .answer([Step::Say("I look."), Step::Call("echo", r#"{"text": "6"}"#)]);
    bench.script.answer([Step::Say("Six.")]);
    bench.chat.send(None, "How heavy?", false).unwrap();
    let events = bench.until(|event| matches!(event, ChatEvent::Ended { .. }));
    let (mut shown, mut seq) = (chat::Parts::default(), 0);
    for event in events {
        match event {
            ChatEvent::Delta {
                seq: next, parts, ..
            } => {
                seq += 1;
                assert_eq!(next, seq, "no delta is missing");
                for part in parts.0 {
                    match part {
                        Part::Text { text } => shown.push_text(&text),
                        part => shown.0.push(part),
                    }
                }
            }
            ChatEvent::Called { message, .. } => {
                (shown, seq) = (message.parts, message.seq);
            }
            ChatEvent::Ended { message, .. } => assert_eq!(shown, message.parts),
            _ => {}
        }
    }
    assert!(shown.has_text());
}

#[test]
fn a_tool_with_effects_asks_and_the_answer_may_last() {
    let tools = Tools::new();
    tools.add("write", CHANGES, None);
    let mut bench = bench(&tools, &["write"]);
    let call = |text| Step::Call("write", text);
    let send = |bench: &mut Bench, chat| {
        bench.script.answer([call(r#"{"text": "a"}"#)]);
        bench.chat.send(chat, "Write.", false).unwrap();
    };
    send(&mut bench, None);
    let (chat, message, asked) = until_asked(&mut bench);
    assert_eq!(
        (asked.tool.title.as_str(), asked.asks_because),
        ("WRITE", None)
    );
    assert_eq!(tools.runs(), 0);
    assert!(bench.chat.open_chat(chat).unwrap().chat.writing);
    let shown = bench.chat.open_chat(chat).unwrap().messages.pop().unwrap();
    assert_eq!(shown.calls.len(), 1, "another window would see it, too");
    bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Once)
        .unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Done);
    assert_eq!(tools.runs(), 1);
    let again = bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Once);
    assert!(again.is_err(), "it has run");

    // It is asked again, and then not in this chat.
    send(&mut bench, Some(chat));
    let (_, message, asked) = until_asked(&mut bench);
    bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::InChat)
        .unwrap();
    bench.until_ended();
    send(&mut bench, Some(chat));
    bench.until_ended();
    assert_eq!(tools.runs(), 3);

    // In another chat it asks, and then nowhere any more.
    send(&mut bench, None);
    let (_, message, asked) = until_asked(&mut bench);
    bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Always)
        .unwrap();
    bench.until_ended();
    send(&mut bench, None);
    bench.until_ended();
    assert_eq!(tools.runs(), 5);
    let settings = bench.chat.snapshot().unwrap().settings;
    assert_eq!(settings.allowed_tools[0].title, "WRITE");
    let none = Settings {
        allowed_tools: Vec::new(),
        ..settings
    };
    bench.chat.save_settings(none).unwrap();
    send(&mut bench, None);
    until_asked(&mut bench);
}

#[test]
fn a_denied_call_is_not_run_and_the_model_learns_why() {
    let tools = Tools::new();
    tools.add("write", CHANGES, None);
    let mut bench = bench(&tools, &["write"]);
    bench.script.answer([Step::Call("write", "{}")]);
    bench.chat.send(None, "Write.", false).unwrap();
    let (_, message, asked) = until_asked(&mut bench);
    let reason = " Not today. ".to_owned();
    let denied = Consent::Denied { reason };
    bench
        .chat
        .answer_call(message.id, &*asked.id, denied)
        .unwrap();
    let answer = bench.until_ended();
    let text = "The user did not allow this call. They say: Not today.".to_owned();
    assert_eq!(results(&answer), [(text.clone(), ToolOutcome::Denied)]);
    assert_eq!(bench.script.last_turn().history.pop().unwrap().text, text);
    assert_eq!(tools.runs(), 0);
}

#[test]
fn after_content_from_outside_what_changes_things_asks_each_time() {
    let tools = Tools::new();
    tools.add("write", CHANGES, None);
    let reads = Effects {
        reads_files: true,
        ..Effects::default()
    };
    tools.add("fetch", reads, Some("web"));
    let mut bench = bench(&tools, &["write", "fetch"]);
    bench
        .script
        .answer([Step::Call("fetch", "{}"), Step::Call("write", "{}")]);
    bench.chat.send(None, "Go.", false).unwrap();
    let (_, message, asked) = until_asked(&mut bench);
    bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Always)
        .unwrap();
    let (chat, message, asked) = until_asked(&mut bench);
    assert_eq!(asked.tool.name, "write");
    assert!(asked.asks_because.is_some());
    bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Always)
        .unwrap();
    let answer = bench.until_ended();
    assert!(answer.parts.0.iter().any(|part| matches!(
        part,
        Part::ToolResult { server: Some(server), .. } if server == "web"
    )));
    bench
        .script
        .answer([Step::Call("fetch", "{}"), Step::Call("write", "{}")]);
    bench.chat.send(Some(chat), "Again.", false).unwrap();
    let (_, _, asked) = until_asked(&mut bench);
    assert_eq!(
        asked.tool.name, "write",
        "the other one does not change things"
    );
}

#[test]
fn calls_that_cannot_be_run_have_a_result_that_says_so() {
    let (tools, mut bench) = pure(&["echo"]);
    for (name, arguments, said) in [
        ("weigh", "{}", "There is no tool “weigh”. There is: echo."),
        ("echo", r#"{"text": 6}"#, "text"),
        ("echo", r#"{"text": "fail"}"#, "It failed."),
        ("echo", r#"{"text": "panic"}"#, "The tool crashed."),
    ] {
        bench.script.answer([Step::Call(name, arguments)]);
        bench.chat.send(None, "Go.", false).unwrap();
        let answer = bench.until_ended();
        let (text, outcome) = results(&answer).remove(0);
        assert_eq!(outcome, ToolOutcome::Failed);
        assert!(text.contains(said), "{text}");
        assert_eq!(answer.state, MessageState::Done);
    }
    assert_eq!(tools.runs(), 2);
}

#[test]
fn a_repeated_call_is_answered_from_the_first() {
    let (tools, mut bench) = pure(&["echo"]);
    bench
        .script
        .answer([Step::Call("echo", r#"{"text": "6"}"#)]);
    bench
        .script
        .answer([Step::Call("echo", r#"{ "text":"6" }"#)]);
    bench.chat.send(None, "Go.", false).unwrap();
    let answer = bench.until_ended();
    assert_eq!(tools.runs(), 1);
    let (text, _) = results(&answer).remove(1);
    assert!(
        text.starts_with(tools::REPEATED) && text.ends_with('6'),
        "{text}"
    );
}

#[test]
fn after_the_last_round_the_model_cannot_call() {
    let (tools, mut bench) = pure(&["echo"]);
    let settings = bench.chat.snapshot().unwrap().settings;
    bench
        .chat
        .save_settings(Settings {
            tool_rounds: 2,
            ..settings
        })
        .unwrap();
    for text in [r#"{"text": "1"}"#, r#"{"text": "2"}"#] {
        bench.script.answer([Step::Call("echo", text)]);
    }
    bench.chat.send(None, "Go.", false).unwrap();
    bench.until_ended();
    assert_eq!(tools.runs(), 2);
    let constraints: Vec<_> = bench
        .script
        .turns()
        .into_iter()
        .map(|asked| matches!(asked.constraint, Some(Constraint::NoCalls)))
        .collect();
    assert_eq!(constraints, [false, false, true]);
}

#[test]
fn long_results_are_cut_and_empty_ones_are_named() {
    let (_, mut bench) = pure(&["echo"]);
    let settings = bench.chat.snapshot().unwrap().settings;
    let short = Settings {
        tool_result_characters: 200,
        ..settings
    };
    bench.chat.save_settings(short).unwrap();
    let long: &'static str = Box::leak(json!({"text": "x".repeat(5000)}).to_string().into());
    bench
        .script
        .answer([Step::Call("echo", long), Step::Call("echo", "{}")]);
    bench.chat.send(None, "Go.", false).unwrap();
    let results = results(&bench.until_ended());
    assert!(results[0].0.chars().count() < 400, "{}", results[0].0);
    assert!(
        results[0].0.contains("4,800 more characters"),
        "{}",
        results[0].0
    );
    assert_eq!(results[1].0, "(no output)");
}

#[test]
fn stop_ends_a_call_that_is_not_run_again() {
    let tools = Tools::new();
    let _go = tools.add_slow("slow", Effects::default());
    let mut bench = bench(&tools, &["slow"]);
    bench
        .script
        .answer([Step::Say("I look."), Step::Call("slow", r#"{"text": "6"}"#)]);
    let view = bench.chat.send(None, "Go.", false).unwrap();
    bench.until(|event| matches!(
        event,
        ChatEvent::Called { message, .. } if message.calls.iter().any(|call| call.status == CallStatus::Runs)
    ));
    // Its thread may take a while to begin.
    let begun = Instant::now();
    while tools.runs() == 0 && begun.elapsed() < EVENT_TIMEOUT {
        std::thread::sleep(Duration::from_millis(1));
    }
    bench.chat.stop(view.chat.id).unwrap();
    let stopped = bench.until_ended();
    assert_eq!(stopped.state, MessageState::Stopped);
    assert!(stopped.calls.is_empty());
    let (said, outcome) = results(&stopped).remove(0);
    assert_eq!(outcome, ToolOutcome::Failed);
    assert!(said.contains("may have taken effect"), "{said}");

    bench.script.answer([Step::Say("Six.")]);
    bench.chat.continue_answer(stopped.id).unwrap();
    let answer = bench.until_ended();
    assert_eq!(kinds(&answer), ["text", "call", "result", "text"]);
    assert_eq!(tools.runs(), 1);
}

#[test]
fn a_call_ends_by_the_time_limit_of_the_settings() {
    let (_, mut bench) = pure(&["echo"]);
    let mut settings = bench.chat.snapshot().unwrap().settings;
    settings.tool_seconds = 1000;
    bench.chat.save_settings(settings).unwrap();
    bench
        .script
        .answer([Step::Call("echo", r#"{"text": "seconds"}"#)]);
    bench.chat.send(None, "Go.", false).unwrap();
    let (left, _) = results(&bench.until_ended()).remove(0);
    let left: u32 = left.parse().unwrap();
    assert!((900..=1000).contains(&left), "{left} s");
}

#[test]
fn a_regenerated_answer_calls_again_and_knows_nothing_of_the_calls_before() {
    let (tools, mut bench) = pure(&["echo"]);
    let call = || Step::Call("echo", r#"{"text": "6"}"#);
    for _ in 0..2 {
        bench.script.answer([call()]);
        bench.script.answer([Step::Say("Six.")]);
    }
    bench.chat.send(None, "How heavy?", false).unwrap();
    let first = bench.until_ended();
    bench.chat.regenerate(first.id, false, None).unwrap();
    let second = bench.until_ended();
    assert_ne!(second.id, first.id);
    assert_eq!(kinds(&second), ["call", "result", "text"]);
    assert_eq!(
        tools.runs(),
        2,
        "the result of the other answer is not taken"
    );
    let turns = bench.script.turns();
    assert_eq!(turns[2].tools, ["echo"]);
    assert_eq!(turns[2].history.len(), 1, "the question alone");
}

#[test]
fn a_call_that_was_cut_off_is_no_call() {
    let (tools, mut bench) = pure(&["echo"]);
    let cut = [
        Step::Say("I look."),
        Step::CallToken,
        Step::CallToken,
        Step::End(StopReason::MaxTokens),
    ];
    bench.script.answer(cut);
    bench.chat.send(None, "Go.", false).unwrap();
    let answer = bench.until_ended();
    assert_eq!(answer.state, MessageState::Limit);
    assert_eq!(kinds(&answer), ["text"]);
    bench.chat.continue_answer(answer.id).unwrap();
    bench.until_ended();
    let open = bench.script.last_turn().history.pop().unwrap();
    assert!(open.open);
    assert_eq!(
        open.ids,
        Some(vec![100]),
        "without the beginning of the call"
    );
    assert_eq!(tools.runs(), 0);
}

#[test]
fn the_choice_of_tools_is_the_chats_then_the_presets_then_the_settings() {
    let (_, mut bench) = pure(&["echo", "other"]);
    turn_on(&bench, &["echo"]);
    let chat = bench.ask(None, "One").chat.id;
    assert_eq!(bench.script.last_turn().tools, ["echo"]);
    let chosen = |tools: Option<Vec<String>>| ChatPreset {
        tools,
        ..ChatPreset::default()
    };
    bench
        .chat
        .choose_preset(Some(chat), chosen(Some(vec!["other".into()])))
        .unwrap();
    bench.ask(Some(chat), "Two");
    assert_eq!(bench.script.last_turn().tools, ["other"]);
    bench
        .chat
        .choose_preset(Some(chat), chosen(Some(Vec::new())))
        .unwrap();
    bench.ask(Some(chat), "Three");
    let asked = bench.script.last_turn();
    assert!(asked.tools.is_empty() && asked.constraint.is_none());
    bench.chat.choose_preset(Some(chat), chosen(None)).unwrap();
    bench.ask(Some(chat), "Four");
    assert_eq!(bench.script.last_turn().tools, ["echo"]);
}

#[test]
fn a_program_may_call_what_would_not_ask() {
    let tools = Tools::new();
    tools.add("code", Effects::default(), None);
    tools.add("echo", Effects::default(), None);
    tools.add("write", CHANGES, None);
    tools.add("off", Effects::default(), None);
    let mut bench = bench(&tools, &["code", "echo", "write"]);
    bench
        .script
        .answer([Step::Call("code", r#"{"text": "functions"}"#)]);
    bench.chat.send(None, "Go.", false).unwrap();
    assert_eq!(results(&bench.until_ended())[0].0, "echo");
}

#[test]
fn results_of_other_programs_are_from_outside() {
    let tools = Tools::new();
    tools.add("write", CHANGES, None);
    let mut bench = bench(&tools, &["write"]);
    let mut whole = chats(1, "How heavy?").remove(0);
    let mut result = store::MessageRecord::new(2, Role::Tool, "Six.".to_owned(), 100);
    result.parent = Some(1);
    whole.messages.push(result);
    whole.chat.leaf = Some(2);
    crate::importing::import(&bench, vec![whole]).unwrap();
    let chat = crate::importing::chat_titled(&bench, "Chat 0");
    bench.script.answer([Step::Call("write", "{}")]);
    bench.chat.send(Some(chat), "Go.", false).unwrap();
    assert!(until_asked(&mut bench).2.asks_because.is_some());
}

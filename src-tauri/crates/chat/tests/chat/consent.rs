//! Ways around the user's consent, all of them closed.

use std::sync::Arc;
use std::time::Duration;

use chat::{ChatEvent, Consent, MessageState, Part, Settings, ToolOutcome};
use store::{Store, faults};
use tools::Effects;

use crate::scripted::{Bench, Script, Step};
use crate::tool_bench::{CHANGES, Tools, bench, results, turn_on, until_asked};

const SENDS: Effects = Effects {
    network: true,
    ..CHANGES
};

/// Has the model call a tool, and allows the tool from then on.
fn allow_always(bench: &mut Bench, tool: &'static str) -> chat::ChatId {
    bench.script.answer([Step::Call(tool, "{}")]);
    bench.chat.send(None, "Go.", false).unwrap();
    let (chat, message, asked) = until_asked(bench);
    let allowed = bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Always);
    allowed.unwrap();
    bench.until_ended();
    chat
}

#[test]
fn a_tool_that_changes_while_it_asks_is_shown_again() {
    let tools = Tools::new();
    let server = tools.attach();
    server.set(vec![tools.echo("write", CHANGES, Some("files"), None)]);
    let mut bench = bench(&tools, &["write"]);
    bench.script.answer([Step::Call("write", "{}")]);
    bench.chat.send(None, "Write.", false).unwrap();
    let (_, message, asked) = until_asked(&mut bench);
    assert!(!asked.tool.effects.network);
    server.set(vec![tools.echo("write", SENDS, Some("files"), None)]);
    let allowed = bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Always);
    assert!(allowed.unwrap_err().message.contains("has changed"));
    let (_, message, asked) = until_asked(&mut bench);
    assert!(asked.tool.effects.network, "as it is now");
    assert_eq!(tools.runs(), 0);
    assert!(
        bench
            .chat
            .snapshot()
            .unwrap()
            .settings
            .allowed_tools
            .is_empty()
    );
    let allowed = bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Once);
    allowed.unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Done);
    // It is gone when the user allows it.
    bench.script.answer([Step::Call("write", "{}")]);
    bench.chat.send(None, "Write.", false).unwrap();
    let (_, message, asked) = until_asked(&mut bench);
    server.set(Vec::new());
    let allowed = bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Once);
    allowed.unwrap();
    assert_eq!(results(&bench.until_ended())[0].1, ToolOutcome::Failed);
    assert_eq!(tools.runs(), 1);
}

#[test]
fn a_program_carries_nothing_from_a_server_to_what_changes_things() {
    let tools = Tools::new();
    tools.add("code", Effects::default(), None);
    tools.add("read", Effects::default(), Some("web"));
    tools.add("write", CHANGES, None);
    let mut bench = bench(&tools, &["code", "read", "write"]);
    allow_always(&mut bench, "write");
    let program = Step::Call("code", r#"{"text": "functions"}"#);
    bench.script.answer([program, Step::Call("write", "{}")]);
    bench.chat.send(None, "Go.", false).unwrap();
    let (_, message, asked) = until_asked(&mut bench);
    assert_eq!(
        results(&message)[0].0,
        "read",
        "and not the allowed one that writes"
    );
    assert!(asked.asks_because.is_some());
    let server = message.parts.0.iter().find_map(|part| match part {
        Part::ToolResult { server, .. } => server.clone(),
        _ => None,
    });
    assert_eq!(server.as_deref(), Some("web"));
}

#[test]
fn a_summary_of_content_from_outside_is_from_outside() {
    let tools = Tools::new();
    tools.add("read", Effects::default(), Some("web"));
    tools.add("write", CHANGES, None);
    let mut bench = bench(&tools, &["read", "write"]);
    allow_always(&mut bench, "write");
    bench.script.answer([Step::Call("read", "{}")]);
    let of = bench.ask(None, "Read it.").chat.id;
    let view = bench.chat.start_summary(of).unwrap();
    bench.until_ended();
    bench.script.answer([Step::Call("write", "{}")]);
    bench
        .chat
        .send(Some(view.chat.id), "Write.", false)
        .unwrap();
    assert!(until_asked(&mut bench).2.asks_because.is_some());
}

#[test]
fn what_other_chats_say_is_from_outside() {
    let tools = Tools::new();
    tools.add("search_chats", Effects::default(), None);
    tools.add("write", CHANGES, None);
    let mut bench = bench(&tools, &["search_chats", "write"]);
    allow_always(&mut bench, "write");
    bench
        .script
        .answer([Step::Call("search_chats", "{}"), Step::Call("write", "{}")]);
    bench.chat.send(None, "Go.", false).unwrap();
    assert!(until_asked(&mut bench).2.asks_because.is_some());
}

#[test]
fn a_tool_is_allowed_once_and_so_revoked_at_once() {
    let tools = Tools::new();
    tools.add("read", Effects::default(), Some("web"));
    tools.add("write", CHANGES, None);
    let mut bench = bench(&tools, &["read", "write"]);
    allow_always(&mut bench, "write");
    bench
        .script
        .answer([Step::Call("read", "{}"), Step::Call("write", "{}")]);
    bench.chat.send(None, "Go.", false).unwrap();
    let (_, message, asked) = until_asked(&mut bench);
    let allowed = bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Always);
    allowed.unwrap();
    bench.until_ended();
    let settings: Settings = bench.chat.snapshot().unwrap().settings;
    assert_eq!(settings.allowed_tools.len(), 1);
}

#[test]
fn a_result_that_cannot_be_saved_is_kept_and_the_call_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let tools = Tools::new();
    let go = tools.add_slow("slow", Effects::default());
    let mut bench = Bench::start(
        Store::open(&path).unwrap(),
        &Script::default(),
        crate::scripted::TODAY,
    );
    bench.until_ready();
    bench.chat.set_tools(Arc::clone(&tools.registry)).unwrap();
    turn_on(&bench, &["slow"]);
    bench
        .script
        .answer([Step::Call("slow", r#"{"text": "6"}"#)]);
    bench.chat.send(None, "Go.", false).unwrap();
    bench.until(
        |event| matches!(event, ChatEvent::Called { message, .. } if !message.calls.is_empty()),
    );
    faults::refuse_writes(&path, &["part"]).unwrap();
    go.send(()).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Failed);
    std::thread::sleep(Duration::from_millis(10));
    faults::allow_writes(&path).unwrap();
    let saved = bench.until_ended();
    assert_eq!(results(&saved)[0].0, "6");
    bench.chat.continue_answer(saved.id).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Done);
    assert_eq!(tools.runs(), 1);
}

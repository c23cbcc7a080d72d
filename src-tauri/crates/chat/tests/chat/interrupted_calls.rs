//! Calls of an answer that a restart or a crash interrupts.

use std::path::Path;
use std::sync::Arc;

use chat::{CallStatus, Consent, MessageState, ToolOutcome};

use crate::scripted::{Bench, Script, Step};
use crate::tool_bench::{CHANGES, Tools, kinds, results, turn_on, until_asked};

/// Opens the chats of a file, with tools.
fn with_tools(path: &Path, tools: &Tools, script: &Script) -> Bench {
    let mut bench = Bench::on_file(path, script);
    bench.until_ready();
    bench.chat.set_tools(Arc::clone(&tools.registry)).unwrap();
    bench
}

#[test]
fn a_waiting_call_is_not_run_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let tools = Tools::new();
    tools.add("write", CHANGES, None);
    let script = Script::default();
    let mut bench = with_tools(&path, &tools, &script);
    turn_on(&bench, &["write"]);
    bench
        .script
        .answer([Step::Say("I write."), Step::Call("write", "{}")]);
    bench.chat.send(None, "Write.", false).unwrap();
    let (chat, message, _) = until_asked(&mut bench);
    bench.chat.shutdown();
    drop(bench);
    let mut bench = with_tools(&path, &tools, &script);
    let shown = bench.chat.open_chat(chat).unwrap().messages.pop().unwrap();
    assert_eq!(shown.state, MessageState::Interrupted);
    assert!(shown.calls.is_empty() && results(&shown).is_empty());
    assert_eq!(kinds(&shown), ["text", "call"]);
    // Continue asks again.
    bench.chat.continue_answer(message.id).unwrap();
    until_asked(&mut bench);
    assert_eq!(tools.runs(), 0);
}

#[test]
fn a_call_that_ran_in_a_crash_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let tools = Tools::new();
    let go = tools.add_slow("write", CHANGES);
    let script = Script::default();
    let mut bench = with_tools(&path, &tools, &script);
    turn_on(&bench, &["write"]);
    bench.script.answer([Step::Call("write", "{}")]);
    bench.chat.send(None, "Write.", false).unwrap();
    let (chat, message, asked) = until_asked(&mut bench);
    let allowed = bench
        .chat
        .answer_call(message.id, &*asked.id, Consent::Always);
    allowed.unwrap();
    let running = bench.chat.open_chat(chat).unwrap().messages.pop().unwrap();
    assert_eq!(running.calls[0].status, CallStatus::Runs);
    assert!(results(&running).is_empty(), "the window waits for one");
    // What a crash would leave.
    let left = tempfile::tempdir().unwrap();
    for name in ["goldcrest.db", "goldcrest.db-wal"] {
        std::fs::copy(folder.path().join(name), left.path().join(name)).unwrap();
    }
    go.send(()).unwrap();
    bench.script.answer([Step::Say("Done.")]);
    let answer = bench.until_ended();
    assert_eq!(
        results(&answer),
        [("(no output)".to_owned(), ToolOutcome::Done)]
    );
    bench.chat.shutdown();

    let path = left.path().join("goldcrest.db");
    let mut bench = with_tools(&path, &tools, &script);
    bench.script.answer([Step::Say("It may be written.")]);
    bench.chat.continue_answer(message.id).unwrap();
    let answer = bench.until_ended();
    assert_eq!(kinds(&answer), ["call", "result", "text"]);
    let (said, outcome) = results(&answer).remove(0);
    assert_eq!(outcome, ToolOutcome::Failed);
    assert!(said.contains("may have taken effect"), "{said}");
    assert_eq!(tools.runs(), 1);
}

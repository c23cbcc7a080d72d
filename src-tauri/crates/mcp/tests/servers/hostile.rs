//! The fake server, without a sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcp::{Secret, ServerOptions, ServerStatus, Servers};
use serde_json::{Map, json};
use tools::{ToolError, ToolProvider, ToolSource};

use super::*;

#[test]
fn tools_of_a_server_are_called_and_their_results_are_text() {
    if !has_node() {
        return;
    }
    let servers = started(fake("normal"));
    let calls = [
        (
            "echo",
            json!({ "text": "Grüße 🐦\n" }),
            Ok("Grüße 🐦\n".to_owned()),
        ),
        ("structured", json!({}), Ok(r#"{"sum":3}"#.to_owned())),
        (
            "fails",
            json!({}),
            Err(ToolError::Failed("the disk is full".to_owned())),
        ),
        (
            "throws",
            json!({}),
            Err(ToolError::Failed("no such thing".to_owned())),
        ),
        ("babble", json!({}), Ok("done".to_owned())),
    ];
    for (tool, arguments, expected) in calls {
        assert_eq!(call(&servers, tool, arguments), expected, "{tool}");
    }
    let refused = call(&servers, "odd", json!({})).expect_err("no result");
    assert!(
        refused
            .to_string()
            .contains("a form that MCP does not have"),
        "{refused}"
    );
    let calculator = tool(&servers, "calculator").info();
    assert_eq!(calculator.definition.name, "fake_calculator");
    let source = ToolSource::Server {
        name: "fake".to_owned(),
    };
    assert_eq!(calculator.source, source);
}

#[test]
fn a_server_of_the_protocol_without_a_handshake_is_understood() {
    if !has_node() {
        return;
    }
    let servers = started(fake("modern"));
    assert_eq!(
        call(&servers, "echo", json!({ "text": "new" })),
        Ok("new".to_owned())
    );
}

#[test]
fn requests_of_a_server_are_answered_and_declined() {
    if !has_node() {
        return;
    }
    let servers = started(fake("normal"));
    assert_eq!(call(&servers, "asks", json!({})), Ok("a b c".to_owned()));
}

#[test]
fn a_server_that_does_not_start_says_why() {
    if !has_node() {
        return;
    }
    let mut config = fake("exits");
    let token = Secret::from("hunter2-hunter2".to_owned());
    config.env.insert("TOKEN".to_owned(), token);
    let servers = started(config);
    assert_eq!(
        reason(&servers),
        "It ended with exit code 3 before it answered. It wrote: Error: the token ••• is wrong"
    );
    let state = servers.states().swap_remove(0);
    assert!(!format!("{state:?}").contains("hunter2"), "{state:?}");
    let servers = started(program("absent", "goldcrest-no-such-program", &[]));
    assert!(reason(&servers).contains("on the search path"));
    let servers = started(program("absent", "/nonexistent/server", &[]));
    assert_eq!(reason(&servers), "There is no program /nonexistent/server.");
}

#[test]
fn a_handshake_and_a_list_without_an_end_have_a_deadline() {
    if !has_node() {
        return;
    }
    let options = ServerOptions {
        handshake_timeout: Duration::from_millis(700),
        ..ServerOptions::default()
    };
    for (mode, sentence) in [
        ("silent", "It did not answer within 0.7 seconds."),
        ("mute", "It did not list its tools within 0.7 seconds."),
    ] {
        let began = Instant::now();
        let servers = started_with(fake(mode), options);
        assert_eq!(reason(&servers), sentence);
        measured("handshake with a deadline of 700 ms", began);
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_program_that_is_no_server_is_found_out() {
    if !has_node() {
        return;
    }
    let servers = started(fake("endless"));
    let reason = reason(&servers);
    assert!(
        reason.starts_with("Its output is not MCP: is this an MCP server that uses stdio?"),
        "{reason}"
    );
}

#[test]
fn a_result_without_end_costs_no_memory_and_ends_the_server() {
    if !has_node() {
        return;
    }
    let servers = started(fake("normal"));
    let (before, began) = (peak_memory(), Instant::now());
    let failed = call(&servers, "huge", json!({})).expect_err("100 MB");
    measured("a result of 100 MB", began);
    assert!(
        failed.to_string().contains("a message of more than 4 MB"),
        "{failed}"
    );
    let growth = peak_memory() - before;
    assert!(growth < 50_000, "{growth} kB");
    until(&servers, |state| state.status == ServerStatus::Ready);
    assert_eq!(
        call(&servers, "echo", json!({ "text": "again" })),
        Ok("again".to_owned())
    );
}

/// Returns the peak of this process's memory in kB; nothing where the system does not say.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn a_long_result_is_cut() {
    if !has_node() {
        return;
    }
    let options = ServerOptions {
        result_limit: 1_000,
        ..ServerOptions::default()
    };
    let servers = started_with(fake("normal"), options);
    let result = call(&servers, "long", json!({})).expect("a result");
    assert!(result.ends_with("x\n[999,000 more bytes were left out]") && result.len() < 1_100);
}

#[test]
fn a_server_that_dies_in_a_call_is_started_again_three_times() {
    if !has_node() {
        return;
    }
    let servers = started(fake("normal"));
    let die = tool(&servers, "die");
    for start in 1..=4 {
        let failed = run(&*die, &Map::new(), LONG, &AtomicBool::new(false)).expect_err("it dies");
        let sentence = failed.to_string();
        let says = |words: &str| assert!(sentence.contains(words), "{sentence}");
        says("ended during the call.");
        says("It ended with exit code 7.");
        if start < 4 {
            until(&servers, |state| state.status == ServerStatus::Ready);
        }
    }
    let state = until(&servers, |state| {
        matches!(state.status, ServerStatus::Failed { .. })
    });
    assert!(
        reason(&servers).starts_with("It ended 4 times."),
        "{state:?}"
    );
    assert!(servers.tools().is_empty());
    let failed = run(&*die, &Map::new(), LONG, &AtomicBool::new(false)).expect_err("it is gone");
    assert!(
        failed
            .to_string()
            .contains("does not run. It ended 4 times."),
        "{failed}"
    );
    servers.start_server("fake");
    until(&servers, |state| state.status == ServerStatus::Ready);
}

#[test]
fn a_call_without_end_is_cancelled_and_has_a_deadline() {
    if !has_node() {
        return;
    }
    let options = ServerOptions {
        call_timeout: Duration::from_millis(1_500),
        ..ServerOptions::default()
    };
    let servers = started_with(fake("normal"), options);
    let wait = tool(&servers, "wait");
    let cancel = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| run(&*wait, &Map::new(), LONG, &cancel));
        std::thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(call.join().expect("no panic"), Err(ToolError::Cancelled));
        measured("Stop during a call", began);
        assert!(began.elapsed() < Duration::from_millis(200));
    });
    // The server learns of it, and goes on.
    until(&servers, |state| state.log_tail.contains("cancelled "));
    for limit in [300, 60_000] {
        let began = Instant::now();
        let result = run(
            &*wait,
            &Map::new(),
            Duration::from_millis(limit),
            &AtomicBool::new(false),
        );
        assert_eq!(result, Err(ToolError::TimedOut));
        measured("a deadline of 300 and one of 1,500 ms", began);
        assert!(began.elapsed() < Duration::from_millis(limit.min(1_500) + 200));
    }
    assert_eq!(
        call(&servers, "echo", json!({ "text": "still here" })),
        Ok("still here".to_owned())
    );
}

#[test]
fn a_flood_of_notifications_keeps_no_other_server_waiting() {
    if !has_node() {
        return;
    }
    let mut other = fake("normal");
    other.name = "other".to_owned();
    let servers =
        Servers::start(vec![fake("normal"), other], ServerOptions::default()).expect("a thread");
    while servers
        .states()
        .iter()
        .any(|state| state.status != ServerStatus::Ready)
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    let named = |name: &str| {
        let mut tools = servers.tools().into_iter();
        tools
            .find(|tool| tool.info().definition.name == name)
            .expect("a tool")
    };
    let (flood, echo) = (named("fake_flood"), named("other_echo"));
    let arguments = json!({ "text": "hello" })
        .as_object()
        .cloned()
        .expect("an object");
    std::thread::scope(|scope| {
        let began = Instant::now();
        let flood = scope.spawn(|| run(&*flood, &Map::new(), LONG, &AtomicBool::new(false)));
        let mut slowest = Duration::ZERO;
        while !flood.is_finished() {
            let began = Instant::now();
            let result = run(&*echo, &arguments, LONG, &AtomicBool::new(false));
            assert!(result.is_ok(), "{result:?}");
            slowest = slowest.max(began.elapsed());
        }
        measured("200,000 notifications", began);
        print("the slowest call of another server meanwhile", slowest);
        assert!(slowest < Duration::from_secs(5));
        assert!(flood.join().expect("no panic").is_ok());
    });
}

#[test]
fn a_server_that_does_not_read_is_ended() {
    if !has_node() {
        return;
    }
    let servers = started(fake("normal"));
    let failed = call(&servers, "deafen", json!({})).expect_err("it does not read");
    assert!(
        failed
            .to_string()
            .contains("does not read what is sent to it"),
        "{failed}"
    );
}

#[test]
fn what_a_server_writes_to_stderr_is_kept_to_its_end() {
    if !has_node() {
        return;
    }
    let servers = started(fake("loud"));
    let state = until(&servers, |state| state.log_tail.ends_with("1999\n"));
    assert!(state.log_tail.len() <= 16 << 10);
    assert_eq!(
        call(&servers, "echo", json!({ "text": "a" })),
        Ok("a".to_owned())
    );
}

#[test]
fn tools_that_lie_are_listed_as_unusable_beside_the_others() {
    if !has_node() {
        return;
    }
    let servers = started(fake("lying"));
    let state = servers.states().swap_remove(0);
    let faults: Vec<_> = state
        .tools
        .iter()
        .filter_map(|it| it.unusable.as_deref())
        .collect();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(!format!("{:?}", state.tools).contains(['\u{202e}', '\u{7}', '\u{1b}']));
    let titled = tool(&servers, "titled").info();
    assert_eq!(titled.title, "Calculator");
    assert_eq!(
        call(&servers, "echo", json!({ "text": "a" })),
        Ok("a".to_owned())
    );
}

#[test]
fn a_tool_that_changes_becomes_another() {
    if !has_node() {
        return;
    }
    for mode in ["normal", "lying", "modern"] {
        let servers = Arc::new(started(fake(mode)));
        let changes = Arc::new(AtomicUsize::new(0));
        let counted = changes.clone();
        let asked = Arc::downgrade(&servers);
        servers.on_change(move || {
            let states = asked.upgrade().map_or(0, |servers| servers.states().len());
            counted.fetch_add(states, Ordering::Relaxed);
        });
        let shown = |servers: &Servers, name: &str| {
            let tools = servers.states().swap_remove(0).tools;
            tools
                .into_iter()
                .find(|it| it.own_name == name)
                .expect("a tool")
        };
        let before = [shown(&servers, "echo"), shown(&servers, "read")];
        assert_eq!(
            call(&servers, "change", json!({})),
            Ok("changed".to_owned())
        );
        until(&servers, |state| {
            state
                .tools
                .iter()
                .any(|it| it.description.contains("somebody"))
        });
        assert!(changes.load(Ordering::Relaxed) > 0);
        let after = [shown(&servers, "echo"), shown(&servers, "read")];
        assert_eq!(after[0].name, before[0].name);
        assert_ne!(after[0].hash, before[0].hash);
        assert_eq!(after[1], before[1]);
    }
}

#[test]
fn other_settings_restart_what_differs_alone() {
    if !has_node() {
        return;
    }
    let mut other = fake("normal");
    other.name = "other".to_owned();
    let servers = Servers::start(
        vec![fake("normal"), other.clone()],
        ServerOptions::default(),
    )
    .expect("a thread");
    let ready = || {
        servers
            .states()
            .iter()
            .filter(|it| it.status == ServerStatus::Ready)
            .count()
    };
    let wait_for = |count: usize| {
        let began = Instant::now();
        while ready() != count {
            assert!(began.elapsed() < LONG, "{:?}", servers.states());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for(2);
    let mut off = fake("normal");
    off.enabled = false;
    servers.set(vec![off.clone(), other.clone()], ServerOptions::default());
    assert_eq!(ready(), 1, "the other one was restarted");
    assert_eq!(servers.states()[0].status, ServerStatus::Stopped);
    servers.start_server("fake");
    wait_for(2);
    servers.stop_server("other");
    assert_eq!(ready(), 1);
    assert!(
        servers
            .tools()
            .iter()
            .all(|it| it.info().definition.name.starts_with("fake_"))
    );
    servers.set(Vec::new(), ServerOptions::default());
    assert!(servers.states().is_empty() && servers.tools().is_empty());
}

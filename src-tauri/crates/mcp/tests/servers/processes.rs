//! The processes of servers: none outlives its server, and no server outlives the app.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use testing::running;

use super::*;

/// Returns a number of seconds that no other process sleeps.
fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "7{:07}{:02}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Returns the number of processes of this one that ended and were not waited for.
fn zombies() -> usize {
    let output = Command::new("ps")
        .args(["-eo", "ppid,stat,comm"])
        .output()
        .expect("ps");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let own = std::process::id().to_string();
    let mut count = 0;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let is_own = words.next() == Some(&own);
        count += usize::from(is_own && words.next().is_some_and(|stat| stat.starts_with('Z')));
    }
    count
}

fn gone(marker: &str, limit: Duration) {
    let began = Instant::now();
    while running(marker) > 0 {
        assert!(began.elapsed() < limit, "{} are left", running(marker));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the fake server with a marker among its arguments, in a sandbox if asked for.
fn marked(mode: &str, marker: &str, sandboxed: bool) -> ServerConfig {
    let mut config = fake(mode);
    config.args.push(format!("--marker={marker}"));
    config.sandboxed = sandboxed;
    config
}

#[test]
fn a_stopped_server_leaves_no_process() {
    if !has_node() {
        return;
    }
    for mode in ["normal", "stays"] {
        let marker = marker();
        let servers = started(marked(mode, &marker, false));
        call(&servers, "spawn", json!({ "marker": marker })).expect("it is started");
        assert!(running(&marker) >= 3, "{mode}");
        let began = Instant::now();
        drop(servers);
        measured(
            &format!("the end of a server with grandchildren ({mode})"),
            began,
        );
        assert!(began.elapsed() < Duration::from_secs(3));
        gone(&marker, Duration::from_secs(1));
    }
    let began = Instant::now();
    while zombies() > 0 {
        assert!(began.elapsed() < LONG, "a process was not waited for");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_that_dies_takes_its_processes_with_it() {
    if !has_node() {
        return;
    }
    let marker = marker();
    let servers = started(fake("normal"));
    call(&servers, "spawn", json!({ "marker": marker })).expect("it is started");
    assert!(running(&marker) > 0);
    call(&servers, "die", json!({})).expect_err("it dies");
    gone(&marker, Duration::from_secs(2));
}

#[test]
fn a_server_that_is_stopped_while_it_starts_leaves_no_process() {
    if !has_node() {
        return;
    }
    let marker = marker();
    let config = marked("silent", &marker, false);
    let servers = Servers::start(vec![config], ServerOptions::default()).expect("a thread");
    let began = Instant::now();
    while running(&marker) == 0 {
        assert!(began.elapsed() < LONG);
    }
    drop(servers);
    gone(&marker, Duration::from_secs(1));
}

const CHILD: &str = "GOLDCREST_TEST_MCP_CHILD";

#[test]
fn servers_end_with_an_app_that_is_killed() {
    if !has_node() {
        return;
    }
    for sandboxed in ["", "sandboxed"] {
        if sandboxed == "sandboxed" && !has_sandbox() {
            continue;
        }
        let marker = marker();
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args([
                "--exact",
                "processes::holds_a_server_until_it_is_killed",
                "--ignored",
            ])
            .env(CHILD, format!("{marker} {sandboxed}"))
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let began = Instant::now();
        // The server is there, and this command itself has no such argument.
        while running(&marker) == 0 {
            assert!(began.elapsed() < LONG);
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        gone(&marker, Duration::from_secs(5));
        measured(
            &format!("the end of a server after kill -9 of the app ({sandboxed})"),
            began,
        );
    }
}

#[test]
#[ignore = "another test runs it"]
fn holds_a_server_until_it_is_killed() {
    let given = std::env::var(CHILD).expect("a marker");
    let (marker, sandboxed) = given.split_once(' ').expect("two words");
    let mode = if sandboxed.is_empty() {
        "normal"
    } else {
        "stays"
    };
    let _servers = started(marked(mode, marker, !sandboxed.is_empty()));
    std::thread::sleep(LONG);
}

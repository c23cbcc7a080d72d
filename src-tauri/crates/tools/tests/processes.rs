//! The child processes of the tools, by the system's list of processes.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use system::child::Child;
use tools::{ChatHit, ChatSearch, Registry, ToolError, ToolRun};

/// Argument that makes this program work as a child.
const SUBCOMMAND: &str = "tool-process";

#[test]
fn a_child_works() {
    if std::env::args().any(|argument| argument == SUBCOMMAND) {
        tools::serve().expect("it works");
    }
}

struct NoChats;

impl ChatSearch for NoChats {
    fn search(&self, _: &str, _: usize, _: Option<i64>) -> Result<Vec<ChatHit>, String> {
        Ok(Vec::new())
    }
}

fn python(code: &str) -> Result<String, ToolError> {
    let program = Child {
        program: std::env::current_exe().expect("a program"),
        leading: ["--exact", "a_child_works", "--nocapture", SUBCOMMAND]
            .map(Into::into)
            .into(),
        timeout: Duration::ZERO,
        output_limit: 0,
    };
    let registry = Registry::new(tools::built_in(&program, Arc::new(NoChats)));
    let tool = registry.get("run_python").expect("it is built in");
    let run = ToolRun {
        deadline: Instant::now() + Duration::from_secs(60),
        cancel: &AtomicBool::new(false),
        functions: &registry.tools(),
        chat: None,
    };
    let arguments = Map::from_iter([("code".to_owned(), Value::from(code))]);
    tool.run(&arguments, &run).map(|output| output.text)
}

/// Returns the children of this process.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let is_child = |folder: &PathBuf| {
        let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
        let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
        fields.split_whitespace().nth(1) == Some(&own)
    };
    let folders = fs::read_dir("/proc").expect("processes").flatten();
    let folders = folders.map(|entry| entry.path()).filter(is_child);
    folders
        .filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()))
        .collect()
}

#[test]
fn a_killed_child_is_an_error_and_many_runs_leave_no_process() {
    let running = thread::spawn(|| python("while True:\n    pass"));
    while !running.is_finished() {
        for child in children() {
            let killed = Command::new("kill").args(["-9", &child]).output();
            assert!(killed.is_ok());
        }
        thread::sleep(Duration::from_millis(50));
    }
    let says = running
        .join()
        .expect("it ends")
        .expect_err("it was killed")
        .to_string();
    assert_eq!(says, "Its process ended unexpectedly.");

    for number in 0..50 {
        let code = format!("calculator('{number} * 2') + 1");
        assert_eq!(python(&code), Ok((number * 2 + 1).to_string()));
    }
    assert_eq!(children(), Vec::<String>::new());
}

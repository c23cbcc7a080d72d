//! The table of cases and their results, which lies beside the tests as `TRANSCRIPT.md`: each case is compared with it.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::sync::{LazyLock, Mutex};
use std::thread;

use crate::Ended;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/TRANSCRIPT.md");
const WRITE: &str = "GOLDCREST_WRITE_TRANSCRIPT";
const HEAD: &str = "# goldcrest-fetch and hostile servers

What `goldcrest-fetch` ends with, case by case, as its tests run them against a server on this computer: the file, whole and
verified, or a sentence for the user. The tests write this page and compare each case with it (`fetch/transcript.rs`).
PORT, FOLDER and … stand for what differs from run to run.
";

/// Lines so far, and the test whose cases are written last.
#[derive(Default)]
struct Written {
    text: String,
    test: String,
}

static WRITTEN: LazyLock<Mutex<Written>> = LazyLock::new(Mutex::default);

/// Adds a line to the table.
#[expect(clippy::print_stdout, reason = "the table of cases, with --nocapture")]
pub fn note(case: &str, ended: &Ended) {
    let line = format!("| {case} | {} |", same_in_each_run(&ended.sentence()));
    println!("{line}");
    if env::var_os(WRITE).is_some() {
        write(&line);
    } else if cfg!(target_os = "linux") {
        // The system's own words differ elsewhere.
        let text = fs::read_to_string(FILE).expect("it is there");
        let is_there = text.lines().any(|it| it == line);
        assert!(is_there, "TRANSCRIPT.md has not: {line}\nSee transcript.rs");
    }
}

fn write(line: &str) {
    let mut written = WRITTEN.lock().expect("one thread");
    if written.text.is_empty() {
        HEAD.clone_into(&mut written.text);
    }
    let test = thread::current().name().unwrap_or_default().to_owned();
    if written.test != test {
        let title = test.rsplit("::").next().unwrap_or(&test).replace('_', " ");
        let table = "| case | ends with |\n|---|---|";
        let _ = write!(written.text, "\n## {title}\n\n{table}\n");
        written.test = test;
    }
    written.text.push_str(line);
    written.text.push('\n');
    fs::write(FILE, &written.text).expect("written");
}

fn same_in_each_run(sentence: &str) -> String {
    let mut sentence = sentence.replace('|', "\\|");
    for host in ["127.0.0.1:", "localhost:"] {
        sentence = replaced(&sentence, host, char::is_numeric, "PORT");
    }
    // The number of bytes when it is noticed.
    sentence = replaced(&sentence, "header is too big: ", char::is_numeric, "…");
    let temporary = format!("{}/.tmp", env::temp_dir().display());
    let in_name = |c: char| c.is_ascii_alphanumeric();
    sentence = replaced(&sentence, &temporary, in_name, "").replace(&temporary, "FOLDER");
    match sentence.split_once(" more are needed on the disk of ") {
        Some((_, rest)) => {
            let folder = rest.split(',').next().unwrap_or_default();
            let advice = rest.split("are free. ").nth(1).unwrap_or_default();
            format!("… more are needed on the disk of {folder}, and … are free. {advice}")
        }
        None => sentence,
    }
}

/// Replaces the characters after each `before` with `by`.
fn replaced(text: &str, before: &str, is_replaced: fn(char) -> bool, by: &str) -> String {
    let mut parts = text.split(before);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push_str(before);
        let rest = part.trim_start_matches(is_replaced);
        all.push_str(if rest.len() < part.len() { by } else { "" });
        all.push_str(rest);
    }
    all
}

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

use store::{MessageState, Progress, Store};

use crate::{FILE, answer, chat, child, folder};

/// Runs as the child: journals an answer that grows, and prints after each write that it is durable.
#[test]
#[ignore = "the child process of the test below"]
fn journals_until_it_is_killed() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let store = Store::open(Path::new(&file)).unwrap();
    let (id, asked) = chat(&store, "Goldcrests", "Go on for ever.");
    let message = answer(&store, id, asked);
    let mut progress = Progress {
        model: Some("abc".into()),
        ..Progress::default()
    };
    for n in 0.. {
        progress.parts.push_text("x");
        progress.tokens.push(n);
        store.messages().journal(message, &progress).unwrap();
        let mut out = std::io::stdout();
        writeln!(out, "safe {}", progress.parts.text().len()).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn what_was_journaled_survives_kill_9_at_any_moment() {
    for ms in [0, 3, 10, 31] {
        let (_folder, path) = folder();
        let mut child = child("crashing::journals_until_it_is_killed", &path);
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let safe = |line: String| {
            line.strip_prefix("safe ")
                .and_then(|n| n.parse::<usize>().ok())
        };
        let first = lines.by_ref().find_map(safe).unwrap();
        std::thread::sleep(Duration::from_millis(ms));
        child.kill().unwrap();
        child.wait().unwrap();
        let safe = lines.filter_map(safe).last().unwrap_or(first);

        let store = Store::open(&path).unwrap();
        let leaf = store.chats().list().unwrap()[0].leaf.unwrap();
        let row = store.messages().get(leaf).unwrap();
        assert_eq!(row.state, MessageState::Interrupted);
        let written = row.progress.parts.text().len();
        assert!(
            written >= safe && written <= safe + 1,
            "{written} characters written, {safe} stored"
        );
        assert_eq!(
            row.progress.tokens.len(),
            written,
            "text and ids are one write"
        );
        drop(store);
        let db = rusqlite::Connection::open(&path).unwrap();
        let state: String = db
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(state, "ok");
    }
}

//! Small files that take much memory or time, or make long reports.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use chat_files::ReadError;
use serde_json::json;
use tempfile::TempDir;

use crate::foreign::{node, said};
use crate::{Found, outline, read_files, read_text};

/// The text before and behind a repeated piece, and the piece.
const BOMBS: [(&str, &str, &str); 7] = [
    (r#"[{"title":"x","mapping":{"#, r#""":{},"#, r#""b":{}}}]"#),
    (r#"[{"name":"x","chat_messages":["#, "{},", "{}]}]"),
    (r#"{"name":"x","messages":["#, "{},", "{}]}"),
    (r#"{"name":"x","messages":[{"versions":["#, "{},", "{}]}]}"),
    (
        r#"[{"title":"x","mapping":{"a":{"message":{"author":{"role":"assistant"},"content":{"content_type":"thoughts","thoughts":["#,
        "{},",
        "{}]}}}}}]",
    ),
    (
        r#"[{"title":"x","mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["#,
        "0,",
        "0]}}}}}]",
    ),
    (
        r#"[{"title":"x","mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["#,
        r#"{"":0},"#,
        "0]}}}}}]",
    ),
];

fn bomb((begin, piece, end): (&str, &str, &str), bytes: usize) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.zip");
    let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    archive.start_file("conversations.json", options).unwrap();
    archive.write_all(begin.as_bytes()).unwrap();
    let pieces = piece.repeat(10_000);
    for _ in 0..bytes / pieces.len() {
        archive.write_all(pieces.as_bytes()).unwrap();
    }
    archive.write_all(end.as_bytes()).unwrap();
    archive.finish().unwrap();
    (folder, path)
}

fn assert_left_out(found: &Found, why: &str) {
    assert!(found.chats.is_empty(), "{why}");
    let tally = &found.tally;
    let left_out = (tally.large_chats.count, &tally.large_chats.names[..]);
    assert_eq!(left_out, (1, &["“x”".to_owned()][..]), "{why}");
}

#[test]
fn a_chat_of_too_many_values_is_left_out() {
    for parts in BOMBS {
        let (_folder, path) = bomb(parts, 1_100_000 * parts.1.len());
        assert_left_out(&read_files(&[path]).unwrap(), parts.1);
    }
}

#[test]
fn a_chat_of_too_much_text_is_left_out() {
    let text = "x".repeat(3_000_000);
    let messages: Vec<_> = (0..30)
        .map(|_| json!({ "sender": "human", "text": text }))
        .collect();
    let chat = json!([{ "name": "x", "chat_messages": messages }, { "name": "y", "chat_messages": [{ "sender": "human", "text": "Hi" }] }]);
    let found = read_text("c.json", chat.to_string()).unwrap();
    assert_eq!(found.tally.large_chats.count, 1);
    assert_eq!(outline(&found.chats[0]), ["*->1 user: Hi"]);
}

/// A chat whose answer branches in `ways`, each with the same text before it.
fn fan(ways: usize, text: &str) -> String {
    let ids: Vec<String> = (0..ways).map(|at| format!("c{at}")).collect();
    let children: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut mapping = serde_json::Map::new();
    mapping.extend([node("q", None, &["a"], &said("user", "Q"))]);
    mapping.extend([node("a", Some("q"), &children, &said("assistant", text))]);
    mapping.extend(
        ids.iter()
            .map(|id| node(id, Some("a"), &[], &said("assistant", "more"))),
    );
    json!([{ "title": "x", "mapping": mapping }]).to_string()
}

#[test]
fn an_answer_that_goes_on_in_many_ways_is_not_copied_without_end() {
    let found = read_text("c.json", fan(4000, &"x".repeat(1_000_000))).unwrap();
    assert_left_out(&found, "4,000 copies of 1 MB");
    let found = read_text("c.json", fan(3, "one")).unwrap();
    let expected = [
        "*->1 user: Q",
        "1>2 assistant: one\n\nmore",
        "1>3 assistant: one\n\nmore",
        "*1>4 assistant: one\n\nmore",
    ];
    assert_eq!(outline(&found.chats[0]), expected);
}

#[test]
fn a_long_chain_of_answers_is_one_answer() {
    let mut mapping = serde_json::Map::new();
    for at in 0..50_000_u32 {
        let (id, child) = (at.to_string(), (at + 1).to_string());
        let parent = at.checked_sub(1).map(|parent| parent.to_string());
        let message = json!({ "author": { "role": "assistant" }, "content": { "parts": ["x"] } });
        mapping.extend([node(&id, parent.as_deref(), &[&child], &message)]);
    }
    let found = read_text("c.json", json!([{ "mapping": mapping }]).to_string()).unwrap();
    assert_eq!(found.chats[0].messages.len(), 1);
    assert_eq!(
        found.chats[0].messages[0].parts.text().len(),
        3 * 50_000 - 2
    );
}

#[test]
fn a_child_that_is_listed_often_is_read_once() {
    let children = vec!["a"; 100_000];
    let mut mapping = serde_json::Map::new();
    mapping.extend([node("q", None, &children, &said("user", "Q"))]);
    mapping.extend([node(
        "a",
        None,
        &["q"],
        &said("assistant", &"x".repeat(1_000_000)),
    )]);
    let found = read_text("c.json", json!([{ "mapping": mapping }]).to_string()).unwrap();
    assert_eq!(found.chats[0].messages.len(), 2);
}

#[test]
fn marks_without_an_end_take_no_long_time() {
    let mut mapping = serde_json::Map::new();
    let text = "\u{e200}".repeat(1_300_000);
    mapping.extend([node("q", None, &[], &said("user", &format!("{text} Q")))]);
    let found = read_text("c.json", json!([{ "mapping": mapping }]).to_string()).unwrap();
    assert_eq!(outline(&found.chats[0]), ["*->1 user:  Q"]);
}

/// 60 names of one entry of 10 MB of blanks.
#[test]
fn an_archive_that_unpacks_to_far_more_than_its_size_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.zip");
    let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    archive.start_file("conversations.json", options).unwrap();
    archive.write_all(b"[").unwrap();
    io::copy(&mut io::repeat(b' ').take(10 << 20), &mut archive).unwrap();
    archive.write_all(b"]").unwrap();
    for at in 0..60 {
        let name = format!("{at}/conversations.json");
        archive
            .shallow_copy_file("conversations.json", &name)
            .unwrap();
    }
    archive.finish().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 100_000);
    let error = read_files(&[path]).err().unwrap();
    assert!(
        matches!(error, ReadError::UnpacksToTooMuch { .. }),
        "{error}"
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_before_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    for path in [path, PathBuf::from("/dev/zero")] {
        let error = read_files(&[path]).err().unwrap();
        assert!(matches!(error, ReadError::NotAFile { .. }), "{error}");
    }
    // In a folder, the archive is skipped.
    let error = read_files(&[folder.path().to_owned()]).err().unwrap();
    assert!(matches!(error, ReadError::Unknown { .. }), "{error}");
}

#[test]
fn an_error_quotes_little_and_a_log_nothing() {
    let secret = "Q".repeat(10_000_000);
    let line =
        format!("{{\"format\":\"goldcrest-chats\",\"version\":1}}\n{{\"chat\":\"{secret}\"}}\n");
    let error = read_text("a.jsonl", line).err().unwrap();
    assert!(error.to_string().contains("QQQQ"), "{error}");
    assert!(error.to_string().len() < 400, "{error}");
    assert_eq!(
        error.without_quotation(),
        "a.jsonl is damaged (line 2, column 10000010)"
    );
}

/// The seven bombs, at 25 MiB of JSON each. Run alone: the peak is the process's.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "it measures its process: `cargo test --test chat_files -- --ignored --exact bounds::memory_is_bounded`"]
fn memory_is_bounded() {
    let before = crate::damaged::peak();
    // Chats that are just small enough, too.
    let most = [
        (
            r#"[{"name":"y","chat_messages":["#,
            r#"{"sender":"human","text":"a"},"#,
            "{}]}]",
        ),
        (
            r#"{"name":"y","messages":["#,
            r#"{"role":"user","content":"a"},"#,
            "{}]}",
        ),
    ];
    for parts in most {
        let (_folder, path) = bomb(parts, 320_000 * parts.1.len());
        assert_eq!(
            read_files(&[path]).unwrap().chats[0].messages.len(),
            320_000
        );
    }
    for parts in BOMBS {
        let (_folder, path) = bomb(parts, 25 << 20);
        let begin = std::time::Instant::now();
        let found = read_files(&[path]).unwrap();
        assert_eq!(found.chats.len(), 0);
        let more = (crate::damaged::peak() - before) >> 10;
        io::stderr()
            .write_all(format!("{}: {more} MiB, {:?}\n", parts.1, begin.elapsed()).as_bytes())
            .unwrap();
    }
    let more = crate::damaged::peak() - before;
    assert!(more < 300 << 10, "{more} KiB");
}

/// 540 MB in one chat, and a small chat behind it. Run alone: it takes much memory.
#[test]
#[ignore = "it takes 500 MB: `cargo test --test chat_files -- --ignored --exact bounds::a_chat_that_is_too_large_is_left_out_of_our_own_format`"]
fn a_chat_that_is_too_large_is_left_out_of_our_own_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let mut out = io::BufWriter::new(fs::File::create(&path).unwrap());
    let message = |id: u32, text: &str| json!({ "message": { "id": id, "role": "user", "state": "done", "text": text, "createdAt": 1 } });
    let chat = |title: &str| json!({ "chat": { "uid": title, "title": title, "today": "2026-03-05", "createdAt": 1, "updatedAt": 2, "leaf": 1 } });
    let text = "x".repeat(60 << 20);
    writeln!(
        out,
        "{}",
        json!({ "format": "goldcrest-chats", "version": 1 })
    )
    .unwrap();
    writeln!(out, "{}", chat("Large")).unwrap();
    for id in 1..=9 {
        writeln!(out, "{}", message(id, &text)).unwrap();
    }
    writeln!(out, "{}\n{}", chat("Small"), message(1, "Hi")).unwrap();
    writeln!(out, "{}", json!({ "end": { "chats": 2, "messages": 10 } })).unwrap();
    drop(out);
    let found = read_files(&[path]).unwrap();
    assert_eq!(found.chats.len(), 1);
    assert_eq!(found.chats[0].chat.title, "Small");
    assert_eq!(found.tally.large_chats.names, ["“Large”"]);
}

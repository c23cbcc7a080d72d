//! Files that are cut off, foreign, endless or made to harm.

use std::fs;
use std::io::{self, Write};

use chat_files::{Item, ReadError, read};
use jiff::tz::TimeZone;
use serde_json::json;

use crate::{archive, file, read_files, read_text};

fn chats(count: usize) -> String {
    let chats: Vec<_> = (0..count)
        .map(|at| {
            json!({ "uuid": at.to_string(), "name": "x", "created_at": "2025-05-01T10:00:00Z", "chat_messages": [
                { "uuid": "m", "sender": "human", "text": format!("number {at}") }
            ] })
        })
        .collect();
    json!(chats).to_string()
}

fn jsonl() -> String {
    [
        r#"{"format":"goldcrest-chats","version":1}"#,
        r#"{"folder":{"name":"Work","createdAt":5}}"#,
        r#"{"chat":{"uid":"u","title":"Birds","today":"2026-03-05","createdAt":1,"updatedAt":2,"leaf":1,"folder":"Work"}}"#,
        r#"{"message":{"id":1,"role":"user","state":"done","text":"Hi","createdAt":1}}"#,
        r#"{"end":{"chats":1,"messages":1}}"#,
        "",
    ]
    .join("\n")
}

#[test]
fn half_a_file_is_known_for_one() {
    let whole = chats(50);
    for length in [1, 30, whole.len() / 2, whole.len() - 1] {
        let error = read_text("conversations.json", &whole[..length])
            .err()
            .unwrap();
        assert!(
            matches!(error, ReadError::CutOff { .. }),
            "{length}: {error}"
        );
    }
    let whole = jsonl();
    let lines: Vec<&str> = whole.lines().collect();
    for end in 1..lines.len() {
        let part = lines[..end].join("\n") + "\n";
        for part in [
            part.as_str(),
            &part[..part.len() - 1],
            &part[..part.len() - 5],
        ] {
            assert!(read_text("a.jsonl", part).is_err(), "{part}");
        }
        let error = read_text("a.jsonl", &part).err().unwrap();
        assert_eq!(
            error.to_string(),
            "a.jsonl ends in the middle. Perhaps it was not downloaded or copied to its end."
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = archive(folder.path(), &[("conversations.json", &chats(500))]);
    let bytes = fs::read(&path).unwrap();
    for length in [5, bytes.len() / 2, bytes.len() - 10] {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = read_files(std::slice::from_ref(&path)).err().unwrap();
        assert!(
            matches!(error, ReadError::CutOff { .. }),
            "{length}: {error}"
        );
    }
    // One byte of the packed data is changed.
    let mut other = bytes.clone();
    other[200] ^= 0xff;
    fs::write(&path, &other).unwrap();
    let error = read_files(&[path]).err().unwrap();
    assert!(!matches!(error, ReadError::Io { .. }), "{error}");
}

#[test]
fn exports_may_stand_one_behind_the_other() {
    let one = jsonl();
    let other = one.replace("Birds", "Trees");
    for joined in [
        format!("{one}{other}"),
        format!("{one}\n{other}\n\n"),
        format!("{one}{}", other.trim_end()),
    ] {
        let found = read_text("a.jsonl", &joined).unwrap();
        let titles: Vec<_> = found.chats.into_iter().map(|it| it.chat.title).collect();
        assert_eq!(titles, ["Birds", "Trees"]);
    }
    let half = read_text("a.jsonl", format!("{one}{}", &other[..200])).err();
    assert!(matches!(half, Some(ReadError::CutOff { .. })));
    for behind in [
        &one[60..],
        "{\"format\":\"other\",\"version\":1}\n",
        "hello\n",
    ] {
        let error = read_text("a.jsonl", format!("{one}{behind}"))
            .err()
            .unwrap();
        assert!(error.to_string().contains("line 6"), "{error}");
    }
}

#[test]
fn what_is_not_known_is_named() {
    for (name, content) in [
        ("a.json", "{}"),
        ("a.json", "[{\"a\":1}]"),
        ("a.json", "[null]"),
        ("a.json", "[[[]]]"),
        ("a.jsonl", "{\"a\":1}\n{\"a\":2}\n"),
        ("a.json", "[1, 2]"),
        ("a.json", "{\"presets\":[]}"),
        ("a.txt", "hello"),
        ("a.json", "{ not json"),
        ("a.bin", "\u{0}\u{1}\u{2}"),
    ] {
        let error = read_text(name, content).err().unwrap();
        assert!(
            matches!(error, ReadError::Unknown { .. }),
            "{content}: {error}"
        );
        assert!(error.to_string().contains(name), "{error}");
    }
    // Enough of the file was read.
    let other = "{\"a\":1}\n".repeat(2000) + "{";
    let error = read_text("a.jsonl", other).err().unwrap();
    assert!(matches!(error, ReadError::Unknown { .. }), "{error}");
    for empty in ["", "\u{feff}", "[]", " [ ] "] {
        let error = read_text("a.json", empty).err().unwrap();
        assert_eq!(error.to_string(), "There are no chats in a.json.");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = archive(folder.path(), &[("photo.json", "{}")]);
    assert!(matches!(
        read_files(&[path]),
        Err(ReadError::Unknown { .. })
    ));
    let missing = folder.path().join("none.json");
    assert!(matches!(read_files(&[missing]), Err(ReadError::Io { .. })));
}

#[test]
fn our_own_format_is_read_strictly() {
    let whole = read_text("a.jsonl", jsonl()).unwrap();
    assert_eq!((whole.chats.len(), whole.folders.len()), (1, 1));
    for (harm, with, says) in [
        (
            "\"version\":1",
            "\"version\":4",
            "newer version of Goldcrest (its format is 4",
        ),
        ("\"leaf\":1", "\"leaf\":7", "line 5"),
        (
            "\"uid\":\"u\"",
            "\"uid\":\"u\",\"mood\":\"x\"",
            "unknown field `mood`",
        ),
        (
            "\"state\":\"done\"",
            "\"state\":\"odd\"",
            "line 4, column 46: unknown variant `odd`",
        ),
        (
            "\"messages\":1",
            "\"messages\":2",
            "the counts do not match",
        ),
        (
            "\"id\":1,",
            "\"id\":1,\"parent\":1,",
            "names one that is not before it",
        ),
        ("{\"message\"", "{\"massage\"", "line 4"),
    ] {
        let error = read_text("a.jsonl", jsonl().replace(harm, with))
            .err()
            .unwrap();
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn titles_and_texts_without_end_are_cut() {
    let long = "x".repeat(5_000_000);
    let whole = json!([{ "uuid": "1", "name": "t".repeat(1_000_000), "chat_messages": [{ "sender": "human", "text": long }] }]);
    let found = read_text("c.json", whole.to_string()).unwrap();
    assert_eq!(found.tally.cut, 1);
    let whole = &found.chats[0];
    assert_eq!(whole.chat.title.chars().count(), 200);
    assert!(whole.chat.title.ends_with('…'));
    assert!(whole.messages[0].parts.text().len() < 4_000_100);
    assert!(
        whole.messages[0]
            .parts
            .text()
            .ends_with("too long to be imported.]")
    );
    let line = format!(
        "{{\"format\":\"goldcrest-chats\",\"version\":1}}\n{}",
        "x".repeat(70 << 20)
    );
    let error = read_text("a.jsonl", line).err().unwrap();
    assert!(
        error.to_string().contains("the line is too long"),
        "{error}"
    );
}

#[test]
fn a_nest_of_brackets_does_not_overflow() {
    for deep in ["[".repeat(1_000_000), "{\"a\":".repeat(1_000_000)] {
        let error = read_text("a.json", &deep).err().unwrap();
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn whoever_takes_the_chats_can_stop() {
    let (_folder, path) = file("c.json", chats(5));
    let mut taken = 0;
    let result = read(
        std::slice::from_ref(&path),
        &TimeZone::UTC,
        &mut |_, _| true,
        &mut |_| {
            taken += 1;
            taken < 3
        },
    );
    assert!(matches!(result, Err(ReadError::Stopped)) && taken == 3);
    let result = read(&[path], &TimeZone::UTC, &mut |_, _| false, &mut |_| true);
    assert!(matches!(result, Err(ReadError::Stopped)));
    // Within a chat, and in other data.
    let (_folder, blank) = file("blank.json", "[".to_owned() + &" ".repeat(10_000_000));
    let folder = tempfile::tempdir().unwrap();
    let zip = archive(folder.path(), &[("conversations.json", &chats(50_000))]);
    for path in [blank, zip] {
        let mut polled = 0;
        let mut progress = |_, _| {
            polled += 1;
            polled < 3
        };
        let result = read(&[path], &TimeZone::UTC, &mut progress, &mut |_| true);
        assert!(matches!(result, Err(ReadError::Stopped)));
        assert!(polled < 10, "{polled}");
    }
}

/// The peak memory of this process, in KiB.
#[cfg(target_os = "linux")]
pub fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// 500 MB, of which only one chat is in memory at a time. Run alone: the peak is the process's.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "it measures its process: `cargo test --test chat_files -- --ignored --exact damaged::a_large_file_is_not_in_memory`"]
fn a_large_file_is_not_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.json");
    let mut out = io::BufWriter::new(fs::File::create(&path).unwrap());
    let text = "How heavy is a goldcrest, and why? ".repeat(30);
    out.write_all(b"[").unwrap();
    let mut written = 0;
    let mut count = 0;
    while written < 500_000_000 {
        let messages: Vec<_> = (0..20)
            .map(|at| json!({ "uuid": at.to_string(), "sender": if at % 2 == 0 { "human" } else { "assistant" }, "text": text }))
            .collect();
        let chat = json!({ "uuid": count.to_string(), "name": "Birds", "chat_messages": messages })
            .to_string();
        if count > 0 {
            out.write_all(b",").unwrap();
        }
        out.write_all(chat.as_bytes()).unwrap();
        written += chat.len();
        count += 1;
    }
    out.write_all(b"]").unwrap();
    drop(out);
    let before = peak();
    let mut chats = 0;
    let read = read(&[path], &TimeZone::UTC, &mut |_, _| true, &mut |item| {
        chats += usize::from(matches!(item, Item::Chat(_)));
        true
    });
    read.unwrap();
    assert_eq!(chats, count);
    let more = peak() - before;
    assert!(more < 64 << 10, "{more} KiB");
}

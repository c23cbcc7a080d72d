//! Well-behaved and misbehaving children. The former are this test program, the latter lines of shell;
//! `tests/hostile.rs` has the app's own.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use chat_files::{Document, Item, Render, WriteError, WriteOptions};
use engine::Role;
use jiff::tz::TimeZone;
use serde_json::json;
use store::{ChatRecord, MessageRecord, WholeChat};
use tempfile::TempDir;

use super::*;

/// Variable that makes this program work as a child.
pub const VARIABLE: &str = "GOLDCREST_TEST_WORKER";

pub fn program() -> io::Result<Child> {
    let test = "worker::tests::a_child_works";
    program_with(["--exact", test, "--nocapture"].map(Into::into).into())
}

#[test]
fn a_child_works() {
    if std::env::var_os(VARIABLE).is_some() {
        serve().expect("it works");
    }
}

fn file(name: &str, content: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, content).expect("written");
    (folder, path)
}

fn whole(text: &str) -> WholeChat {
    let message = MessageRecord::new(1, Role::Assistant, text.to_owned(), 5);
    let chat = ChatRecord::new("u".into(), "Birds".into(), "2026-03-05".into(), 5, Some(1));
    WholeChat {
        chat,
        messages: vec![message],
    }
}

/// Reads a file: returns the items' names, or the failure.
fn names(path: &PathBuf) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let read = read(std::slice::from_ref(path), &mut |_, _| true, &mut |item| {
        names.push(match item {
            Item::File(name) => name,
            Item::Folder(folder) => folder.name,
            Item::Preset(preset) => preset.name,
            Item::Chat(whole) => format!("{}: {}", whole.chat.title, whole.messages.len()),
        });
        Ok(())
    });
    let tally = read.map_err(|failure| failure.message)?;
    tally.expect("not cancelled");
    Ok(names)
}

#[test]
fn what_a_child_reads_is_what_is_in_the_file() {
    let message = json!({ "sender": "human", "text": "Hi" });
    let chats = json!([
        { "uuid": "a", "name": "One", "chat_messages": [message, message] },
        { "uuid": "b", "name": "Two", "chat_messages": [message] },
    ]);
    let (_folder, path) = file("c.json", chats.to_string().as_bytes());
    assert_eq!(names(&path).expect("read"), ["c.json", "One: 2", "Two: 1"]);
    let (_folder, path) = file("c.json", b"neither");
    let message = names(&path).expect_err("it is no export");
    assert!(
        message.starts_with("c.json is not an export")
            && message.ends_with("Nothing was imported."),
        "{message}"
    );
    let message = names(&PathBuf::from("/no/such.json")).expect_err("it is not there");
    assert!(message.contains("such.json"), "{message}");
}

#[test]
fn what_a_child_renders_is_what_is_rendered_here() {
    let whole = whole("# Weight\n\nSix **grams**, $m = 6$.");
    for kind in [
        DocumentKind::Html,
        DocumentKind::Markdown,
        DocumentKind::Print,
    ] {
        let options = WriteOptions {
            thinking: true,
            zone: TimeZone::system(),
        };
        let rendered = |document: &mut dyn Render| {
            let mut out = Vec::new();
            document.begin(&mut out, &["Birds".into()]).expect("begun");
            for _ in 0..2 {
                let chat = document.chat(&mut out, &whole, &mut || true);
                chat.expect("rendered");
            }
            document.end(&mut out).expect("ended");
            String::from_utf8(out).expect("text")
        };
        let here = rendered(&mut Document::new(kind, options));
        assert_eq!(rendered(&mut Rendering::new(kind, true)), here);
    }
    let html = printed(&whole, true).expect("rendered");
    assert!(html.starts_with("<article"), "{html}");
}

#[test]
fn a_child_that_is_busy_ends_as_soon_as_it_is_not_wanted() {
    // Skipped content takes a while.
    let skipped = "0,".repeat(60 << 20);
    let chats = format!("[{{\"name\":\"x\",\"other\":[{skipped}0],\"chat_messages\":[]}}]");
    let (_folder, path) = file("c.json", chats.as_bytes());
    let begun = Instant::now();
    let mut asked = None;
    let mut go_on = |_, _| {
        let is_late = begun.elapsed() > Duration::from_millis(500);
        if is_late {
            asked.get_or_insert_with(Instant::now);
        }
        !is_late
    };
    let read = read(&[path], &mut go_on, &mut |_| Ok(()));
    assert!(
        matches!(read, Ok(None)),
        "{read:?} after {:?}",
        begun.elapsed()
    );
    let took = asked.expect("asked").elapsed();
    assert!(took < Duration::from_millis(200), "{took:?}");
}

#[cfg(unix)]
mod shell {
    use super::*;

    /// Returns the fault of a worker whose child is this line of shell.
    fn fault(script: &str) -> String {
        let child = Child {
            program: "/bin/sh".into(),
            // Its task is written before it continues.
            leading: vec![
                "-c".into(),
                format!("head -c 1 >/dev/null; {script}").into(),
            ],
            timeout: TIMEOUT,
            output_limit: 0,
        };
        let task = Task::Render {
            kind: DocumentKind::Html,
            thinking: true,
        };
        let received = Worker::start_in(&child, &task)
            .and_then(|mut worker| worker.receive(&mut || true).map(|_| ()));
        received.expect_err("a fault").to_string()
    }

    #[test]
    fn a_childs_end_has_a_reason() {
        for (script, reason) in [
            (
                "printf '\\0'; echo 'memory allocation of 5 bytes failed' >&2; kill -ABRT $$",
                "it needs more memory than it may take (1 GB)",
            ),
            (
                "printf '\\0'; echo 'thread has overflowed its stack' >&2; kill -ABRT $$",
                "it is nested too deeply",
            ),
            ("printf '\\0'; kill -XCPU $$", "it takes too long"),
            ("printf '\\0'; kill -TERM $$", "its process was ended"),
            ("printf '\\0'; exit 3", "its process failed"),
            ("printf '\\0\\377\\377\\377\\377'", "sent unreadable data"),
            (
                "head -c 100000 /dev/zero | tr '\\0' x",
                "sent unreadable data",
            ),
        ] {
            let found = fault(script);
            assert!(found.contains(reason), "{script}: {found}");
        }
    }
}

#[test]
fn output_that_fails_ends_a_rendering() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut rendering = Rendering::new(DocumentKind::Html, true);
    let written = rendering.chat(&mut Full, &whole("Hi"), &mut || true);
    assert!(
        matches!(written, Err(WriteError::Output(error)) if error.kind() == io::ErrorKind::StorageFull)
    );
    let cancelled = rendering.chat(&mut Vec::new(), &whole("Hi"), &mut || false);
    assert!(matches!(cancelled, Err(WriteError::Cancelled)));
}

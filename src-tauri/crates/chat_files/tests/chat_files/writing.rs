//! Exports in the three formats.

use std::fs;
use std::io::{self, Write};

use chat_files::{
    Document, DocumentKind, Format, Render, Target, WriteError, WriteOptions, Written, write,
};
use jiff::tz::TimeZone;
use store::{ChatId, MessageState, NewMessage, Part, Parts, Progress, Role, Store, ToolOutcome};

use crate::read_text;

fn message(
    store: &Store,
    chat: ChatId,
    parent: Option<store::MessageId>,
    role: Role,
    text: &str,
) -> store::MessageId {
    let message = NewMessage {
        chat,
        parent,
        role,
        state: MessageState::Done,
        parts: Parts::of_text(text),
        thinks: role == Role::Assistant,
        created_at: 1_772_700_000,
    };
    store.messages().add(&message).unwrap()
}

/// A chat in a folder, with two answers, and one that tries to break out.
fn filled() -> (Store, ChatId) {
    let store = Store::in_memory().unwrap();
    let chat = store
        .chats()
        .create("Birds <b>& *bees*", "2026-03-05", 1_772_700_000)
        .unwrap();
    let asked = message(
        &store,
        chat,
        None,
        Role::User,
        "How heavy?\n<script>alert(1)</script>",
    );
    message(&store, chat, Some(asked), Role::Assistant, "Five.");
    let answer = message(&store, chat, Some(asked), Role::Assistant, "");
    let progress = Progress {
        parts: Parts::of_answer(
            Some("Is it heavy?\n```\nopen".into()),
            "# Weight\n\nSix **grams**, $m = 6$.\n\n```rust\nfn main() {}",
        ),
        thinking_ms: Some(12_400),
        ..Progress::default()
    };
    store.messages().reopen(answer).unwrap();
    store.messages().journal(answer, &progress).unwrap();
    store
        .messages()
        .end(answer, MessageState::Stopped, None, None)
        .unwrap();
    message(&store, chat, Some(answer), Role::User, "Thanks");
    (store, chat)
}

fn options(thinking: bool) -> WriteOptions {
    WriteOptions {
        thinking,
        zone: TimeZone::UTC,
    }
}

fn write_all(
    store: &Store,
    chats: Option<&[ChatId]>,
    (format, thinking): (Format, bool),
    out: &mut dyn Write,
    goes_on: bool,
) -> Result<Written, WriteError> {
    let mut document = format
        .document()
        .map(|kind| Document::new(kind, options(thinking)));
    let document = document
        .as_mut()
        .map(|document| document as &mut dyn Render);
    write(&store.records(), chats, document, out, &mut |_, _| goes_on)
}

fn written(store: &Store, chats: Option<&[ChatId]>, format: Format, thinking: bool) -> String {
    let mut out = Vec::new();
    write_all(store, chats, (format, thinking), &mut out, true).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn markdown_is_read_by_people() {
    let (store, _) = filled();
    let text = written(&store, None, Format::Markdown, true);
    assert_eq!(
        text,
        "# Birds \\<b\\>& \\*bees\\*\n\n*5 March 2026*\n\n\
         ## You\n\n*5 March 2026, 08:40*\n\nHow heavy?\n<script>alert(1)</script>\n\n\
         ## Answer\n\n*5 March 2026, 08:40, version 2 of 2*\n\n\
         > **Thought for 12 s**\n>\n> Is it heavy?\n> ```\n> open\n> ```\n\n\
         ### Weight\n\nSix **grams**, $m = 6$.\n\n```rust\nfn main() {}\n```\n\n*Stopped.*\n\n\
         ## You\n\n*5 March 2026, 08:40*\n\nThanks\n"
    );
    assert!(!written(&store, None, Format::Markdown, false).contains("heavy?\n> "));
}

#[test]
fn calls_of_tools_and_their_results_are_shown_in_their_place() {
    let (store, chat) = filled();
    let leaf = store.chats().get(chat).unwrap().leaf;
    let call = Part::ToolCall {
        id: "call-1".into(),
        name: "weigh_*".into(),
        arguments: "{\"bird\": \"<wren>\"}".into(),
    };
    let result = Part::ToolResult {
        id: "call-1".into(),
        text: "9 g\n```".into(),
        outcome: ToolOutcome::Done,
        server: None,
    };
    let text = |text: &str| Part::Text { text: text.into() };
    let messages = [
        (Role::System, vec![text("Be brief.")]),
        (
            Role::Assistant,
            vec![text("I weigh it."), call, text("Done.")],
        ),
        (Role::Tool, vec![result]),
    ];
    let mut parent = leaf;
    for (role, parts) in messages {
        let message = NewMessage {
            chat,
            parent,
            role,
            state: MessageState::Done,
            parts: Parts(parts),
            thinks: false,
            created_at: 1_772_700_000,
        };
        parent = Some(store.messages().add(&message).unwrap());
    }
    let markdown = written(&store, None, Format::Markdown, false);
    let when = "*5 March 2026, 08:40*";
    assert!(
        markdown.ends_with(&format!(
            "## Instructions\n\n{when}\n\nBe brief.\n\n\
             ## Answer\n\n{when}\n\nI weigh it.\n\n\
             **Called weigh\\_\\***\n\n```json\n{{\"bird\": \"<wren>\"}}\n```\n\nDone.\n\n\
             ## Tool\n\n{when}\n\n**Result**\n\n````text\n9 g\n```\n````\n"
        )),
        "{markdown}"
    );
    let page = written(&store, None, Format::Html, false);
    for part in [
        "<h2 class=\"unseen\">Instructions</h2>",
        "<summary>Called weigh_*</summary><div dir=\"auto\">{&quot;bird&quot;: &quot;&lt;wren&gt;&quot;}</div>",
        "<summary>Result</summary><div dir=\"auto\">9 g",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let places = ["I weigh it.", "Called weigh_*", "Done.", "Result"];
    assert!(
        places
            .map(|part| page.find(part).expect("shown"))
            .is_sorted()
    );
}

#[test]
fn html_is_one_page_in_which_nothing_runs() {
    let (store, chat) = filled();
    let page = written(&store, None, Format::Html, true);
    assert!(page.starts_with("<!doctype html>"));
    for part in [
        "<title>Birds &lt;b&gt;&amp; *bees*</title>",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "<h3>Weight</h3>",
        "<strong>grams</strong>",
        "<math",
        "<summary>Thought for 12 s</summary>",
        "<p class=\"note\">Stopped.</p>",
        "version 2 of 2",
        "default-src 'none'",
        "prefers-color-scheme",
        "@media print",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for part in [
        "<script",
        "<img",
        "<link",
        "http://",
        "javascript:",
        "Five.",
    ] {
        assert!(!page.contains(part), "{part}");
    }
    assert!(!written(&store, None, Format::Html, false).contains("Is it heavy?"));
    let second = store
        .chats()
        .create("Another", "2026-03-05", 1_772_800_000)
        .unwrap();
    message(&store, second, None, Role::User, "Hi");
    let page = written(&store, None, Format::Html, true);
    assert!(page.contains("<h1>2 chats</h1>") && page.contains("<a href=\"#chat-2\">Another</a>"));
    let whole = store.records().read(chat).unwrap();
    let mut paper = Vec::new();
    Document::new(DocumentKind::Print, options(true))
        .chat(&mut paper, &whole, &mut || true)
        .unwrap();
    let paper = String::from_utf8(paper).unwrap();
    assert!(paper.starts_with("<article") && paper.contains("<details class=\"thinking\" open>"));
}

#[test]
fn jsonl_has_everything_and_the_folders_that_it_needs() {
    let (store, chat) = filled();
    for name in ["Empty", "Work"] {
        store.folders().create(name, 7).unwrap();
    }
    let work = store.folders().list().unwrap()[1].id;
    let values = vec![(chat, Some(work.0))];
    store
        .chats()
        .set(store::ChatField::Folder, &values)
        .unwrap();
    let all = written(&store, None, Format::Jsonl, false);
    let found = read_text("a.jsonl", &all).unwrap();
    assert_eq!(found.folders.len(), 2);
    assert_eq!(found.chats[0].messages.len(), 4);
    assert_eq!(found.chats[0].chat.folder.as_deref(), Some("Work"));
    let selection = written(&store, Some(&[chat]), Format::Jsonl, false);
    let found = read_text("a.jsonl", &selection).unwrap();
    assert_eq!(found.folders.len(), 1);
}

/// A writer that is full after this many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            Some(left) => self.0 = left,
            None => return Err(io::ErrorKind::StorageFull.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_and_an_end_are_errors_of_their_own() {
    let (store, _) = filled();
    for format in [Format::Jsonl, Format::Markdown, Format::Html] {
        let full = write_all(&store, None, (format, true), &mut Full(100), true);
        assert!(
            matches!(full, Err(WriteError::Output(error)) if error.kind() == io::ErrorKind::StorageFull)
        );
        let ended = write_all(&store, None, (format, true), &mut Full(1 << 20), false);
        assert!(matches!(ended, Err(WriteError::Cancelled)));
    }
}

#[test]
fn a_file_is_there_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.md");
    fs::write(&path, "before").unwrap();
    let names = || fs::read_dir(folder.path()).unwrap().count();
    let mut target = Target::begin(&path).unwrap();
    target.write_all(&[b'x'; 100_000]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    drop(target);
    assert_eq!(
        (names(), fs::read_to_string(&path).unwrap().as_str()),
        (1, "before")
    );
    let mut target = Target::begin(&path).unwrap();
    target.write_all(b"after").unwrap();
    target.keep().unwrap();
    assert_eq!(
        (names(), fs::read_to_string(&path).unwrap().as_str()),
        (1, "after")
    );
    let mut target = Target::begin(&folder.path().join("b.md")).unwrap();
    target.write_all(b"new").unwrap();
    target.keep().unwrap();
    assert_eq!(names(), 2);
    assert!(Target::begin(&folder.path().join("none/a.md")).is_err());
}

#[test]
fn nothing_but_a_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("folder")).unwrap();
    let mut names = vec!["folder"];
    #[cfg(unix)]
    {
        fs::write(path("file"), "before").unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("loose")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        names.extend(["link", "loose", "socket"]);
    }
    for name in names {
        let refused = Target::begin(&path(name)).map(|_| ());
        let refused = refused.expect_err(name);
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{name}");
    }
}

/// Titles, questions and thinking contain direction marks; each format for readers shows them as written.
#[test]
fn no_direction_is_set_in_what_a_person_reads() {
    const DECEPTIVE: &str = "a\u{202e}cod.exe\u{2066}b\u{200f}";
    let store = Store::in_memory().unwrap();
    let chat = store.chats().create(DECEPTIVE, "2026-03-05", 1_772_700_000);
    let chat = chat.unwrap();
    let asked = message(&store, chat, None, Role::User, DECEPTIVE);
    let answer = message(&store, chat, Some(asked), Role::Assistant, "");
    let progress = Progress {
        parts: Parts::of_answer(Some(DECEPTIVE.into()), "Yes."),
        ..Progress::default()
    };
    store.messages().reopen(answer).unwrap();
    store.messages().journal(answer, &progress).unwrap();
    let done = MessageState::Done;
    store.messages().end(answer, done, None, None).unwrap();
    for format in [Format::Markdown, Format::Html] {
        let text = written(&store, Some(&[chat]), format, true);
        assert!(text.matches("acod.exeb").count() > 2, "{text}");
        assert!(
            !text.contains(['\u{202e}', '\u{2066}', '\u{200f}']),
            "{text}"
        );
    }
}

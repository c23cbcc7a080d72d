//! Adversarial files and chats that try to exhaust memory, run forever or overflow the stack: the app survives, reports
//! the reason, imports nothing that it refuses, and goes on.

use std::fmt::Write as _;
use std::process::Child;

use serde_json::{Value, json};

use super::*;

/// Bytes of a file that lists only empty items.
const LARGE: usize = 40 << 20;

struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("written");
        path
    }

    fn command(&self, arguments: &[&OsStr]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goldcrest"));
        command
            .env("GOLDCREST_DATA_DIR", self.path("data"))
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&OsStr]) -> Output {
        let begun = Instant::now();
        let output = self.command(arguments).output().expect("it starts");
        assert!(begun.elapsed() < 3 * LONGEST, "{:?}", begun.elapsed());
        output
    }

    fn import(&self, file: &Path) -> Output {
        self.run(&["import".as_ref(), file.as_os_str()])
    }

    /// Returns the titles of all chats.
    fn titles(&self) -> Vec<Value> {
        let listed = self.run(&["chats".as_ref(), "--json".as_ref()]);
        let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).expect("a list");
        listed.iter().map(|chat| chat["title"].clone()).collect()
    }

    /// Makes a valid chat.
    fn honest(&self) -> PathBuf {
        let message = json!({ "sender": "human", "text": "How heavy?" });
        let chats = json!([{ "uuid": "honest", "name": "Honest", "chat_messages": [message] }]);
        self.file("conversations.json", &chats.to_string())
    }
}

/// Repeats `part` as often as it fits.
fn filled(before: &str, part: &str, last: &str, after: &str) -> String {
    let parts = part.repeat(LARGE / part.len());
    [before, &parts, last, after].concat()
}

/// Makes a chat of ChatGPT whose only message has this content.
fn chatgpt(content: &str) -> [String; 2] {
    let before = format!(
        "[{{\"title\":\"Bomb\",\"mapping\":{{\"a\":{{\"id\":\"a\",\"message\":{{\"author\":{{\"role\":\"assistant\"}},\
         \"content\":{{{content}:["
    );
    [before, "]}}}}}]".to_owned()]
}

/// Makes an answer with children, each of which is an answer.
fn children(length: usize, count: usize) -> String {
    let node = |id: &str, parent: Value, text: String, children: Vec<String>| {
        let content = json!({ "content_type": "text", "parts": [text] });
        let message = json!({ "author": { "role": "assistant" }, "content": content });
        json!({ "id": id, "parent": parent, "children": children, "message": message })
    };
    let ids: Vec<String> = (0..count).map(|at| format!("c{at}")).collect();
    let mut mapping = serde_json::Map::new();
    let root = node("root", Value::Null, "x".repeat(length), ids.clone());
    mapping.insert("root".into(), root);
    for id in ids {
        let child = node(&id, json!("root"), "y".into(), Vec::new());
        mapping.insert(id, child);
    }
    json!([{ "title": "Bomb", "mapping": mapping }]).to_string()
}

/// Makes a chain of answers.
fn chain(count: usize) -> String {
    let mut text = String::from("[{\"title\":\"Bomb\",\"mapping\":{");
    for at in 0..count {
        let comma = if at > 0 { "," } else { "" };
        let parent = at
            .checked_sub(1)
            .map_or(String::new(), |at| format!("\"parent\":\"n{at}\","));
        let _ = write!(
            text,
            "{comma}\"n{at}\":{{{parent}\"children\":[\"n{}\"],\"message\":{{\"author\":{{\"role\":\"assistant\"}},\
             \"content\":{{\"content_type\":\"text\",\"parts\":[\"x\"]}}}}}}",
            at + 1
        );
    }
    text + "}}]"
}

/// Returns names and contents of files that once took gigabytes or hours.
fn bombs() -> Vec<(&'static str, &'static str, String)> {
    let [thoughts, thoughts_end] = chatgpt("\"content_type\":\"thoughts\",\"thoughts\"");
    let [parts, parts_end] = chatgpt("\"content_type\":\"text\",\"parts\"");
    let versions = "{\"name\":\"Bomb\",\"messages\":[{\"currentlySelected\":0,\"versions\":[";
    vec![
        (
            "mapping",
            "a.json",
            filled(
                "[{\"title\":\"Bomb\",\"mapping\":{",
                "\"\":{},",
                "\"\":{}",
                "}}]",
            ),
        ),
        (
            "claude",
            "a.json",
            filled(
                "[{\"name\":\"Bomb\",\"chat_messages\":[",
                "{},",
                "{}",
                "]}]",
            ),
        ),
        (
            "lm messages",
            "a.conversation.json",
            filled("{\"name\":\"Bomb\",\"messages\":[", "{},", "{}", "]}"),
        ),
        (
            "lm versions",
            "a.conversation.json",
            filled(versions, "{},", "{}", "]}]}"),
        ),
        (
            "thoughts",
            "a.json",
            filled(&thoughts, "{},", "{}", &thoughts_end),
        ),
        ("parts", "a.json", filled(&parts, "0,", "0", &parts_end)),
        (
            "objects",
            "a.json",
            filled(&parts, "{\"\":0},", "{\"\":0}", &parts_end),
        ),
        ("children", "a.json", children(1_000_000, 4_000)),
        ("chain", "a.json", chain(200_000)),
        ("deep", "a.json", "[{\"mapping\":".repeat(1_000_000)),
    ]
}

#[test]
fn a_file_that_fills_the_memory_ends_its_reader_alone() {
    each(bombs(), |(name, file, content)| {
        let home = Home::new();
        let path = home.file(file, &content);
        let output = home.import(&path);
        let errors = errors(&output);
        match output.status.code() {
            Some(0) => {}
            Some(1) => {
                assert!(errors.contains("Nothing was imported."), "{name}: {errors}");
                assert!(errors.contains(file), "{name}: {errors}");
                assert_eq!(errors.lines().count(), 1, "{name}: {errors}");
                assert!(home.titles().is_empty(), "{name}");
            }
            _ => panic!("{name}: {}: {errors}", output.status),
        }
        assert!(!errors.contains("panicked"), "{name}: {errors}");
        let before = home.titles();
        let output = home.import(&home.honest());
        assert_eq!(output.status.code(), Some(0), "{name}: the next import");
        assert_eq!(home.titles().len(), before.len() + 1, "{name}");
    });
}

/// Returns self-repeating formulas, each of which once crashed the app or took a gigabyte.
fn formulas() -> Vec<String> {
    let nested = |first: usize, second: usize, third: usize, length: usize| {
        format!(
            "$\\def\\a#1;{{{}}}\\def\\b#1;{{{}}}\\def\\c#1;{{{}}}\\a {};$",
            "\\b #1;".repeat(first),
            "\\c #1;".repeat(second),
            "#1".repeat(third),
            "x".repeat(length)
        )
    };
    let relaxed = format!(
        "$\\def\\a{{{}}}\\def\\b{{{}}}\\def\\c{{{}}}\\c$",
        "\\relax ".repeat(40),
        "\\a".repeat(90),
        "\\b".repeat(90)
    );
    vec![
        nested(30, 30, 60, 20),
        nested(60, 60, 150, 60),
        nested(95, 95, 250, 80),
        relaxed,
        format!("${}x$", "\\hat".repeat(490)),
        format!("${}$", "{".repeat(1990)),
        format!(
            "$\\begin{{array}}{{{}}}{}\\end{{array}}$",
            "c".repeat(900),
            "\\\\".repeat(500)
        ),
    ]
}

#[test]
fn a_chat_that_is_made_to_harm_is_exported_like_any_other() {
    let home = Home::new();
    let mut answers = formulas();
    answers.push("\\(".repeat(100_000));
    answers.push(format!("{} $ \\)", "\\(".repeat(100_000)));
    answers.push("\\`` \\( ".repeat(50_000));
    answers.push(">".repeat(100_000));
    answers.push("[".repeat(100_000));
    let message = |text: &String| json!({ "sender": "assistant", "text": text });
    let messages: Vec<Value> = answers.iter().map(message).collect();
    let chats = json!([{ "uuid": "a", "name": "Harm", "chat_messages": messages }]);
    let file = home.file("conversations.json", &chats.to_string());
    assert_eq!(home.import(&file).status.code(), Some(0));
    let out = home.path("out");
    fs::create_dir(&out).expect("made");
    for name in ["a.html", "a.md", "a.jsonl"] {
        let path = out.join(name);
        let output = home.run(&["export".as_ref(), "--all".as_ref(), path.as_os_str()]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", errors(&output));
        let written = fs::metadata(&path).expect("written").len();
        assert!(written < 64 << 20, "{name}: {written}");
    }
    assert_eq!(
        fs::read_dir(&out).expect("there").count(),
        3,
        "nothing else is left"
    );
}

/// Makes an export whose one chat has much skipped content, so that its result takes long.
#[cfg(unix)]
fn slow(home: &Home) -> PathBuf {
    let skipped = "0,".repeat(100 << 20);
    let chats = format!("[{{\"name\":\"Slow\",\"other\":[{skipped}0],\"chat_messages\":[]}}]");
    home.file("slow.json", &chats)
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(sent.is_ok_and(|status| status.success()));
}

/// Checks that a process has limits on all resources.
#[cfg(target_os = "linux")]
#[track_caller]
fn limited(process: &str) {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).expect("it runs");
    for name in ["cpu time", "data size", "stack size", "core file size"] {
        let name = format!("Max {name}");
        let line = limits.lines().find_map(|line| line.strip_prefix(&name));
        let soft = line.expect("a limit").split_whitespace().next();
        assert_ne!(soft, Some("unlimited"), "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_a_busy_reader_at_once_and_so_does_the_end_of_its_parent() {
    /// Returns the processes that this one has started.
    fn children(parent: u32) -> Vec<String> {
        let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let list = list.unwrap_or_default();
        list.split_whitespace().map(str::to_owned).collect()
    }
    let home = Home::new();
    let file = slow(&home);
    for name in ["-INT", "-KILL"] {
        let mut import = home
            .command(&["import".as_ref(), file.as_os_str()])
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let begun = Instant::now();
        let readers = loop {
            let readers = children(import.id());
            if !readers.is_empty() {
                break readers;
            }
            assert!(begun.elapsed() < LONGEST, "no reader starts");
            thread::sleep(Duration::from_millis(5));
        };
        thread::sleep(Duration::from_millis(300));
        for reader in &readers {
            limited(reader);
        }
        let sent = Instant::now();
        signal(&import, name);
        let status = import.wait().expect("it ends");
        let took = sent.elapsed();
        assert!(took < Duration::from_secs(2), "{name}: {took:?}");
        if name == "-INT" {
            assert_eq!(status.code(), Some(130));
        }
        let is_there = |reader: &String| Path::new("/proc").join(reader).exists();
        while readers.iter().any(is_there) {
            assert!(
                sent.elapsed() < Duration::from_secs(5),
                "{name}: it reads on"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }
    let output = home.import(&home.honest());
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert_eq!(home.titles(), ["Honest"]);
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_opened() {
    let home = Home::new();
    let pipe = home.path("pipe.json");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    for path in [pipe.as_path(), Path::new("/dev/zero")] {
        let output = home.import(path);
        assert_eq!(output.status.code(), Some(1));
        let errors = errors(&output);
        assert!(errors.contains("is not a file"), "{errors}");
        assert!(errors.contains("Nothing was imported."), "{errors}");
    }
}

/// Checks that no file holds an image of the memory, as temporary chats must be in no file.
#[cfg(target_os = "linux")]
#[test]
fn nothing_leaves_an_image_of_its_memory() {
    let home = Home::new();
    let mut chat = home
        .command(&["import".as_ref(), slow(&home).as_os_str()])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let begun = Instant::now();
    let is_limited = || {
        let limits = fs::read_to_string(format!("/proc/{}/limits", chat.id())).expect("it runs");
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"));
        let line = line.expect("a limit").split_whitespace();
        line.skip(4)
            .take(2)
            .all(|limit| limit == "1" || limit == "0")
    };
    while !is_limited() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "it would leave one"
        );
        thread::sleep(Duration::from_millis(10));
    }
    chat.kill().expect("it ran");
    chat.wait().expect("it ends");
}

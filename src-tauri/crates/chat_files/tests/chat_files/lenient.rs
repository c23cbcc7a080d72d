//! Values that violate their format are skipped, counted and named, and all the rest is read.

use std::fs;
use std::path::PathBuf;

use chat_files::{Omissions, Source};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::foreign::{chatgpt, claude, jan, lm_studio, node, said};
use crate::{Found, archive, file, outline, read_files, read_text};

/// Half a surrogate pair, which no JSON library writes.
const HALF: &str = "half of a pair";

fn text_of(json: &Value) -> String {
    json.to_string().replace(HALF, r"\ud83d")
}

/// Adds the pointers to all values in a value, itself included.
fn places(value: &Value, at: &str, places: &mut Vec<String>) {
    places.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                places_below(field, at, key, places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places_below(item, at, &index.to_string(), places);
            }
        }
        _ => {}
    }
}

fn places_below(value: &Value, at: &str, key: &str, found: &mut Vec<String>) {
    places(value, &format!("{at}/{key}"), found);
}

/// Passes on the value with each of its fields in turn replaced by each kind of JSON.
fn each_as_another(value: &Value, mut each: impl FnMut(&str, &Value)) {
    let mut all = Vec::new();
    places(value, "", &mut all);
    for place in &all {
        let others = [
            json!(null),
            json!(true),
            json!(-7),
            json!(1.5e300),
            json!("text"),
            json!(""),
            json!(HALF),
            json!([]),
            json!([null, 7, "text", [], {}]),
            json!({}),
            json!({ "text": null, "type": 7, "content": [{}] }),
        ];
        for other in others {
            let mut changed = value.clone();
            *changed.pointer_mut(place).unwrap() = other.clone();
            each(&format!("{place} as {other}"), &changed);
        }
    }
}

pub fn titles(found: &Found) -> Vec<&str> {
    found
        .chats
        .iter()
        .map(|it| it.chat.title.as_str())
        .collect()
}

fn assert_last(found: &Found, last: &str, change: &str) {
    assert_eq!(titles(found).last(), Some(&last), "{change}");
    assert!(found.chats.len() <= 2, "{change}");
}

#[test]
fn each_field_of_chatgpt_may_be_anything() {
    let mut good = chatgpt();
    good["title"] = json!("Good");
    each_as_another(&chatgpt(), |change, chat| {
        let found = read_text("c.json", text_of(&json!([chat, good]))).expect(change);
        assert_last(&found, "Good", change);
        assert_eq!(outline(found.chats.last().unwrap()).len(), 6, "{change}");
    });
}

#[test]
fn each_field_of_claude_may_be_anything() {
    let mut good = claude();
    good["name"] = json!("Good");
    each_as_another(&claude(), |change, chat| {
        let found = read_text("c.json", text_of(&json!([chat, good]))).expect(change);
        assert_last(&found, "Good", change);
    });
}

#[test]
fn each_field_of_lm_studio_may_be_anything() {
    let (folder, first) = file("a/1.conversation.json", "");
    let second = first.with_file_name("2.conversation.json");
    let mut good = lm_studio();
    good["name"] = json!("Good");
    fs::write(second, good.to_string()).unwrap();
    each_as_another(&lm_studio(), |change, chat| {
        fs::write(&first, text_of(chat)).unwrap();
        let found = read_files(&[folder.path().to_owned()]).expect(change);
        assert_last(&found, "Good", change);
    });
}

#[test]
fn each_field_of_openais_messages_may_be_anything() {
    let sample = json!({ "id": "x", "title": "Birds", "created": 5, "messages": [
        { "role": "system", "content": "Be short." },
        { "role": "user", "content": [{ "type": "text", "text": "How heavy?" }, { "type": "image_url", "image_url": { "url": "data:" } }] },
        { "role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [
            { "id": "1", "type": "function", "function": { "name": "scale", "arguments": "{}" } }
        ] },
        { "role": "tool", "tool_call_id": "1", "content": "6" },
        { "role": "assistant", "content": "Six grams.", "refusal": null },
    ] });
    let mut good = sample.clone();
    good["title"] = json!("Good");
    each_as_another(&sample, |change, chat| {
        let lines = format!("{}\n{good}\n", text_of(chat));
        // Text that begins otherwise is not an export.
        if !lines.starts_with(['{', '[']) {
            return;
        }
        let found = read_text("c.jsonl", lines).expect(change);
        assert_last(&found, "Good", change);
    });
}

fn jan_folder(chats: &[(&str, &str, &str)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (name, thread, messages) in chats {
        let path = folder.path().join("threads").join(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("thread.json"), thread).unwrap();
        fs::write(path.join("messages.jsonl"), messages).unwrap();
    }
    let path = folder.path().to_owned();
    (folder, path)
}

fn lines(messages: &[Value]) -> String {
    messages.iter().map(|it| text_of(it) + "\n").collect()
}

#[test]
fn each_field_of_jan_may_be_anything() {
    let (thread, messages) = jan();
    let mut good = thread.clone();
    good["title"] = json!("Good");
    let (good, good_lines) = (good.to_string(), lines(&messages));
    let whole = json!({ "thread": thread, "messages": messages });
    let (_folder, path) = jan_folder(&[("b", &good, &good_lines)]);
    let first = path.join("threads/a");
    fs::create_dir_all(&first).unwrap();
    each_as_another(&whole, |change, chat| {
        let messages = chat["messages"].as_array().cloned().unwrap_or_default();
        fs::write(first.join("thread.json"), text_of(&chat["thread"])).unwrap();
        fs::write(first.join("messages.jsonl"), lines(&messages)).unwrap();
        let found = read_files(std::slice::from_ref(&path)).expect(change);
        assert_last(&found, "Good", change);
    });
}

pub fn left_out(count: usize, names: &[&str]) -> Omissions {
    Omissions {
        count,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        others: 0,
    }
}

/// A question and its answer, altered by `change`.
pub fn pair(title: &str, change: impl Fn(&mut Value)) -> Value {
    let mapping: serde_json::Map<String, Value> = [
        node("root", None, &["q"], &Value::Null),
        node("q", Some("root"), &["a"], &said("user", "Question")),
        node("a", Some("q"), &[], &said("assistant", "Answer")),
    ]
    .into_iter()
    .collect();
    let mut chat = json!({ "title": title, "id": title, "create_time": 1, "current_node": "a", "mapping": mapping });
    change(&mut chat);
    chat
}

#[test]
fn odd_chats_of_chatgpt_are_read_as_far_as_they_can_be() {
    type Change = fn(&mut Value);
    let whole = ["*->1 user: Question", "*1>2 assistant: Answer"];
    let changes: [(&str, Change, &[&str]); 9] = [
        (
            "content as text",
            |it| it["mapping"]["q"]["message"]["content"] = json!("Question"),
            &whole,
        ),
        (
            "content as a list",
            |it| it["mapping"]["q"]["message"]["content"] = json!(["Question", null]),
            &whole,
        ),
        (
            "parts as text",
            |it| it["mapping"]["a"]["message"]["content"]["parts"] = json!("Answer"),
            &whole,
        ),
        (
            "children null",
            |it| it["mapping"]["q"]["children"] = json!(null),
            &whole,
        ),
        (
            "parent as a number",
            |it| it["mapping"]["a"]["parent"] = json!(7),
            &whole,
        ),
        (
            "no metadata",
            |it| it["mapping"]["a"]["message"]["metadata"] = json!(null),
            &whole,
        ),
        (
            "an ISO date",
            |it| it["create_time"] = json!("2023-11-14T22:13:20Z"),
            &whole,
        ),
        (
            "a mapping as a list",
            |it| {
                let nodes = it["mapping"]
                    .as_object()
                    .unwrap()
                    .values()
                    .cloned()
                    .collect();
                it["mapping"] = Value::Array(nodes);
            },
            &whole,
        ),
        ("half a pair", |it| it["title"] = json!(HALF), &whole),
    ];
    for (name, change, expected) in changes {
        let found = read_text("c.json", text_of(&json!([pair("Odd", change)]))).expect(name);
        assert_eq!(outline(&found.chats[0]), expected, "{name}");
        assert_eq!(found.tally.unread_messages, Omissions::default(), "{name}");
    }
    let dated = pair("Odd", |it| {
        it["create_time"] = json!("2023-11-14T22:13:20Z")
    });
    let found = read_text("c.json", json!([dated]).to_string()).unwrap();
    assert_eq!(found.chats[0].chat.created_at, 1_700_000_000);
    let found = read_text(
        "c.json",
        json!([pair("Odd", |it| it["title"] = json!(7))]).to_string(),
    );
    assert_eq!(titles(&found.unwrap()), ["7"]);
}

#[test]
fn what_cannot_be_read_is_counted_and_named() {
    let odd: [fn(&mut Value); 4] = [
        |it| it["mapping"]["q"]["message"]["author"]["role"] = json!(null),
        |it| it["mapping"]["q"] = json!(7),
        |it| it["mapping"]["q"]["message"] = json!("text"),
        |it| it["mapping"]["q"]["message"]["content"] = json!(7),
    ];
    for change in odd {
        let chats = json!([pair("Odd", change), null, pair("Good", |_| {}), { "a": 1 }]);
        let found = read_text("c.json", chats.to_string()).unwrap();
        assert_eq!(titles(&found), ["Odd", "Good"]);
        assert_eq!(outline(&found.chats[0]), ["*->1 assistant: Answer"]);
        assert_eq!(found.tally.unread_messages, left_out(1, &["“Odd”"]));
        assert_eq!(
            found.tally.unread_chats,
            left_out(2, &["number 2 in c.json", "number 4 in c.json"])
        );
    }
    let none = pair("None", |it| it["mapping"] = json!("text"));
    let found = read_text("c.json", json!([none, pair("Good", |_| {})]).to_string()).unwrap();
    assert_eq!(found.tally.unread_chats, left_out(1, &["“None”"]));
    // The list of names is limited.
    let mut many: Vec<Value> = vec![pair("Good", |_| {})];
    many.resize(20, Value::Null);
    let unread = read_text("c.json", json!(many).to_string())
        .unwrap()
        .tally
        .unread_chats;
    assert_eq!(
        (unread.count, unread.names.len(), unread.others),
        (19, 5, 14)
    );
    // A file with one known key is an export.
    let found = read_text("c.json", r#"{"mapping": 7}"#).unwrap();
    assert_eq!((found.chats.len(), found.tally.unread_chats.count), (0, 1));
}

#[test]
fn odd_messages_of_claude_are_read() {
    let message = |content: Value| json!([{ "uuid": "c", "chat_messages": [{ "uuid": "1", "sender": "human", "content": content }] }]);
    for content in [
        json!([null, { "type": "text", "text": "Hi" }]),
        json!("Hi"),
        json!(["Hi"]),
        json!({ "type": "text", "text": "Hi" }),
    ] {
        let found = read_text("c.json", message(content).to_string()).unwrap();
        assert_eq!(outline(&found.chats[0]), ["*->1 user: Hi"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let full = json!([claude()]).to_string();
    let files = [
        ("conversations-000.json", "[]"),
        ("conversations-001.json", full.as_str()),
    ];
    let found = read_files(&[archive(folder.path(), &files)]).unwrap();
    assert_eq!((found.chats.len(), found.tally.unknown_files.count), (1, 0));
}

#[test]
fn odd_chats_of_lm_studio_are_read() {
    for selected in [json!(null), json!(-1), json!("1"), json!(9)] {
        let mut chat = lm_studio();
        chat["messages"][0]["currentlySelected"] = selected;
        chat["createdAt"] = json!("2025-01-16T04:00:00.000Z");
        let steps = &mut chat["messages"][1]["versions"][1]["steps"];
        steps[1]["content"] = json!({ "type": "text", "text": "Six grams." });
        let found = read_text("1.conversation.json", chat.to_string()).unwrap();
        assert_eq!(
            outline(&found.chats[0])[2],
            "*1>3 assistant: [Regulus.] Six grams."
        );
        assert_eq!(found.chats[0].chat.created_at, 1_737_000_000);
    }
}

/// Lines after a crash.
#[test]
fn odd_chats_of_jan_are_read() {
    let one = |role: &str, text: &str| json!({ "role": role, "content": [{ "type": "text", "text": { "value": text } }], "created_at": 1 });
    let (question, answer) = (one("user", "Q"), one("assistant", "A").to_string());
    let whole = ["*->1 user: Q", "*1>2 assistant: A"];
    let plain = json!({ "role": "user", "content": "Q", "created_at": "2025-05-01T10:00:00Z" });
    let text = json!({ "role": "user", "content": [{ "type": "text", "text": "Q" }] });
    for (messages, unread) in [
        (
            format!("{question}\n{answer}\n{{\"role\":\"user\",\"content\":[{{\"ty"),
            1,
        ),
        (format!("{question}{answer}\n"), 0),
        (format!("{plain}\n{answer}"), 0),
        (format!("{text}\n\n{answer}"), 0),
        (format!("{question}\n7\n{{}}\n\"text\"\n{answer}"), 3),
    ] {
        let (_folder, path) = jan_folder(&[("a", r#"{"id": "a", "title": "Birds"}"#, &messages)]);
        let found = read_files(&[path]).unwrap();
        assert_eq!(outline(&found.chats[0]), whole, "{messages}");
        assert_eq!(found.tally.unread_messages.count, unread, "{messages}");
    }
    let messages = format!("{question}\n{answer}");
    let (_folder, path) = jan_folder(&[
        ("a", "{ not JSON", &messages),
        ("b", r#"{"id": "b", "title": "Good"}"#, &messages),
        ("c", "", ""),
    ]);
    let found = read_files(&[path]).unwrap();
    assert_eq!(titles(&found), ["", "Good"]);
    assert_eq!(found.chats[0].chat.uid, "jan:a");
    assert_eq!(found.tally.unread_chats.count, 1);
}

#[test]
fn one_file_of_jan_is_one_chat() {
    let message = json!({ "role": "user", "content": "Hi" }).to_string();
    let (_folder, path) = jan_folder(&[
        ("a", r#"{"id": "a"}"#, &message),
        ("b", r#"{"id": "b"}"#, &message),
    ]);
    let threads = path.join("threads");
    for file in ["thread.json", "messages.jsonl"] {
        fs::write(
            threads.join(file),
            fs::read(threads.join("a").join(file)).unwrap(),
        )
        .unwrap();
        let found = read_files(&[threads.join(file)]);
        assert!(file != "messages.jsonl" || found.unwrap().chats.len() == 1);
    }
}

#[test]
fn other_files_of_a_folder_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("data.jsonl", "{\"a\":1}\n{\"a\":2}\n");
    write("text.jsonl", "hello\n");
    write("1.conversation.json", "{\"name\": \"cut off\", \"mess");
    let path = [folder.path().to_owned()];
    let found = read_files(&path).unwrap();
    assert_eq!((found.chats.len(), found.tally.unread_chats.count), (0, 1));
    write("2.conversation.json", &lm_studio().to_string());
    let found = read_files(&path).unwrap();
    assert_eq!(titles(&found), ["Birds"]);
    assert_eq!(found.tally.unknown_files.count, 2);
    let name = &found.tally.unknown_files.names[0];
    assert!(name.starts_with("data.jsonl in "), "{name}");
}

#[test]
fn a_chat_without_dates_is_dated_by_its_import() {
    let before = std::time::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_secs()
        .cast_signed();
    let chat = json!({ "messages": [{ "role": "user", "content": "Q" }, { "role": "assistant", "content": "A" }] });
    let found = read_text("messages.json", chat.to_string()).unwrap();
    let whole = &found.chats[0];
    assert!(whole.chat.created_at >= before, "{}", whole.chat.created_at);
    let dates = whole.messages.iter().map(|message| message.created_at);
    assert!(dates.into_iter().all(|at| at == whole.chat.created_at));
}

#[test]
fn openais_messages_are_called_so() {
    let chat = |text: &str| {
        json!({ "messages": [
        { "role": "system", "content": "Be short." },
        { "role": "user", "content": text },
        { "role": "assistant", "content": "Hello" },
    ] })
    };
    let found = read_text("a.json", chat("Hi").to_string()).unwrap();
    assert_eq!(found.tally.sources, [Source::OpenAi]);
    assert_eq!(
        outline(&found.chats[0]),
        ["*->1 user: Hi", "*1>2 assistant: Hello"]
    );
    for text in [
        format!("{}\n{}\n", chat("Hi"), chat("Good morning")),
        format!("{}\n{}", chat("Hi"), chat("Good morning")),
        json!([chat("Hi"), chat("Good morning")]).to_string(),
    ] {
        let found = read_text("a.jsonl", text).unwrap();
        assert_eq!(found.chats.len(), 2);
        assert_ne!(found.chats[0].chat.uid, found.chats[1].chat.uid);
        assert_eq!(found.tally.sources, [Source::OpenAi]);
    }
}

#[test]
fn utf_16_is_read() {
    let ours =
        "{\"format\":\"goldcrest-chats\",\"version\":1}\n{\"end\":{\"chats\":0,\"messages\":0}}\n";
    for text in [ours.to_owned(), json!([claude()]).to_string()] {
        for bytes in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            let units = format!("\u{feff}{text}");
            let encoded: Vec<u8> = units.encode_utf16().flat_map(bytes).collect();
            let found = read_text("a.json", encoded).unwrap();
            assert_eq!(
                found.chats.len(),
                read_text("a.json", &text).unwrap().chats.len()
            );
        }
    }
}

#[test]
fn half_a_pair_in_our_own_format_is_replaced() {
    let text = [
        r#"{"format":"goldcrest-chats","version":1}"#,
        r#"{"chat":{"uid":"u","title":"cut \ud83d","today":"2026-03-05","createdAt":1,"updatedAt":2,"leaf":1}}"#,
        r#"{"message":{"id":1,"role":"user","state":"done","text":"\ude00 \ud83d\ude00","createdAt":1}}"#,
        r#"{"end":{"chats":1,"messages":1}}"#,
    ];
    let found = read_text("a.jsonl", text.join("\n")).unwrap();
    assert_eq!(titles(&found), ["cut \u{fffd}"]);
    assert_eq!(outline(&found.chats[0]), ["*->1 user: \u{fffd} 😀"]);
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_named() {
    let mut bytes = text_of(&json!([pair("Odd", |_| {}), pair("Good", |_| {})])).into_bytes();
    let at = bytes.windows(6).position(|it| it == b"Answer").unwrap();
    bytes[at + 1] = 0xff;
    let found = read_text("c.json", &bytes).unwrap();
    assert_eq!(titles(&found), ["Odd", "Good"]);
    assert!(outline(&found.chats[0])[1].ends_with("A\u{fffd}swer"));
    assert_eq!(found.tally.replaced, left_out(1, &["c.json"]));

    let mut own = b"{\"format\":\"goldcrest-chats\",\"version\":1}\n{\"chat\":{\"uid\":\"u\",\"title\":\"Gr\xf6\xdfe\",\"today\":\"2026-03-05\",\"createdAt\":1,\"updatedAt\":2}}\n".to_vec();
    own.extend_from_slice(b"{\"end\":{\"chats\":1,\"messages\":0}}\n");
    let found = read_text("a.jsonl", &own).unwrap();
    assert_eq!(titles(&found), ["Gr\u{fffd}\u{fffd}e"]);
    assert_eq!(found.tally.replaced, left_out(2, &["a.jsonl"]));

    let (thread, messages) = jan();
    let (_folder, path) = jan_folder(&[("a", &thread.to_string(), "")]);
    let mut bytes = lines(&messages).into_bytes();
    let at = bytes.windows(3).position(|it| it == b"gra").unwrap();
    bytes[at] = 0xc3;
    fs::write(path.join("threads/a/messages.jsonl"), bytes).unwrap();
    assert_eq!(read_files(&[path]).unwrap().tally.replaced.count, 1);
}

#[test]
fn a_number_out_of_range_is_absent() {
    let chats = json!([
        pair("Odd", |it| it["create_time"] = json!("when")),
        pair("Good", |_| {})
    ]);
    for number in ["1e999", "-1e999", "NaN", "Infinity"] {
        let found = read_text("c.json", chats.to_string().replace("\"when\"", number)).unwrap();
        assert_eq!(titles(&found), ["Odd", "Good"], "{number}");
        assert_eq!(found.chats[0].messages.len(), 2);
    }
}

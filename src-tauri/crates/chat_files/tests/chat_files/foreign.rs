//! Exports of other programs, in the shapes that users have.

use std::fs;

use chat_files::Source;
use serde_json::{Value, json};
use store::MessageState;

use crate::{archive, file, outline, read_files, read_text};

pub fn node(id: &str, parent: Option<&str>, children: &[&str], message: &Value) -> (String, Value) {
    let node = json!({ "id": id, "parent": parent, "children": children, "message": message });
    (id.to_owned(), node)
}

pub fn said(role: &str, text: &str) -> Value {
    json!({
        "author": { "role": role, "name": null, "metadata": {} },
        "create_time": 1_700_000_000.5, "update_time": null,
        "content": { "content_type": "text", "parts": [text] },
        "status": "finished_successfully", "end_turn": true, "weight": 1.0,
        "metadata": {}, "recipient": "all", "channel": null,
    })
}

/// A question that was edited, and an answer with thinking and a tool, in two versions.
pub fn chatgpt() -> Value {
    let mut hidden = said("system", "");
    hidden["weight"] = json!(0.0);
    let mut custom = said("user", "My instructions");
    custom["content"] = json!({ "content_type": "user_editable_context", "user_profile": "I am…" });
    custom["metadata"] = json!({ "is_visually_hidden_from_conversation": true });
    let mut thoughts = said("assistant", "");
    thoughts["content"] = json!({
        "content_type": "thoughts",
        "thoughts": [{ "summary": "Weighing birds", "content": "A wren is heavier." }],
    });
    let mut recap = said("assistant", "");
    recap["content"] = json!({ "content_type": "reasoning_recap", "content": "Thought for 8s" });
    recap["metadata"] = json!({ "finished_duration_sec": 8 });
    let mut call = said("assistant", "search(\"goldcrest\")");
    call["content"] = json!({ "content_type": "code", "language": "unknown", "text": "search()" });
    call["recipient"] = json!("web");
    let result = said("tool", "many results");
    let mut picture = said("tool", "");
    picture["content"] = json!({
        "content_type": "multimodal_text",
        "parts": [{ "content_type": "image_asset_pointer", "asset_pointer": "file-service://file-abc", "width": 8 }],
    });
    let mut photo = said("user", "");
    photo["content"] = json!({
        "content_type": "multimodal_text",
        "parts": [{ "content_type": "image_asset_pointer", "asset_pointer": "sediment://file_7" }, "What is this?"],
    });
    photo["metadata"] = json!({ "attachments": [{ "name": "bird.jpg", "id": "file_7" }] });
    let mut stopped = said("assistant", "Five");
    stopped["metadata"] = json!({ "finish_details": { "type": "interrupted" } });
    let mapping: serde_json::Map<String, Value> = [
        node("root", None, &["sys"], &Value::Null),
        node("sys", Some("root"), &["custom"], &hidden),
        node("custom", Some("sys"), &["q1", "q2"], &custom),
        node("q1", Some("custom"), &["a0"], &said("user", "How heavy?")),
        node("a0", Some("q1"), &[], &stopped),
        node(
            "q2",
            Some("custom"),
            &["t", "b"],
            &said("user", "How heavy is a goldcrest?"),
        ),
        node("t", Some("q2"), &["r"], &thoughts),
        node("r", Some("t"), &["c"], &recap),
        node("c", Some("r"), &["res"], &call),
        node("res", Some("c"), &["p"], &result),
        node("p", Some("res"), &["a1"], &picture),
        node(
            "a1",
            Some("p"),
            &["q3"],
            &said(
                "assistant",
                "Six grams \u{e200}cite\u{e202}turn0search1\u{e201}.",
            ),
        ),
        node("b", Some("q2"), &[], &said("assistant", "Another version")),
        node("q3", Some("a1"), &[], &photo),
    ]
    .into_iter()
    .collect();
    json!({
        "title": "Goldcrests", "create_time": 1_700_000_000.25, "update_time": 1_700_000_100.0,
        "mapping": mapping, "current_node": "q3", "conversation_id": "67-abc", "is_archived": false,
        "safe_urls": [], "moderation_results": [],
    })
}

#[test]
fn chatgpt_has_a_tree_of_nodes() {
    let found = read_text("conversations.json", json!([chatgpt()]).to_string()).unwrap();
    let whole = &found.chats[0];
    assert_eq!(found.tally.sources, [Source::ChatGpt]);
    assert_eq!(
        outline(whole),
        [
            "->1 user: How heavy?",
            "1>2 assistant: Five",
            "*->3 user: How heavy is a goldcrest?",
            "*3>4 assistant: [**Weighing birds**\n\nA wren is heavier.] [Image: file-abc]\n\nSix grams .",
            "*4>5 user: [Image: file_7]\n\nWhat is this?\n\n[Attachment: bird.jpg]",
            "3>6 assistant: Another version",
        ]
    );
    assert_eq!(whole.chat.title, "Goldcrests");
    assert_eq!(whole.chat.uid, "chatgpt:67-abc");
    assert_eq!(
        (whole.chat.created_at, whole.chat.updated_at),
        (1_700_000_000, 1_700_000_100)
    );
    assert_eq!(whole.chat.today, "2023-11-14");
    assert_eq!(whole.messages[3].thinking_ms, Some(8000));
    assert!(whole.messages[3].thinks);
    assert_eq!(whole.messages[1].state, MessageState::Stopped);
    assert_eq!(whole.messages[0].created_at, 1_700_000_000);
}

#[test]
fn a_tree_that_is_none_ends() {
    let mut circle = chatgpt();
    circle["mapping"]["q3"]["children"] = json!(["q2", "nowhere"]);
    circle["mapping"]["root"]["parent"] = json!("q3");
    circle["current_node"] = json!("nowhere");
    // Without a root, the first node begins.
    let found = read_text("c.json", json!([circle, chatgpt()]).to_string()).unwrap();
    assert_eq!(found.chats[0].messages.len(), found.chats[1].messages.len());

    let mut deep = serde_json::Map::new();
    for at in 0..20_000 {
        let (id, parent, child) = (
            format!("n{at}"),
            format!("n{}", at.max(1) - 1),
            format!("n{}", at + 1),
        );
        let parent = (at > 0).then_some(parent.as_str());
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        deep.extend([node(&id, parent, &[&child], &said(role, "x"))]);
    }
    let whole = json!({ "mapping": deep, "current_node": "n19999", "title": null });
    let found = read_text("c.json", whole.to_string()).unwrap();
    assert_eq!(found.chats[0].messages.len(), 20_000);
    assert_eq!(found.chats[0].chat.title, "");
}

pub fn claude() -> Value {
    json!({
        "uuid": "0199-a", "name": "Birds", "summary": "", "account": { "uuid": "x" },
        "created_at": "2025-05-01T10:00:00.123456Z", "updated_at": "2025-05-01T10:05:00.000000+00:00",
        "chat_messages": [
            {
                "uuid": "m1", "sender": "human", "text": "How heavy?", "parent_message_uuid": "00000000-0000-4000-8000-000000000000",
                "content": [{ "type": "text", "text": "How heavy?", "citations": [] }],
                "created_at": "2025-05-01T10:00:00Z", "updated_at": "2025-05-01T10:00:00Z",
                "attachments": [
                    { "file_name": "", "file_type": "txt", "file_size": 3, "extracted_content": "A long paste" },
                    { "file_name": "list.pdf", "file_size": 9, "extracted_content": "3 wrens" },
                ],
                "files": [{ "file_name": "wren.png" }],
            },
            {
                "uuid": "m2", "sender": "assistant", "text": "Six grams.", "parent_message_uuid": "m1",
                "content": [
                    { "type": "thinking", "thinking": "Regulus.", "start_timestamp": "2025-05-01T10:00:01Z", "stop_timestamp": "2025-05-01T10:00:03.5Z" },
                    { "type": "tool_use", "name": "search", "input": {} },
                    { "type": "tool_result", "content": [] },
                    { "type": "text", "text": "Six grams." },
                ],
                "created_at": "2025-05-01T10:00:05Z", "attachments": [], "files": [],
            },
            { "uuid": "m3", "sender": "assistant", "text": "Seven.", "content": [], "parent_message_uuid": "m1", "created_at": "2025-05-01T10:00:09Z" },
            { "uuid": "m4", "sender": "human", "text": "Thanks", "content": [], "parent_message_uuid": "m2", "created_at": "2025-05-01T10:05:00Z" },
        ],
    })
}

#[test]
fn claude_has_a_list_of_messages() {
    let found = read_text("conversations.json", json!([claude()]).to_string()).unwrap();
    let whole = &found.chats[0];
    assert_eq!(found.tally.sources, [Source::Claude]);
    assert_eq!(
        outline(whole),
        [
            "*->1 user: How heavy?\n\nA long paste\n\n[Attachment: list.pdf]\n\n```text\n3 wrens\n```\n\n[Attachment: wren.png]",
            "*1>2 assistant: [Regulus.] Six grams.",
            "1>3 assistant: Seven.",
            "*2>4 user: Thanks",
        ]
    );
    assert_eq!(
        (whole.chat.title.as_str(), whole.chat.uid.as_str()),
        ("Birds", "claude:0199-a")
    );
    assert_eq!(whole.messages[1].thinking_ms, Some(2500));
    assert_eq!(whole.chat.created_at, 1_746_093_600);

    // Older exports name no parents.
    let mut old = claude();
    for message in old["chat_messages"].as_array_mut().unwrap() {
        message
            .as_object_mut()
            .unwrap()
            .remove("parent_message_uuid");
    }
    let found = read_text("conversations.json", json!([old]).to_string()).unwrap();
    let parents: Vec<_> = found.chats[0].messages.iter().map(|it| it.parent).collect();
    assert_eq!(parents, [None, Some(1), Some(2), Some(3)]);
}

#[test]
fn archives_are_read_as_they_come() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (
        json!([chatgpt()]).to_string(),
        json!([claude()]).to_string(),
    );
    let junk = json!([{ "title": "junk", "mapping": {} }]).to_string();
    let path = archive(
        folder.path(),
        &[
            ("export/conversations-000.json", &first),
            ("export/conversations-001.json", &second),
            ("export/user.json", "{}"),
            ("export/chat.html", "<html>"),
            ("export/shared_conversations.json", &junk),
            ("__MACOSX/export/._conversations-000.json", "junk"),
        ],
    );
    let found = read_files(&[path]).unwrap();
    assert_eq!(found.chats.len(), 2);
    assert_eq!(found.tally.sources, [Source::ChatGpt, Source::Claude]);
}

/// A thread and its messages.
pub fn jan() -> (Value, Vec<Value>) {
    let thread = json!({ "id": "jan_1", "object": "thread", "title": "Birds", "created": 1_700_000_000, "updated": 1_700_000_050, "assistants": [] });
    let messages = vec![
        json!({ "id": "1", "object": "thread.message", "role": "user", "created_at": 1_700_000_000_123_i64,
            "content": [{ "type": "text", "text": { "value": "How heavy?", "annotations": [] } }, { "type": "image_url", "image_url": { "url": "data:…" } }] }),
        json!({ "id": "2", "object": "thread.message", "role": "assistant", "status": "stopped", "created_at": 1_700_000_010,
            "content": [{ "type": "text", "text": { "value": "<think>\nRegulus\n</think>\n\nSix grams.", "annotations": [] } }] }),
        json!({ "id": "3", "object": "thread.message", "role": "user", "created_at": 1_700_000_020, "content": [{ "type": "text", "text": { "value": "Why?" } }] }),
        json!({ "id": "4", "object": "thread.message", "role": "assistant", "created_at": 1_700_000_030,
            "content": [{ "type": "reasoning", "text": { "value": "Evolution" } }, { "type": "text", "text": { "value": "It pays." } }] }),
    ];
    (thread, messages)
}

#[test]
fn jan_has_a_folder_per_chat() {
    let (thread, messages) = jan();
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    let (folder, file) = file("threads/jan_1/thread.json", thread.to_string());
    fs::write(file.with_file_name("messages.jsonl"), lines.join("\n")).unwrap();
    let expected = [
        "*->1 user: How heavy?\n\n[Image]",
        "*1>2 assistant: [Regulus] Six grams.",
        "*2>3 user: Why?",
        "*3>4 assistant: [Evolution] It pays.",
    ];
    let messages = file.with_file_name("messages.jsonl");
    for path in [folder.path().to_owned(), file.clone(), messages] {
        let found = read_files(&[path]).unwrap();
        assert_eq!(outline(&found.chats[0]), expected);
        assert_eq!(found.tally.sources, [Source::Jan]);
    }
    let whole = &read_files(&[file]).unwrap().chats[0];
    assert_eq!(
        (whole.chat.uid.as_str(), whole.chat.updated_at),
        ("jan:jan_1", 1_700_000_050)
    );
    assert_eq!(whole.messages[0].created_at, 1_700_000_000);
    assert_eq!(whole.messages[1].state, MessageState::Stopped);
}

pub fn lm_studio() -> Value {
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    json!({
        "name": "Birds", "pinned": false, "createdAt": 1_737_000_000_000_i64, "tokenCount": 9, "systemPrompt": "",
        "messages": [
            { "versions": [{ "type": "singleStep", "role": "user", "content": [{ "type": "text", "text": "How heavy?" }, { "type": "file", "fileIdentifier": "1737 - wren.png", "fileType": "image" }] }], "currentlySelected": 0 },
            { "versions": [
                { "type": "multiStep", "role": "assistant", "steps": [{ "type": "contentBlock", "content": text("Five.") }] },
                { "type": "multiStep", "role": "assistant", "senderInfo": { "senderName": "x" }, "steps": [
                    { "type": "contentBlock", "content": text("Regulus."), "style": { "type": "thinking", "ended": true, "title": "Thought for 3.25 seconds" }, "prefix": "<think>", "suffix": "</think>" },
                    { "type": "contentBlock", "content": [{ "type": "text", "text": "Six " }, { "type": "text", "text": "grams." }], "genInfo": { "stats": {} } },
                    { "type": "debugInfoBlock", "debugInfo": "x" },
                ] },
            ], "currentlySelected": 1 },
            { "versions": [{ "type": "singleStep", "role": "user", "content": text("Why?") }], "currentlySelected": 0 },
        ],
    })
}

#[test]
fn lm_studio_has_versions() {
    let whole = lm_studio();
    let (folder, file) = file(
        "conversations/1737000000000.conversation.json",
        whole.to_string(),
    );
    for path in [file, folder.path().to_owned()] {
        let found = read_files(&[path]).unwrap();
        let whole = &found.chats[0];
        assert_eq!(
            outline(whole),
            [
                "*->1 user: [Image: 1737 - wren.png]\n\nHow heavy?",
                "1>2 assistant: Five.",
                "*1>3 assistant: [Regulus.] Six grams.",
                "*3>4 user: Why?",
            ]
        );
        assert_eq!(whole.messages[2].thinking_ms, Some(3250));
        assert_eq!(
            (whole.chat.created_at, whole.chat.uid.as_str()),
            (1_737_000_000, "lm-studio:1737000000000")
        );
        assert_eq!(found.tally.sources, [Source::LmStudio]);
    }
    // Files of old versions.
    let old = json!({ "name": "Old", "messages": [{ "role": "user", "content": "Hi" }, { "role": "assistant", "content": "<think>x</think>Hello" }] });
    let found = read_text("a.conversation.json", old.to_string()).unwrap();
    assert_eq!(
        outline(&found.chats[0]),
        ["*->1 user: Hi", "*1>2 assistant: [x] Hello"]
    );
}

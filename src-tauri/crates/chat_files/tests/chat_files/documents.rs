//! Documents that were written with the assistant, beside the conversation.

use serde_json::{Value, json};

use crate::foreign::{node, said};
use crate::{outline, read_text};

/// A question, followed by these nodes one after the other.
fn chatgpt(answers: &[Value]) -> Vec<String> {
    let mut mapping = serde_json::Map::new();
    let question = said("user", "Please write.");
    for (at, message) in std::iter::once(&question).chain(answers).enumerate() {
        let (id, child) = (at.to_string(), (at + 1).to_string());
        let parent = at.checked_sub(1).map(|parent| parent.to_string());
        mapping.extend([node(&id, parent.as_deref(), &[&child], message)]);
    }
    let chat = json!([{ "id": "1", "title": "Text", "mapping": mapping }]);
    let found = read_text("c.json", chat.to_string()).unwrap();
    outline(&found.chats[0])[1..].to_vec()
}

fn content(role: &str, recipient: &str, content: &Value) -> Value {
    let mut message = said(role, "");
    message["content"] = content.clone();
    message["recipient"] = json!(recipient);
    message["author"]["name"] = json!("web");
    message
}

fn call(recipient: &str, text: &str) -> Value {
    let text = json!({ "content_type": "code", "language": "json", "text": text });
    content("assistant", recipient, &text)
}

#[test]
fn chatgpts_canvas_is_in_the_answer() {
    let create =
        json!({ "name": "letter", "type": "document", "content": "Dear reader,\n```\ncode\n```" });
    let code = json!({ "name": "sum", "type": "code/python", "content": "1 + 1" });
    let update = json!({ "updates": [
        { "pattern": ".*", "multiple": false, "replacement": "All new" },
        { "pattern": "reader", "multiple": true, "replacement": "friend" },
    ] });
    let comment = json!({ "comments": [{ "pattern": "x", "comment": "Shorter." }] });
    let answer = chatgpt(&[
        call("canmore.create_textdoc", &create.to_string()),
        said("tool", "Created."),
        call("canmore.create_textdoc", &code.to_string()),
        call("canmore.update_textdoc", &update.to_string()),
        call("canmore.comment_textdoc", &comment.to_string()),
        call("canmore.create_textdoc", "{\"name\": \"half\", \"cont"),
        said("assistant", "Here is your letter."),
    ]);
    let expected = [
        "[Document: letter]",
        "````markdown\nDear reader,\n```\ncode\n```\n````",
        "[Document: sum]",
        "```python\n1 + 1\n```",
        "[Document, rewritten]",
        "```\nAll new\n```",
        "[Document, changed]",
        "```diff\n- reader\n+ friend\n```",
        "[Comment on the document]",
        "```text\nShorter.\n```",
        "[Document]",
        "```text\n{\"name\": \"half\", \"cont\n```",
        "Here is your letter.",
    ];
    assert_eq!(
        answer,
        [format!("*1>2 assistant: {}", expected.join("\n\n"))]
    );
}

#[test]
fn chatgpts_code_and_its_output_are_in_the_answer() {
    let code = json!({ "content_type": "code", "language": "unknown", "text": "x = 1" });
    assert_eq!(
        chatgpt(&[content("assistant", "all", &code)]),
        ["*1>2 assistant: ```\nx = 1\n```"]
    );
    let output = json!({ "content_type": "execution_output", "text": "2" });
    let quote = json!({ "content_type": "tether_quote", "title": "Birds", "url": "https://example.org", "text": "Regulus" });
    let answer = chatgpt(&[
        call("python", "1 + 1"),
        content("tool", "all", &output),
        content("tool", "all", &quote),
        said("assistant", "Two."),
    ]);
    assert_eq!(
        answer,
        [
            "*1>2 assistant: ```python\n1 + 1\n```\n\n[Output]\n\n```text\n2\n```\n\n[Quotation: Birds]\n\n```text\nRegulus\n```\n\nTwo."
        ]
    );
    let parts = json!({ "content_type": "multimodal_text", "parts": ["See:", { "content_type": "image_asset_pointer", "asset_pointer": "sediment://f" }] });
    assert_eq!(
        chatgpt(&[content("assistant", "all", &parts)]),
        ["*1>2 assistant: See:\n\n[Image: f]"]
    );
}

#[test]
fn a_turn_of_tools_alone_is_not_lost() {
    let display = json!({ "content_type": "tether_browsing_display", "result": "Found 3 pages" });
    let search = || call("web.run", "search(\"goldcrest\")");
    assert_eq!(
        chatgpt(&[search(), content("tool", "all", &display)]),
        [
            "*1>2 assistant: [Tool: web.run]\n\n```json\nsearch(\"goldcrest\")\n```\n\n[Result: web]\n\n```text\nFound 3 pages\n```"
        ]
    );
    // If there is an answer, the user read that.
    let answer = chatgpt(&[
        search(),
        content("tool", "all", &display),
        said("assistant", "Six grams."),
    ]);
    assert_eq!(answer, ["*1>2 assistant: Six grams."]);
}

fn claude(blocks: &Value) -> String {
    let chat = json!([{ "uuid": "c", "chat_messages": [{ "uuid": "1", "sender": "assistant", "text": "not supported here", "content": blocks }] }]);
    let found = read_text("c.json", chat.to_string()).unwrap();
    outline(&found.chats[0])[0].clone()
}

#[test]
fn claudes_artifacts_are_in_the_answer() {
    let artifact =
        |input: &Value| json!({ "type": "tool_use", "name": "artifacts", "input": input });
    let answer = claude(&json!([
        { "type": "text", "text": "Here it is:" },
        artifact(&json!({ "command": "create", "id": "a", "title": "Sum", "type": "application/vnd.ant.code", "language": "python", "content": "1 + 1" })),
        { "type": "tool_result", "name": "artifacts", "content": [{ "type": "text", "text": "OK" }] },
        artifact(&json!({ "command": "update", "id": "a", "old_str": "1 + 1", "new_str": "1 + 2" })),
        artifact(&json!({ "command": "rewrite", "id": "a", "title": "Sum", "type": "text/markdown", "content": "# Sum" })),
        { "type": "tool_use", "name": "create_file", "input": { "path": "/tmp/letter.md", "file_text": "Dear reader" } },
        { "type": "tool_use", "name": "web_search", "input": { "query": "birds" } },
    ]));
    let expected = [
        "Here it is:",
        "[Document: Sum]",
        "```python\n1 + 1\n```",
        "[Document, changed: a]",
        "```diff\n- 1 + 1\n+ 1 + 2\n```",
        "[Document: Sum]",
        "```markdown\n# Sum\n```",
        "[Document: /tmp/letter.md]",
        "```\nDear reader\n```",
    ];
    assert_eq!(answer, format!("*->1 assistant: {}", expected.join("\n\n")));
}

#[test]
fn claudes_turn_of_tools_alone_is_not_lost() {
    let answer = claude(&json!([
        { "type": "tool_use", "name": "web_search", "input": { "query": "birds", "most": 3 } },
        { "type": "tool_result", "name": "web_search", "content": [{ "type": "text", "text": "Regulus" }, null] },
    ]));
    let expected = "[Tool: web_search]\n\n```json\n{\n  \"query\": \"birds\",\n  \"most\": 3\n}\n```\n\n[Result: web_search]\n\n```text\nRegulus\n```";
    assert_eq!(answer, format!("*->1 assistant: {expected}"));
}

#[test]
fn think_tags_in_the_middle_are_text() {
    for (text, expected) in [
        (
            "Sure.\n<think>for my job</think>",
            "Sure.\n<think>for my job</think>",
        ),
        ("<think>Hm.</think>Yes.", "[Hm.] Yes."),
    ] {
        let chat = json!({ "name": "x", "messages": [{ "role": "assistant", "content": text }] });
        let found = read_text("a.conversation.json", chat.to_string()).unwrap();
        assert_eq!(
            outline(&found.chats[0]),
            [format!("*->1 assistant: {expected}")]
        );
    }
}

#[test]
fn think_tags_of_a_user_are_text() {
    let text = "<think>What is this tag?";
    let messages =
        json!([{ "role": "user", "content": text }, { "role": "assistant", "content": "A tag." }]);
    for chat in [
        json!({ "name": "LM Studio's", "createdAt": 1, "messages": messages }),
        json!({ "messages": messages }),
    ] {
        let found = read_text("a.conversation.json", chat.to_string()).unwrap();
        let first = outline(&found.chats[0])[0].clone();
        assert!(first.ends_with(&format!("user: {text}")), "{first}");
    }
}

//! Messages of every role, with parts of every kind.

use std::collections::{HashMap, VecDeque};

use store::{
    ImportedNames, IncomingChat, MessageId, MessageState, NewMessage, Part, PartKind, Parts,
    Progress, Role, Store, ToolOutcome, WholeChat,
};

use crate::{LONG, answer, chat, found};

/// Adds a conversation in which the model calls a tool. Returns its messages.
fn with_tool(store: &Store) -> Vec<(MessageId, Role, Parts)> {
    let id = store.chats().create("Birds", "2026-03-05", 100).unwrap();
    let call = Part::ToolCall {
        id: "call-1".into(),
        name: "encyclopedia".into(),
        arguments: r#"{"entry":"Regulus"}"#.into(),
    };
    let result = Part::ToolResult {
        id: "call-1".into(),
        text: "The firecrest is a relative.".into(),
        outcome: ToolOutcome::Done,
        server: None,
    };
    let mut called = Parts::of_answer(Some("I had better look it up.".into()), "One moment.");
    called.0.push(call);
    let mut parent = None;
    let messages = [
        (Role::System, Parts::of_text("Be a biologist.")),
        (Role::User, Parts::of_text("Which birds are related?")),
        (Role::Assistant, called),
        (Role::Tool, Parts(vec![result])),
        (Role::Assistant, Parts::of_text("Firecrests.")),
    ];
    messages
        .map(|(role, parts)| {
            let added = store.messages().add(&NewMessage {
                chat: id,
                parent,
                role,
                state: MessageState::Done,
                parts: parts.clone(),
                thinks: false,
                created_at: 100,
            });
            let id = added.unwrap();
            parent = Some(id);
            (id, role, parts)
        })
        .into()
}

fn all(store: &Store) -> Vec<WholeChat> {
    let records = store.records();
    let chats = records.all().unwrap().into_iter();
    chats.map(|chat| records.read(chat).unwrap()).collect()
}

#[test]
fn every_kind_of_part_and_role_comes_back_and_is_found() {
    let store = Store::in_memory().unwrap();
    let messages = with_tool(&store);
    let path = store.messages().path(messages[4].0).unwrap();
    let read = path
        .into_iter()
        .map(|row| (row.id, row.role, row.progress.parts));
    assert_eq!(read.collect::<Vec<_>>(), messages);
    for (query, at) in [
        ("biologist", 0),
        ("moment", 2),
        ("look it up", 2),
        ("encyclopedia", 2),
        ("regulus", 2),
        ("relative", 3),
    ] {
        assert_eq!(found(&store, query), [Some(messages[at].0)], "{query}");
    }
}

#[test]
fn a_hit_says_which_kind_of_part_it_is_in() {
    let store = Store::in_memory().unwrap();
    with_tool(&store);
    for (query, kind, snippet) in [
        ("moment", PartKind::Text, "One [moment]."),
        ("better", PartKind::Thinking, "I had [better] look it up."),
        (
            "encyclo",
            PartKind::ToolCall,
            r#"[encyclopedia] {"entry":"Regulus"}"#,
        ),
        (
            "regulus encyclopedia",
            PartKind::ToolCall,
            r#"[encyclopedia] {"entry":"[Regulus]"}"#,
        ),
        (
            "relative",
            PartKind::ToolResult,
            "The firecrest is a [relative].",
        ),
    ] {
        let mut chats = store.search().find(query, 1).unwrap().chats;
        let hit = chats.remove(0).hits.remove(0);
        let shown = hit
            .snippet
            .replace('\u{E000}', "[")
            .replace('\u{E001}', "]");
        assert_eq!((hit.kind, &*shown), (kind, snippet), "{query}");
    }
}

#[test]
fn every_kind_of_part_and_role_is_copied_exported_and_imported() {
    let store = Store::in_memory().unwrap();
    let messages = with_tool(&store);
    let (other, _) = chat(&store, "Other", "x");
    for (message, role, parts) in &messages {
        let copy = store.messages().copy(*message, other, None).unwrap();
        let copy = store.messages().get(copy).unwrap();
        assert_eq!((copy.role, &copy.progress.parts), (*role, parts));
    }
    let mut chats = all(&store).into_iter();
    let whole = chats.find(|whole| whole.chat.title == "Birds").unwrap();
    let lines = whole.messages.iter();
    let lines: Vec<_> = lines.map(|it| serde_json::to_string(it).unwrap()).collect();
    let read = lines.iter().map(|line| serde_json::from_str(line).unwrap());
    let read = WholeChat {
        chat: whole.chat,
        messages: read.collect(),
    };
    assert_eq!(read.fault(), None);
    let imported = Store::in_memory().unwrap();
    let records = imported.records();
    let mut incoming = VecDeque::from([IncomingChat::new(read)]);
    let written = records.write(&mut incoming, -7, LONG).unwrap();
    let names = ImportedNames {
        folders: &HashMap::new(),
        presets: &HashMap::new(),
        chats: &|_, _| None,
    };
    records.publish(-7, &names, &written).unwrap();
    let again = all(&imported).remove(0).messages.into_iter();
    let again = again.map(|it| (it.role, it.parts));
    let expected = messages.into_iter().map(|(_, role, parts)| (role, parts));
    assert!(again.eq(expected));
    assert_eq!(found(&imported, "encyclopedia").len(), 1);
}

#[test]
fn a_file_of_an_earlier_version_has_a_text_and_thinking() {
    let read = |content: &str| {
        let line =
            format!(r#"{{"id":1,"role":"assistant","state":"done",{content},"createdAt":1}}"#);
        serde_json::from_str::<store::MessageRecord>(&line).map(|record| (record.parts, line))
    };
    for (content, parts) in [
        (r#""text":"Six.""#, Parts::of_text("Six.")),
        (r#""text":"""#, Parts::default()),
        (
            r#""text":"Six.","thinking":"Hm.""#,
            Parts::of_answer(Some("Hm.".into()), "Six."),
        ),
        (
            r#""text":"","thinking":"""#,
            Parts::of_answer(Some(String::new()), ""),
        ),
    ] {
        let (read, _) = read(content).unwrap();
        assert_eq!(read, parts, "{content}");
    }
    for content in [
        r#""thinking":"Hm.""#,
        r#""text":"Six.","parts":[]"#,
        r#""text":"Six.","reasoning":"Hm.""#,
        r#""parts":[{"kind":"song","text":"Tsee."}]"#,
    ] {
        assert!(read(content).is_err(), "{content}");
    }
}

#[test]
fn a_journal_replaces_what_there_is_of_an_answer_and_ends_with_it() {
    let store = Store::in_memory().unwrap();
    let (id, asked) = chat(&store, "Birds", "x");
    let message = answer(&store, id, asked);
    let journal = |parts: &Parts| {
        let progress = Progress {
            parts: parts.clone(),
            ..Progress::default()
        };
        store.messages().journal(message, &progress)
    };
    for parts in [
        Parts::of_answer(Some("Hm.".into()), "Six."),
        Parts::of_text("Seven."),
        Parts::default(),
        Parts::of_answer(Some(String::new()), ""),
    ] {
        journal(&parts).unwrap();
        let row = store.messages().get(message).unwrap();
        assert_eq!(row.progress.parts, parts);
    }
    let end = MessageState::Stopped;
    store.messages().end(message, end, None, None).unwrap();
    let before = store.messages().get(message).unwrap();
    assert!(journal(&Parts::of_text("Eight.")).is_err());
    assert_eq!(store.messages().get(message).unwrap(), before);
}

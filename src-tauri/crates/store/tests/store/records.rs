//! Chats in the form in which they are exported and imported.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use rusqlite::Connection;
use serde::de::IgnoredAny;
use store::{
    ChatPreset, ChatRecord, DraftPlace, ErrorRow, FolderId, ImportedNames, IncomingChat,
    LengthWish, MessagePlace, MessageRecord, MessageState, OmittedRow, Parts, PresetId, PresetRow,
    Progress, Role, Store, StoreError, StoreSnapshot, WholeChat, WrittenChat, later_uid,
};

use crate::{LONG, answer, chat, folder, found, on_file, say, titles};

const MARK: i64 = -7;

/// Creates a chat with two answers, the first of which is shown, and with all properties that a message can have.
fn filled(store: &Store) {
    let (id, asked) = chat(store, "Everything", "How heavy is a goldcrest?");
    let first = answer(store, id, asked);
    let progress = Progress {
        parts: Parts::of_answer(Some("Regulus regulus".into()), "Six grams."),
        thinking_ms: Some(1200),
        tokens: vec![128_002, 7],
        model: Some("abc".into()),
        guide: Some("theme".into()),
    };
    store.messages().journal(first, &progress).unwrap();
    let omitted = OmittedRow {
        kept_from: Some(asked),
        thinking_from: Some(asked),
        messages: 2,
        thinking: 1,
    };
    store.messages().omit(first, &omitted).unwrap();
    // A number that serde_json would write otherwise than it was stored.
    let stats = serde_json::json!({ "tokensPerSecond": 0.1 + 0.2 });
    let error = ErrorRow {
        code: "other".into(),
        message: "no".into(),
    };
    let failed = MessageState::Failed;
    store
        .messages()
        .end(first, failed, Some(&stats), Some(&error))
        .unwrap();
    let second = answer(store, id, asked);
    store
        .messages()
        .end(second, MessageState::Done, None, None)
        .unwrap();
    let after = say(store, id, Some(first), "And how long?");
    answer(store, id, after);
    store.messages().show(first).unwrap();
}

fn read_all(store: &Store) -> Vec<WholeChat> {
    let records = store.records();
    let all = records.all().unwrap().into_iter();
    all.map(|chat| records.read(chat).unwrap()).collect()
}

fn none<Id>() -> HashMap<String, Id> {
    HashMap::new()
}

fn json(chats: &[WholeChat]) -> String {
    let lines = chats.iter().map(|whole| {
        let chat = serde_json::to_string(&whole.chat).unwrap();
        chat + &serde_json::to_string(&whole.messages).unwrap()
    });
    lines.collect()
}

pub fn write_all(store: &Store, chats: Vec<WholeChat>) {
    let mut incoming: VecDeque<_> = chats.into_iter().map(IncomingChat::new).collect();
    let written = store.records().write(&mut incoming, MARK, LONG).unwrap();
    assert!(incoming.is_empty());
    publish(store, &none(), &none(), &written);
}

fn publish(
    store: &Store,
    folders: &HashMap<String, FolderId>,
    presets: &HashMap<String, PresetId>,
    written: &[WrittenChat],
) {
    let names = ImportedNames {
        folders,
        presets,
        chats: &|_, _| None,
    };
    store.records().publish(MARK, &names, written).unwrap();
}

#[test]
fn a_chat_that_leaves_a_database_and_comes_into_another_is_the_same() {
    let (_folder, _, store) = on_file();
    filled(&store);
    let before = read_all(&store);
    let other = Store::in_memory().unwrap();
    chat(&other, "Was there before", "x");
    write_all(&other, before.clone());
    let mut after = read_all(&other);
    after.retain(|whole| whole.chat.title != "Was there before");
    assert_eq!(json(&before), json(&after));
    let whole = before
        .iter()
        .find(|it| it.chat.title == "Everything")
        .unwrap();
    assert_eq!(whole.chat.leaf, Some(5));
    let written: Vec<_> = whole.messages.iter().map(|message| message.state).collect();
    assert_eq!(
        written[4],
        MessageState::Interrupted,
        "nobody writes it there"
    );
    assert_eq!(found(&other, "regulus").len(), 1);
}

#[test]
fn a_chat_is_written_in_parts_and_shown_when_all_is_there() {
    let store = Store::in_memory().unwrap();
    filled(&store);
    let chats = read_all(&store);
    let other = Store::in_memory().unwrap();
    let mut incoming: VecDeque<_> = chats.iter().cloned().map(IncomingChat::new).collect();
    let mut parts = 0;
    while !incoming.is_empty() {
        other
            .records()
            .write(&mut incoming, MARK, Duration::ZERO)
            .unwrap();
        assert_eq!(titles(&other), [] as [&str; 0]);
        parts += 1;
    }
    assert!(parts >= 5, "a message at a time: {parts}");
    // Another import, which a crash ended.
    let mut lost: VecDeque<_> = chats.iter().cloned().map(IncomingChat::new).collect();
    other.records().write(&mut lost, MARK - 1, LONG).unwrap();
    publish(&other, &none(), &none(), &[]);
    assert_eq!(json(&chats), json(&read_all(&other)));
    while other.chats().purge(0, LONG).unwrap() {}
    assert_eq!(other.chats().ids_of_all().unwrap().len(), 1);
}

#[test]
fn every_column_is_in_an_export() {
    let (_folder, path, store) = on_file();
    drop(store);
    let db = Connection::open(path).unwrap();
    let columns = |table: &str| -> BTreeSet<String> {
        let mut read = db
            .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
            .unwrap();
        let names = read.query_map([], |row| row.get(0)).unwrap();
        names.map(Result::unwrap).collect()
    };
    let exported = |record: serde_json::Value| -> BTreeSet<String> {
        let keys = record.as_object().unwrap().keys();
        keys.map(|key| snake_case(key)).collect()
    };
    let chat = ChatRecord {
        uid: "x".into(),
        title: "x".into(),
        today: "x".into(),
        created_at: 1,
        updated_at: 1,
        leaf: Some(1),
        folder: Some("x".into()),
        pinned_at: Some(1),
        archived_at: Some(1),
        continues: Some("x".into()),
        chosen_preset: None,
    };
    let mut exported_of_chat = exported(serde_json::to_value(chat).unwrap());
    // Columns that are not exported: keys, and those of chats that are not exported.
    exported_of_chat.extend(["id", "deleted_at"].map(str::to_owned));
    assert_eq!(
        columns("chat"),
        exported_of_chat,
        "a column of `chat` that an export loses: add it to ChatRecord"
    );
    let message = MessageRecord {
        id: 1,
        parent: Some(1),
        shown: Some(1),
        role: Role::User,
        state: MessageState::Done,
        parts: Parts::of_answer(Some("x".into()), "x"),
        thinks: true,
        length_wish: Some(LengthWish::Shorter),
        thinking_ms: Some(1),
        tokens: IgnoredAny,
        model: Some("x".into()),
        guide: Some("x".into()),
        stats: Some(serde_json::value::to_raw_value(&1).unwrap()),
        error: Some(ErrorRow {
            code: "x".into(),
            message: "x".into(),
        }),
        kept_from: Some(1),
        thinking_from: Some(1),
        omitted_messages: 1,
        omitted_thinking: 1,
        prompt_leaf: Some(MessagePlace {
            chat: "x".into(),
            message: 1,
        }),
        read_again: true,
        created_at: 1,
    };
    let mut exported_of_message = exported(serde_json::to_value(message).unwrap());
    // The parts are a table of their own.
    for field in ["error", "text", "thinking"] {
        exported_of_message.remove(field);
    }
    // `moment` follows from the time, and `tokens` from the text.
    let others = ["chat", "error_code", "error_message", "moment", "tokens"];
    exported_of_message.extend(others.map(str::to_owned));
    assert_eq!(
        columns("message"),
        exported_of_message,
        "a column of `message` that an export loses: add it to MessageRecord"
    );
}

fn snake_case(key: &str) -> String {
    let mut name = String::new();
    for character in key.chars() {
        if character.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

#[test]
fn places_that_do_not_fit_are_found() {
    let store = Store::in_memory().unwrap();
    filled(&store);
    let whole = read_all(&store).remove(0);
    assert_eq!(whole.fault(), None);
    type Harm = fn(&mut WholeChat);
    let harms: [(&str, Harm); 6] = [
        ("last message", |it| it.chat.leaf = Some(9)),
        ("has the id 4", |it| it.messages[2].id = 4),
        ("not before it", |it| it.messages[2].parent = Some(3)),
        ("not before it", |it| it.messages[1].kept_from = Some(0)),
        ("not follow it", |it| it.messages[0].shown = Some(1)),
        ("not follow it", |it| it.messages[0].shown = Some(77)),
    ];
    for (words, harm) in harms {
        let mut harmed = whole.clone();
        harm(&mut harmed);
        let fault = harmed.fault().unwrap_or_default();
        assert!(fault.contains(words), "{words}: {fault}");
    }
}

#[test]
fn a_snapshot_stays_as_it_was_and_needs_a_database_of_this_version() {
    let (_folder, path, store) = on_file();
    let snapshot = StoreSnapshot::take(&path).unwrap();
    chat(&store, "Later", "x");
    store
        .chats()
        .rename(snapshot.records().all().unwrap()[0], "Another title")
        .unwrap();
    let records = snapshot.records();
    let all = snapshot.records().all().unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(records.read(all[0]).unwrap().chat.title, "Goldcrests");
    drop(snapshot);
    drop(store);
    // Also if nobody has it open.
    assert_eq!(
        StoreSnapshot::take(&path)
            .unwrap()
            .records()
            .all()
            .unwrap()
            .len(),
        2
    );

    let (_other, nothing) = folder();
    assert!(matches!(
        StoreSnapshot::take(&nothing),
        Err(StoreError::Unreadable { .. })
    ));
    let db = Connection::open(&path).unwrap();
    let taken_of = |version: u32| {
        db.pragma_update(None, "user_version", version).unwrap();
        StoreSnapshot::take(&path).map(|_| ())
    };
    assert!(matches!(
        taken_of(900),
        Err(StoreError::Newer { found: 900, .. })
    ));
    let older = taken_of(1).unwrap_err().to_string();
    assert!(
        older.contains("an earlier version of Goldcrest wrote it"),
        "{older}"
    );
    db.pragma_update(None, "application_id", 7).unwrap();
    assert!(matches!(
        StoreSnapshot::take(&path),
        Err(StoreError::Foreign { .. })
    ));
    std::fs::write(&nothing, [7; 5000]).unwrap();
    assert!(matches!(
        StoreSnapshot::take(&nothing),
        Err(StoreError::Damaged { .. })
    ));
}

#[test]
fn a_chat_has_a_name_that_no_other_has() {
    let store = Store::in_memory().unwrap();
    let (first, _) = chat(&store, "a", "x");
    let (second, _) = chat(&store, "b", "x");
    let records = store.records();
    let uid = records.read(first).unwrap().chat.uid;
    assert_eq!(uid.len(), 32);
    assert_ne!(uid, records.read(second).unwrap().chat.uid);
    assert_eq!(records.of_uid(&uid, MARK).unwrap(), [first]);
    store
        .chats()
        .set(store::ChatField::Deleted, &vec![(first, Some(500))])
        .unwrap();
    assert_eq!(records.of_uid(&uid, MARK).unwrap(), []);
    assert!(records.has_uid(&uid).unwrap());
}

#[test]
fn later_states_of_a_chat_may_be_the_chat_also_while_they_are_hidden() {
    let (_folder, _, store) = on_file();
    let whole = read_all(&store).remove(0);
    let uid = whole.chat.uid.clone();
    let later = |number| WholeChat {
        chat: ChatRecord {
            uid: later_uid(&uid, number),
            ..whole.chat.clone()
        },
        messages: whole.messages.clone(),
    };
    write_all(&store, vec![later(2)]);
    let mut hidden = VecDeque::from([IncomingChat::new(later(3))]);
    store.records().write(&mut hidden, MARK, LONG).unwrap();
    let count = |mark| store.records().of_uid(&uid, mark).unwrap().len();
    assert_eq!((count(MARK), count(MARK - 1)), (3, 2));
    assert_eq!(store.records().free_mark().unwrap(), MARK - 1);
}

#[test]
fn what_names_another_chat_names_it_in_another_database() {
    let store = Store::in_memory().unwrap();
    let (first, asked) = chat(&store, "First", "How heavy?");
    let leaf = say(&store, first, Some(asked), "And how long?");
    let (second, question) = chat(&store, "Second", "Summarize");
    store.chats().set_continues(second, first).unwrap();
    store.messages().set_prompt_leaf(question, leaf).unwrap();
    store.messages().set_read_again(question, true).unwrap();
    let before = read_all(&store);
    let other = Store::in_memory().unwrap();
    chat(&other, "Was there before", "x");
    write_all(&other, before.clone());
    let mut after = read_all(&other);
    after.retain(|whole| whole.chat.title != "Was there before");
    assert_eq!(json(&before), json(&after));
    assert!(json(&after).contains("\"promptLeaf\":{\"chat\":"));
    // One that is in the bin is in no export, and is not named there.
    store
        .chats()
        .set(store::ChatField::Deleted, &vec![(first, Some(500))])
        .unwrap();
    let alone = read_all(&store);
    assert_eq!(
        (
            alone[0].chat.continues.as_ref(),
            alone[0].messages[0].prompt_leaf.as_ref()
        ),
        (None, None)
    );
}

#[test]
fn every_table_is_in_an_export_or_left_out_on_purpose() {
    let (_folder, path, store) = on_file();
    drop(store);
    let db = Connection::open(path).unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'
               AND name NOT LIKE 'sqlite#_%' ESCAPE '#' AND name NOT LIKE '%#_search%' ESCAPE '#' ORDER BY name";
    let mut read = db.prepare(sql).unwrap();
    let names = read.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut names: Vec<_> = names.map(Result::unwrap).collect();
    // State of this computer: settings, window positions, drafts, deleted items, and consents.
    names.retain(|name| {
        let local = [
            "setting",
            "window",
            "draft",
            "paste",
            "queue",
            "deleted_message",
            "search_state",
            "allowed_tool",
        ];
        !local.contains(&name.as_str())
    });
    assert_eq!(
        names,
        ["chat", "chat_preset", "folder", "message", "part", "preset"],
        "a table that an export loses: write it with the chats, or name it above"
    );
}

#[test]
fn chats_get_the_folders_and_presets_that_their_names_are_here() {
    let store = Store::in_memory().unwrap();
    let (with, _) = chat(&store, "With", "x");
    chat(&store, "Without", "x");
    let row = PresetRow {
        id: PresetId(0),
        name: "Coder".into(),
        instructions: "Code first.".into(),
        thinking: Some(true),
        sampling: serde_json::json!({ "temperature": 0.3 }),
        tools: None,
    };
    let chosen = ChatPreset {
        preset: Some(store.presets().add(&row).unwrap()),
        instructions: "Briefly.".into(),
        tools: None,
    };
    let place = DraftPlace::Chat(with);
    store.presets().choose(place, Some(&chosen)).unwrap();
    let folder = store.folders().create("Work", 5).unwrap();
    let put = vec![(with, Some(folder.0))];
    store.chats().set(store::ChatField::Folder, &put).unwrap();

    let other = Store::in_memory().unwrap();
    let mut incoming: VecDeque<_> = read_all(&store)
        .into_iter()
        .map(IncomingChat::new)
        .collect();
    let records = other.records();
    let written = records.write(&mut incoming, MARK, LONG).unwrap();
    let folder = other.folders().create("Job", 5).unwrap();
    let mut preset = store.records().presets().unwrap().remove(0);
    preset.name = "Coder 2".into();
    let preset = records.add_preset(&preset).unwrap();
    let folders = HashMap::from([("Work".to_owned(), folder)]);
    let presets = HashMap::from([("Coder".to_owned(), preset)]);
    publish(&other, &folders, &presets, &written);
    for whole in read_all(&other) {
        let chosen = whole
            .chat
            .chosen_preset
            .map(|it| (it.preset, it.instructions));
        if whole.chat.title == "With" {
            assert_eq!(whole.chat.folder.as_deref(), Some("Job"));
            assert_eq!(chosen, Some((Some("Coder 2".into()), "Briefly.".into())));
        } else {
            assert_eq!((whole.chat.folder, chosen), (None, None));
        }
    }
}

#[test]
fn deleted_messages_are_in_no_export() {
    let store = Store::in_memory().unwrap();
    let (id, asked) = chat(&store, "Birds", "How heavy?");
    let kept = answer(&store, id, asked);
    let deleted = answer(&store, id, asked);
    let below = say(&store, id, Some(deleted), "Secret");
    let (named, question) = chat(&store, "Named", "Summarize");
    let after = say(&store, id, Some(kept), "And how long?");
    store.messages().set_prompt_leaf(question, after).unwrap();
    let (_, other) = chat(&store, "Names what is deleted", "x");
    store.messages().set_prompt_leaf(other, below).unwrap();
    store.messages().delete(deleted, 500).unwrap();
    let (gone, only) = chat(&store, "All of it is deleted", "x");
    store.messages().delete(only, 500).unwrap();

    let counted = store.records().list().unwrap().into_iter();
    let counts: HashMap<_, _> = counted.map(|(row, count)| (row.id, count)).collect();
    assert_eq!((counts[&id], counts[&gone]), (3, 0));
    let before = read_all(&store);
    let read = |chat| store.records().read(chat).unwrap();
    assert_eq!(read(id).messages.len(), 3);
    assert!(!json(&before).contains("Secret"));
    assert_eq!(
        read(named).messages[0]
            .prompt_leaf
            .as_ref()
            .unwrap()
            .message,
        3
    );
    assert!(read_all(&store).iter().all(|whole| whole.fault().is_none()));
    let target = Store::in_memory().unwrap();
    write_all(&target, before.clone());
    assert_eq!(json(&before), json(&read_all(&target)));
}

//! Files of every released version. `fixtures/version-N.sql` is a dump of a file of version N; a new
//! version adds one, made by `cargo test -p store -- --ignored write_a_fixture`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use store::{
    ChatField, ChatPreset, DraftPlace, ErrorRow, MessageId, MessageState, OmittedRow, Part, Parts,
    PresetId, PresetRow, Progress, QueuedMessage, Store, WindowRow,
};

use crate::{FILE, LONG, answer, chat, child, folder, found, say};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/fixtures")
}

fn version(path: &Path) -> u32 {
    let db = Connection::open(path).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

fn schema(path: &Path) -> Vec<String> {
    let db = Connection::open(path).unwrap();
    let mut read = db
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        .unwrap();
    let rows = read.query_map([], |row| row.get::<_, String>(0)).unwrap();
    rows.map(|sql| {
        sql.unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    })
    .collect()
}

fn call() -> Part {
    Part::ToolCall {
        id: "call-1".into(),
        name: "balance".into(),
        arguments: "{}".into(),
    }
}

/// Fills a store with rows of every kind.
fn fill(store: &Store) {
    let (id, asked) = chat(
        store,
        "Goldcrests",
        "Wie schwer ist ein Wintergoldhähnchen?",
    );
    let message = answer(store, id, asked);
    let mut parts = Parts::of_answer(Some("Regulus regulus.".into()), "Sechs Gramm.");
    parts.0.push(call());
    let progress = Progress {
        parts,
        thinking_ms: Some(1200),
        tokens: vec![128_002, 7, 300],
        model: Some("abc".into()),
        ..Progress::default()
    };
    store.messages().journal(message, &progress).unwrap();
    let error = ErrorRow {
        code: "generation".into(),
        message: "out of memory".into(),
    };
    let stats = serde_json::json!({ "tokens": 3 });
    store
        .messages()
        .end(message, MessageState::Failed, Some(&stats), Some(&error))
        .unwrap();
    let omitted = OmittedRow {
        kept_from: Some(asked),
        thinking_from: None,
        messages: 2,
        thinking: 1,
    };
    store.messages().omit(message, &omitted).unwrap();
    let (binned, _) = chat(store, "In the bin", "x");
    store.chats().delete(binned, 500).unwrap();
    let folder = store.folders().create("Birds", 100).unwrap();
    let values = vec![(id, Some(folder.0))];
    store.chats().set(ChatField::Folder, &values).unwrap();
    store
        .settings()
        .set("user.theme", &serde_json::json!("dark"))
        .unwrap();
    store
        .drafts()
        .set(DraftPlace::NewChat, "half a thou")
        .unwrap();
    let pastes = ["long".to_owned(), "longer".to_owned()];
    store
        .drafts()
        .set_pastes(DraftPlace::NewChat, &pastes)
        .unwrap();
    let waits = QueuedMessage {
        text: "and then".into(),
        pastes: Vec::new(),
        thinking: true,
    };
    store
        .drafts()
        .set_queue(DraftPlace::Chat(id), &[waits])
        .unwrap();
    let preset = PresetRow {
        id: PresetId(0),
        name: "Poet".into(),
        instructions: "Answer in verse.".into(),
        thinking: Some(false),
        sampling: serde_json::json!({ "temperature": 1.5 }),
        tools: None,
    };
    let chosen = ChatPreset {
        preset: Some(store.presets().add(&preset).unwrap()),
        instructions: "Briefly.".into(),
        tools: None,
    };
    store
        .presets()
        .choose(DraftPlace::Chat(id), Some(&chosen))
        .unwrap();
    let window = WindowRow {
        x: 1,
        y: 2,
        width: 3,
        height: 4,
        maximised: true,
    };
    store.windows().set("main", &window).unwrap();
}

/// Checks that everything is still there, as far as that version had it.
fn check(store: &Store, version: u32) {
    let chats = store.chats().list().unwrap();
    assert_eq!(
        chats
            .iter()
            .map(|row| row.title.as_str())
            .collect::<Vec<_>>(),
        ["Goldcrests"]
    );
    let path = store.messages().path(chats[0].leaf.unwrap()).unwrap();
    let row = &path[1];
    assert_eq!(
        path[0].progress.parts.text(),
        "Wie schwer ist ein Wintergoldhähnchen?"
    );
    assert_eq!(row.progress.parts.text(), "Sechs Gramm.");
    assert_eq!(
        row.progress.parts.thinking().as_deref(),
        Some("Regulus regulus.")
    );
    assert_eq!(
        row.progress.parts.0.get(2),
        (version >= 7).then(call).as_ref()
    );
    assert_eq!(row.progress.tokens, [128_002, 7, 300]);
    assert_eq!((row.state, row.omitted.messages), (MessageState::Failed, 2));
    assert_eq!(row.error.as_ref().unwrap().message, "out of memory");
    for query in [
        "wintergoldhahnchen",
        "regulus",
        "goldhahn",
        "egulus",
        "oldcres",
        "?",
    ] {
        assert_eq!(found(store, query).len(), 1, "{query}");
    }
    assert!(!store.search().find("regulus", 9).unwrap().indexing);
    assert_eq!(store.settings().get("user.theme").unwrap().unwrap(), "dark");
    assert_eq!(
        store.drafts().get(DraftPlace::NewChat).unwrap().text,
        "half a thou"
    );
    if version >= 2 {
        assert_eq!(
            store.drafts().get(DraftPlace::NewChat).unwrap().pastes,
            ["long", "longer"]
        );
        let queue = store
            .drafts()
            .get(DraftPlace::Chat(chats[0].id))
            .unwrap()
            .queue;
        assert_eq!(
            (queue[0].text.as_str(), queue[0].thinking),
            ("and then", true)
        );
    }
    if version >= 4 {
        let chosen = store.presets().of(DraftPlace::Chat(chats[0].id)).unwrap();
        let preset = chosen.and_then(|chosen| chosen.preset).unwrap();
        let preset = store.presets().get(preset).unwrap().unwrap();
        assert_eq!(preset.name, "Poet");
        assert_eq!(preset.sampling["temperature"], 1.5);
        let folder = store.folders().list().unwrap().remove(0);
        assert_eq!(
            (folder.name.as_str(), Some(folder.id)),
            ("Birds", chats[0].folder)
        );
    }
    assert!(store.windows().get("main").unwrap().unwrap().maximised);
    assert!(!store.chats().purge(i64::MAX, LONG).unwrap());
}

#[test]
fn a_file_of_every_version_opens_with_all_that_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = folder.path().join("fresh.db");
    drop(Store::open(&fresh).unwrap());
    let latest = version(&fresh);
    for old in 1..=latest {
        let dump = fixtures().join(format!("version-{old}.sql"));
        let dump =
            fs::read_to_string(&dump).unwrap_or_else(|_| panic!("there is no {}", dump.display()));
        let home = folder.path().join(format!("v{old}"));
        fs::create_dir(&home).unwrap();
        let path = home.join("goldcrest.db");
        Connection::open(&path)
            .unwrap()
            .execute_batch(&dump)
            .unwrap();
        assert_eq!(version(&path), old, "the dump of version {old} is one");

        let store = Store::open(&path).unwrap();
        check(&store, old);
        drop(store);
        assert_eq!(version(&path), latest);
        assert_eq!(
            schema(&path),
            schema(&fresh),
            "upgraded from {old}, it is as if new"
        );
        let copy = home.join(format!("copies/version-{old}-1.db"));
        assert_eq!(
            copy.exists(),
            old < latest,
            "a copy is made if something changes"
        );
        store::daily_copy(&path, "2026-03-05").unwrap();
        let copies = store::good_copies(&path);
        assert_eq!(
            copies.len(),
            1 + usize::from(old < latest),
            "copies of every version can be restored"
        );
    }
}

/// Makes a file of version 6 with a number of messages, all in its first chat. The last of them has this id.
fn large(path: &Path, messages: u32) -> i64 {
    let dump = fs::read_to_string(fixtures().join("version-6.sql")).unwrap();
    let db = Connection::open(path).unwrap();
    db.execute_batch(&dump).unwrap();
    // Its triggers need the functions of the app, and go with its table.
    db.execute_batch(&format!(
        "DROP TRIGGER message_search_insert;
         DROP TRIGGER message_part_search_insert;
         INSERT INTO message (chat, parent, role, state, text, thinks, thinking, created_at)
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {messages})
         SELECT (SELECT min(id) FROM chat), NULL, 'assistant', 'done', 'word ' || n, 1,
                CASE n % 4 WHEN 0 THEN printf('%.500c', 'x') END, 1772700000 + n
         FROM n"
    ))
    .unwrap();
    db.last_insert_rowid()
}

/// The messages of version 6 move into the table of parts, of which a large file has many.
#[test]
fn a_hundred_thousand_messages_are_upgraded() {
    let (_folder, path) = folder();
    let last = large(&path, 100_000);
    let store = Store::open(&path).unwrap();
    let of = |id: i64| store.messages().get(MessageId(id)).unwrap().progress.parts;
    assert_eq!(
        of(last),
        Parts::of_answer(Some("x".repeat(500)), "word 100000")
    );
    assert_eq!(of(last - 1), Parts::of_text("word 99999"));
    let new = say(&store, store.chats().list().unwrap()[0].id, None, "later");
    assert!(new.0 > last);
    while store.search().index_older(LONG).unwrap() {}
    assert_eq!(found(&store, "99999"), [Some(MessageId(last - 1))]);
}

#[test]
fn an_upgrade_without_room_on_the_disk_changes_nothing() {
    let (_folder, path) = folder();
    let last = large(&path, 3_000);
    let pages = |path: &Path| {
        let db = Connection::open(path).unwrap();
        db.pragma_query_value(None, "page_count", |row| row.get::<_, u32>(0))
            .unwrap()
    };
    let (before, old_schema) = (pages(&path), schema(&path));
    for more in [0, 1, 20, 100] {
        let opened = store::faults::open_in_room(&path, before + more);
        let error = opened.unwrap_err();
        assert!(
            matches!(error, store::StoreError::DiskFull),
            "{more}: {error:?}"
        );
        assert_eq!((version(&path), schema(&path)), (6, old_schema.clone()));
    }
    let copies = fs::read_dir(path.with_file_name("copies")).unwrap();
    assert_eq!(copies.count(), 1);
    let store = Store::open(&path).unwrap();
    let message = store.messages().get(MessageId(last)).unwrap();
    assert_eq!(message.progress.parts.text(), "word 3000");
}

/// Runs as the child: opens a file of version 6.
#[test]
#[ignore = "the child process of the test below"]
fn upgrades_until_it_is_killed() {
    if let Some(file) = std::env::var_os(FILE) {
        drop(Store::open(Path::new(&file)));
    }
}

#[test]
fn an_upgrade_survives_kill_9_in_its_middle() {
    // On a busy machine, an upgrade may end before it is killed.
    for _ in 0..10 {
        let (_folder, path) = folder();
        let last = large(&path, 30_000);
        let wal = path.with_file_name("goldcrest.db-wal");
        let mut child = child("upgrading::upgrades_until_it_is_killed", &path);
        // The upgrade spills to the WAL before it commits.
        let has_spilled = || fs::metadata(&wal).is_ok_and(|file| file.len() > 1 << 20);
        while !has_spilled() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let is_in_its_middle = version(&path) == 6;
        let store = Store::open(&path).unwrap();
        let message = store.messages().get(MessageId(last)).unwrap();
        assert_eq!(message.progress.parts.text(), "word 30000");
        check_is_sound(&path);
        if is_in_its_middle {
            return;
        }
    }
    panic!("no upgrade was killed in its middle");
}

#[test]
fn nothing_of_a_purged_chat_stays_in_a_file_that_was_upgraded() {
    let (_folder, path) = folder();
    large(&path, 2_000);
    let store = Store::open(&path).unwrap();
    while store.search().index_older(LONG).unwrap() {}
    let chat = store.chats().list().unwrap()[0].id;
    store.chats().delete(chat, 1).unwrap();
    while store.chats().purge(2, LONG).unwrap() {}
    drop(store);
    for file in [path.clone(), path.with_file_name("goldcrest.db-wal")] {
        let bytes = fs::read(file).unwrap_or_default();
        let holds = |text: &str| bytes.windows(text.len()).any(|at| at == text.as_bytes());
        assert!(!holds("xxxxxxxxxxxxxxxx"), "a thought");
        assert!(!holds("word 1999"), "a text");
    }
}

/// Checks the whole file.
fn check_is_sound(path: &Path) {
    let db = Connection::open(path).unwrap();
    let state: String = db
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(state, "ok");
}

/// Indexes once, after its end, an answer that a crash left unfinished.
#[test]
fn an_answer_that_was_being_written_is_indexed_once_by_an_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let dump = fs::read_to_string(fixtures().join("version-1.sql")).unwrap();
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&dump).unwrap();
    db.execute_batch("UPDATE message SET state = 'writing' WHERE role = 'assistant'")
        .unwrap();
    drop(db);

    let store = Store::open(&path).unwrap();
    for part in ["regulus", "egulus"] {
        assert_eq!(found(&store, part).len(), 1, "{part}");
    }
    drop(store);
    let db = Connection::open(&path).unwrap();
    for index in ["message_search", "message_part_search", "chat_part_search"] {
        let check = format!("INSERT INTO {index} ({index}) VALUES ('integrity-check')");
        db.execute_batch(&check).unwrap();
    }
}

#[test]
#[ignore = "run once for a new version of the schema"]
fn write_a_fixture() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    fill(&store);
    drop(store);
    let target = fixtures().join(format!("version-{}.sql", version(&path)));
    assert!(!target.exists(), "a released version does not change");
    fs::write(target, dump(&path)).unwrap();
}

/// Returns the statements that create this file: those of its own tables. Its full-text indices are empty, and are
/// filled when it is opened, by the app's functions.
fn dump(path: &Path) -> String {
    let db = Connection::open(path).unwrap();
    let pragma = |name| {
        db.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let mut out = "PRAGMA foreign_keys = OFF;\n".to_owned();
    for name in ["application_id", "user_version"] {
        out += &format!("PRAGMA {name} = {};\n", pragma(name));
    }
    let rows = |sql: &str| {
        let mut read = db.prepare(sql).unwrap();
        let rows = read.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    let shadow = "name LIKE '%\\_search\\_%' ESCAPE '\\' AND type = 'table'";
    let own =
        format!("sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND NOT ({shadow})");
    let tables = rows(&format!(
        "SELECT name FROM sqlite_schema WHERE {own} AND type = 'table'"
    ));
    let made = |kind: &str| {
        rows(&format!(
            "SELECT sql || ';' FROM sqlite_schema WHERE {own} AND {kind}"
        ))
    };
    let mut lines = made("type = 'table'");
    for table in tables.iter().filter(|table| !table.ends_with("_search")) {
        let columns = rows(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let quoted: Vec<_> = columns
            .iter()
            .map(|column| format!("quote({column})"))
            .collect();
        let values = quoted.join(" || ', ' || ");
        lines.extend(rows(&format!(
            "SELECT 'INSERT INTO {table} VALUES (' || {values} || ');' FROM {table}"
        )));
    }
    lines.extend(made("type <> 'table'"));
    lines.push("UPDATE search_state SET folding = 0;".to_owned());
    out + &lines.join("\n") + "\n"
}

/// Creates a Goldcrest file older than all versions, with a table of that time.
fn ancient(path: &Path, table: &str) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(&format!(
        "PRAGMA application_id = 0x474c4443; CREATE TABLE {table} (name TEXT); INSERT INTO {table} VALUES ('wren');"
    ))
    .unwrap();
}

fn names(path: &Path, table: &str) -> Vec<String> {
    let db = Connection::open(path).unwrap();
    let mut read = db.prepare(&format!("SELECT name FROM {table}")).unwrap();
    read.query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

#[test]
fn a_copy_is_laid_aside_before_a_file_is_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    ancient(&path, "bird");
    drop(Store::open(&path).unwrap());
    let copy = folder.path().join("copies/version-0-1.db");
    assert_eq!(
        (version(&copy), names(&copy, "bird")),
        (0, vec!["wren".to_owned()])
    );
    assert!(version(&path) > 0);
}

#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    ancient(&path, "chat");
    let before = schema(&path);
    let copies = || fs::read_dir(folder.path().join("copies")).unwrap().count();
    for n in 1..=2 {
        for _ in 0..3 {
            assert!(Store::open(&path).is_err());
            assert_eq!(
                (version(&path), names(&path, "chat").len()),
                (0, n),
                "nothing was changed"
            );
            assert_eq!(schema(&path), before);
            assert_eq!(copies(), n, "the same file is not copied again");
        }
        let copy = folder.path().join(format!("copies/version-0-{n}.db"));
        assert_eq!(
            names(&copy, "chat").len(),
            n,
            "an earlier copy is not overwritten"
        );
        let db = Connection::open(&path).unwrap();
        db.execute_batch("INSERT INTO chat VALUES ('wren')")
            .unwrap();
    }
}

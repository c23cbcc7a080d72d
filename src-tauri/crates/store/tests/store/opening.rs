use std::fs;

use store::{MessageState, Store, StoreError};

use crate::{answer, chat, on_file, say};

#[test]
fn a_new_file_is_made_with_its_folder_and_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/goldcrest.db");
    let store = Store::open(&path).unwrap();
    assert_eq!(store.path(), Some(path.as_path()));
    let (id, _) = chat(&store, "Goldcrests", "How heavy?");
    drop(store);
    assert_eq!(
        Store::open(&path).unwrap().chats().get(id).unwrap().title,
        "Goldcrests"
    );
    assert!(
        !path.with_file_name("copies").exists(),
        "nothing was migrated"
    );
}

#[test]
fn answers_left_in_writing_are_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let (id, asked) = chat(&store, "Goldcrests", "How heavy?");
    let message = answer(&store, id, asked);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(
        store.messages().get(message).unwrap().state,
        MessageState::Interrupted
    );
    assert_eq!(
        store.messages().get(asked).unwrap().state,
        MessageState::Done
    );
}

#[test]
fn answers_whose_end_cannot_be_written_do_not_keep_the_file_closed() {
    let (_folder, path, store) = on_file();
    let row = store.chats().list().unwrap().remove(0);
    let message = answer(&store, row.id, row.leaf.unwrap());
    drop(store);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TRIGGER full BEFORE UPDATE ON message BEGIN SELECT RAISE(ABORT, 'full'); END",
    )
    .unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(
        store.messages().get(message).unwrap().state,
        MessageState::Writing
    );
    assert_eq!(store.messages().writing().unwrap(), [(row.id, message)]);
    drop(store);
    db.execute_batch("DROP TRIGGER full").unwrap();
    let store = Store::open(&path).unwrap();
    assert!(store.messages().writing().unwrap().is_empty());
}

#[test]
fn damage_that_is_met_when_answers_are_marked_is_said() {
    let (_folder, path, store) = on_file();
    drop(store);
    let db = rusqlite::Connection::open(&path).unwrap();
    let page: u32 = db
        .query_row(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'message_writing'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    drop(db);
    let page = usize::try_from(page).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[(page - 1) * 4096..page * 4096].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let error = Store::open(&path).err();
    assert!(
        matches!(error, Some(StoreError::Damaged { .. })),
        "{error:?}"
    );
}

#[test]
fn a_file_of_a_newer_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    drop(Store::open(&path).unwrap());
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA user_version = 1000; PRAGMA journal_mode = DELETE;")
        .unwrap();
    drop(db);
    let before = fs::read(&path).unwrap();
    let Err(error) = Store::open(&path) else {
        panic!("it opened")
    };
    assert!(
        matches!(error, StoreError::Newer { found: 1000, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("newer version"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_damaged_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let (id, first) = chat(&store, "Goldcrests", "How heavy?");
    (0..300).fold(first, |parent, n| {
        say(&store, id, Some(parent), &format!("{n} is a number"))
    });
    drop(store);
    let whole = fs::read(&path).unwrap();

    let no_database = vec![7; 5000];
    let torn_schema = {
        let mut bytes = whole.clone();
        bytes[100..4000].fill(0xff);
        bytes
    };
    for damaged in [no_database, torn_schema] {
        fs::write(&path, &damaged).unwrap();
        let Err(error) = Store::open(&path) else {
            panic!("it opened")
        };
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        assert!(
            error.to_string().contains("goldcrest.db is damaged"),
            "{error}"
        );
        assert!(error.to_string().contains("copies"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE moz_places (url TEXT)")
        .unwrap();
    drop(db);
    let before = fs::read(&path).unwrap();
    assert!(matches!(
        Store::open(&path),
        Err(StoreError::Foreign { .. })
    ));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file");
    fs::write(&file, "x").unwrap();
    let Err(error) = Store::open(&file.join("goldcrest.db")) else {
        panic!("it opened")
    };
    assert!(error.to_string().contains("a file"), "{error}");
}

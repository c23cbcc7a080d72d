//! Copies that somebody else may have made or may read, and databases that were set aside.

use std::fs;
use std::path::Path;

use store::{
    CopyReason, Store, StoreError, StoreSnapshot, daily_copy, good_copies, listed_copies,
    restore_copy,
};

use crate::recovering::{TODAY, crash, home, journal, titles};
use crate::{chat, names};

fn aside(path: &Path) -> Vec<store::DatabaseCopy> {
    let is_aside = |copy: &store::DatabaseCopy| copy.reason == CopyReason::SetAside;
    listed_copies(path).into_iter().filter(is_aside).collect()
}

#[test]
fn a_database_that_was_set_aside_with_its_journal_is_listed_with_all_that_is_in_it() {
    let (_folder, path) = home();
    crash(&path);
    let kept = restore_copy(&path, "day-2026-03-05.db", TODAY).unwrap();
    assert!(journal(&kept).exists());
    let listed = aside(&path);
    assert_eq!((listed.len(), listed[0].chats), (1, 4));
    assert!(!journal(&kept).exists());
    restore_copy(&path, &listed[0].name, TODAY).unwrap();
    assert_eq!(
        titles(&path),
        ["Firecrests", "Goldcrests", "Storks", "Wrens"]
    );
}

#[test]
fn a_database_that_is_read_while_it_is_set_aside_is_listed_once_that_is_over() {
    let (_folder, path) = home();
    let store = Store::open(&path).unwrap();
    chat(&store, "Storks", "How tall?");
    let reads = StoreSnapshot::take(&path).unwrap();
    drop(store);
    let kept = restore_copy(&path, "day-2026-03-05.db", TODAY).unwrap();
    let now = Store::open(&path).unwrap();
    assert!(aside(&path).is_empty(), "some of it is in its journal");
    assert_eq!(reads.records().all().unwrap().len(), 4, "it still reads");
    chat(&now, "Cranes", "How old?");
    drop(reads);
    let listed = aside(&path);
    assert_eq!((listed.len(), listed[0].chats), (1, 4));
    assert!(!journal(&kept).exists());
    drop(now);
    assert_eq!(
        titles(&path),
        ["Cranes", "Goldcrests"],
        "the new one is as it was"
    );
}

#[test]
fn a_copy_is_removed_with_its_journal_and_no_other_file_is() {
    let (folder, path) = home();
    crash(&path);
    restore_copy(&path, "day-2026-03-05.db", TODAY).unwrap();
    let name = format!("goldcrest-set-aside-{TODAY}.db");
    for other in ["goldcrest.db", "../goldcrest.db", "", "day-2026-03-09.db"] {
        let refused = store::remove_copy(&path, other);
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{other}");
    }
    assert_eq!(aside(&path).len(), 1);
    store::remove_copy(&path, &name).unwrap();
    store::remove_copy(&path, "day-2026-03-06.db").unwrap();
    assert_eq!(names(folder.path()), ["copies", "goldcrest.db"]);
    assert_eq!(names(&folder.path().join("copies")), ["day-2026-03-05.db"]);
    assert_eq!(titles(&path), ["Goldcrests"]);
}

/// Alterations by somebody who gives a backup away.
#[test]
fn a_backup_in_which_something_else_was_put_is_refused() {
    for (part, sql) in [
        (
            "trigger \"x\"",
            "CREATE TRIGGER x AFTER INSERT ON message BEGIN UPDATE chat SET title = 'theirs'; END",
        ),
        (
            "trigger \"message_search_data\"",
            "CREATE TRIGGER message_search_data AFTER INSERT ON message BEGIN DELETE FROM draft; END",
        ),
        ("trigger \"message_ends\"", "DROP TRIGGER message_ends"),
        ("view \"x\"", "CREATE VIEW x AS SELECT * FROM chat"),
        ("table \"x\"", "CREATE TABLE x (y)"),
        ("index \"x\"", "CREATE INDEX x ON chat (title)"),
        (
            "table \"setting\"",
            "ALTER TABLE setting ADD COLUMN x TEXT DEFAULT 'y'",
        ),
    ] {
        let (folder, path) = home();
        let copy = folder.path().join("copies/day-2026-03-06.db");
        let db = rusqlite::Connection::open(&copy).unwrap();
        db.execute_batch(sql).unwrap();
        drop(db);
        let before = fs::read(&path).unwrap();
        let refused = restore_copy(&path, "day-2026-03-06.db", TODAY).unwrap_err();
        let said = refused.to_string();
        assert!(matches!(refused, StoreError::Altered { .. }), "{said}");
        assert!(
            said.contains(part) && said.contains("was changed by another program"),
            "{said}"
        );
        assert_eq!(fs::read(&path).unwrap(), before);
        let good: Vec<_> = good_copies(&path)
            .into_iter()
            .map(|copy| copy.name)
            .collect();
        assert_eq!(good, ["day-2026-03-05.db"], "{part}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_in_a_files_place_is_refused_and_not_waited_for() {
    let (folder, path) = home();
    for (name, place) in [
        ("the database", path.clone()),
        ("a copy", folder.path().join("copies/day-2026-03-06.db")),
    ] {
        fs::remove_file(&place).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&place).status();
        assert!(made.unwrap().success(), "{name}");
    }
    assert_eq!(listed_copies(&path).len(), 1);
    for refused in [
        Store::open(&path).map(|_| ()),
        StoreSnapshot::take(&path).map(|_| ()),
        daily_copy(&path, TODAY).map(|_| ()),
        store::back_up(&path, TODAY, "14:05"),
        store::check(&path),
        store::read_presets(&path).map(|_| ()),
    ] {
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("but a pipe or a device"), "{said}");
    }
    restore_copy(&path, "day-2026-03-05.db", TODAY).unwrap();
    assert_eq!(titles(&path), ["Goldcrests"]);
}

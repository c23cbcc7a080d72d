use std::fs;
use std::path::{Path, PathBuf};

use store::{
    Copy, CopyReason, Store, StoreError, daily_copy, good_copies, listed_copies, name_aside,
    restore_copy, start_empty,
};
use tempfile::TempDir;

use crate::{chat, folder, names, on_file, say};

pub const TODAY: &str = "2026-03-07";

/// Creates a database of some pages, with a copy for each of two days; the second day's has one chat more.
pub fn home() -> (TempDir, PathBuf) {
    let (folder, path) = folder();
    let store = Store::open(&path).unwrap();
    let (id, first) = chat(&store, "Goldcrests", "How heavy?");
    store
        .transaction(|store| {
            (0..300).fold(first, |parent, n| {
                say(store, id, Some(parent), &format!("{n} is a number"))
            });
            Ok::<_, StoreError>(())
        })
        .unwrap();
    daily_copy(&path, "2026-03-05").unwrap();
    chat(&store, "Wrens", "How loud?");
    daily_copy(&path, "2026-03-06").unwrap();
    chat(&store, "Firecrests", "How rare?");
    (folder, path)
}

pub fn error(path: &Path) -> StoreError {
    match Store::open(path) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

pub fn titles(path: &Path) -> Vec<String> {
    crate::titles(&Store::open(path).unwrap())
}

pub fn journal(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

/// Simulates a crash: leaves a database with one chat more that is only in its WAL.
pub fn crash(path: &Path) {
    let store = Store::open(path).unwrap();
    chat(&store, "Storks", "How tall?");
    let left = [path.to_owned(), journal(path)].map(|file| (fs::read(&file).unwrap(), file));
    drop(store);
    for (bytes, file) in left {
        fs::write(file, bytes).unwrap();
    }
}

fn overwrite(path: &Path, from: usize, length: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[from..from + length].fill(0xff);
    fs::write(path, bytes).unwrap();
}

#[test]
fn every_kind_of_damage_is_said_and_changes_nothing() {
    type Harm = (&'static str, fn(&Path));
    let harms: [Harm; 6] = [
        ("without its journal", |path| {
            let empty = path.with_file_name("empty.db");
            let db = rusqlite::Connection::open(&empty).unwrap();
            db.pragma_update(None, "journal_mode", "WAL").unwrap();
            drop(db);
            fs::rename(empty, path).unwrap();
        }),
        ("truncated", |path| {
            let half = fs::metadata(path).unwrap().len() / 2;
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(half).unwrap();
        }),
        ("emptied", |path| fs::write(path, "").unwrap()),
        ("garbage", |path| fs::write(path, vec![7; 5000]).unwrap()),
        ("zeros", |path| {
            let length = fs::metadata(path).unwrap().len();
            fs::write(path, vec![0; usize::try_from(length).unwrap()]).unwrap();
        }),
        ("overwritten", |path| overwrite(path, 100, 4000)),
    ];
    for (name, harm) in harms {
        let (_folder, path) = home();
        harm(&path);
        let damaged = fs::read(&path).unwrap();
        let error = error(&path);
        assert!(
            matches!(error, StoreError::Damaged { opens: false, .. }),
            "{name}: {error:?}"
        );
        assert_eq!(fs::read(&path).unwrap(), damaged, "{name}");
        let copies = good_copies(&path);
        assert_eq!(
            copies.iter().map(|copy| copy.chats).collect::<Vec<_>>(),
            [2, 1],
            "{name}: the newest copy comes first"
        );
    }
}

#[test]
fn a_missing_file_is_said_and_not_begun_again() {
    let (folder, path) = home();
    fs::remove_file(&path).unwrap();
    for _ in 0..2 {
        let error = error(&path);
        assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
        assert!(error.to_string().contains("goldcrest.db is missing"));
        assert_eq!(names(folder.path()), ["copies"], "nothing was made");
    }
    restore_copy(&path, "day-2026-03-06.db", TODAY).unwrap();
    assert_eq!(titles(&path), ["Goldcrests", "Wrens"]);

    fs::remove_file(&path).unwrap();
    start_empty(&path, TODAY).unwrap();
    for _ in 0..2 {
        assert!(titles(&path).is_empty());
    }
    assert_eq!(
        names(folder.path()),
        ["copies", "goldcrest.db"],
        "there was nothing to keep"
    );
}

#[test]
fn the_journal_of_an_emptied_file_is_left_alone() {
    let (_folder, with_copies) = home();
    let (_folder, alone, store) = on_file();
    drop(store);
    for path in [with_copies, alone] {
        crash(&path);
        let kept = fs::read(journal(&path)).unwrap();
        fs::write(&path, "").unwrap();
        let error = error(&path);
        assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
        assert_eq!(fs::read(journal(&path)).unwrap(), kept);
    }
}

#[test]
fn a_first_start_that_was_broken_off_is_no_damage() {
    let (_folder, path) = folder();
    fs::write(&path, "").unwrap();
    assert!(Store::open(&path).is_ok());
}

#[test]
fn a_copy_takes_the_place_of_the_damaged_file_which_is_kept() {
    let (folder, path) = home();
    overwrite(&path, 0, 5000);
    let damaged = fs::read(&path).unwrap();
    fs::write(
        folder.path().join("goldcrest.db-wal"),
        "of the damaged file",
    )
    .unwrap();
    let announced = name_aside(&path, TODAY);

    let kept = restore_copy(&path, "day-2026-03-06.db", TODAY).unwrap();
    assert_eq!(titles(&path), ["Goldcrests", "Wrens"]);
    assert_eq!(
        kept,
        folder.path().join("goldcrest-set-aside-2026-03-07.db")
    );
    assert_eq!(kept, announced);
    assert_eq!(fs::read(&kept).unwrap(), damaged);
    assert_eq!(
        names(folder.path()),
        [
            "copies",
            "goldcrest-set-aside-2026-03-07.db",
            "goldcrest-set-aside-2026-03-07.db-wal",
            "goldcrest.db",
        ],
        "and nothing else is left"
    );
    assert_eq!(good_copies(&path).len(), 2, "the copy itself stays");

    // The same day again: no kept file is overwritten.
    overwrite(&path, 0, 5000);
    let second = restore_copy(&path, "day-2026-03-05.db", TODAY).unwrap();
    assert_eq!(
        second,
        folder.path().join("goldcrest-set-aside-2026-03-07-2.db")
    );
    assert_eq!(fs::read(&kept).unwrap(), damaged);
    assert_eq!(titles(&path), ["Goldcrests"]);
}

#[test]
fn an_empty_one_takes_the_place_of_the_damaged_file_which_is_kept() {
    let (folder, path) = home();
    overwrite(&path, 0, 5000);
    let damaged = fs::read(&path).unwrap();
    let kept = start_empty(&path, TODAY).unwrap();
    assert_eq!(
        names(folder.path()),
        [
            "copies",
            "goldcrest-set-aside-2026-03-07.db",
            "goldcrest.db"
        ]
    );
    assert!(titles(&path).is_empty());
    assert_eq!(fs::read(&kept).unwrap(), damaged);
}

#[test]
fn what_was_written_last_is_kept_with_the_file_that_is_set_aside() {
    let (_folder, path) = home();
    crash(&path);
    let kept = restore_copy(&path, "day-2026-03-05.db", TODAY).unwrap();
    assert_eq!(titles(&path), ["Goldcrests"]);
    assert_eq!(
        titles(&kept),
        ["Firecrests", "Goldcrests", "Storks", "Wrens"]
    );
}

#[test]
fn no_file_that_is_kept_has_a_name_that_is_taken() {
    let (folder, path) = home();
    let first = folder.path().join("goldcrest-set-aside-2026-03-07.db");
    for taken in [first.clone(), journal(&first)] {
        fs::write(&taken, "kept").unwrap();
        assert_eq!(
            name_aside(&path, TODAY),
            folder.path().join("goldcrest-set-aside-2026-03-07-2.db")
        );
        fs::remove_file(taken).unwrap();
    }
    assert_eq!(name_aside(&path, TODAY), first);
}

#[test]
fn only_good_copies_are_offered_and_restored() {
    let (folder, path) = home();
    let copies = folder.path().join("copies");
    overwrite(&copies.join("day-2026-03-06.db"), 8192, 8192);
    fs::write(copies.join("day-2026-03-04.db"), "half").unwrap();
    fs::write(copies.join("notes.txt"), "").unwrap();
    let newer = copies.join("version-900-1.db");
    fs::copy(copies.join("day-2026-03-05.db"), &newer).unwrap();
    let db = rusqlite::Connection::open(&newer).unwrap();
    db.pragma_update(None, "user_version", 900).unwrap();
    drop(db);
    fs::copy(
        copies.join("day-2026-03-05.db"),
        copies.join("version-1-1.db"),
    )
    .unwrap();

    let good = good_copies(&path);
    let named: Vec<_> = good
        .iter()
        .map(|copy| (copy.name.as_str(), copy.day.as_deref()))
        .collect();
    assert_eq!(
        named,
        [
            ("day-2026-03-05.db", Some("2026-03-05")),
            ("version-1-1.db", None)
        ]
    );
    let before = fs::read(&path).unwrap();
    for name in [
        "day-2026-03-06.db",
        "version-900-1.db",
        "../goldcrest.db",
        "",
    ] {
        let refused = restore_copy(&path, name, TODAY);
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{name}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(titles(&path), ["Firecrests", "Goldcrests", "Wrens"]);
}

#[test]
fn copies_are_found_in_a_folder_of_any_name() {
    let (folder, _) = folder();
    let path = folder.path().join("a b?c#d%20ü/goldcrest.db");
    let store = Store::open(&path).unwrap();
    chat(&store, "Goldcrests", "How heavy?");
    drop(store);
    daily_copy(&path, TODAY).unwrap();
    assert_eq!(good_copies(&path).len(), 1);
    start_empty(&path, TODAY).unwrap();
    restore_copy(&path, "day-2026-03-07.db", TODAY).unwrap();
    assert_eq!(titles(&path), ["Goldcrests"]);
}

#[test]
fn a_restoring_that_was_interrupted_is_ended_at_the_next_start() {
    let (folder, path) = home();
    let restored = folder.path().join("goldcrest.restored");
    let kept = folder.path().join("goldcrest-set-aside-2026-03-07.db");
    // Crash before the former file was moved, when its WAL had both names: it is the one that is used.
    crash(&path);
    fs::copy(folder.path().join("copies/day-2026-03-06.db"), &restored).unwrap();
    fs::hard_link(journal(&path), journal(&kept)).unwrap();
    assert_eq!(
        titles(&path),
        ["Firecrests", "Goldcrests", "Storks", "Wrens"]
    );
    assert!(!restored.exists());
    fs::remove_file(journal(&kept)).unwrap();

    // Crash after that, when the WAL was still beside it: it is not replayed into the copy.
    crash(&path);
    fs::copy(folder.path().join("copies/day-2026-03-05.db"), &restored).unwrap();
    fs::hard_link(journal(&path), journal(&kept)).unwrap();
    fs::rename(&path, &kept).unwrap();
    assert_eq!(titles(&path), ["Goldcrests"]);
    assert!(!restored.exists());
    assert_eq!(titles(&kept).len(), 5, "the old file has its journal");
}

#[test]
fn what_an_interrupted_process_left_is_removed_at_the_next_start() {
    let (folder, path) = home();
    for left in ["goldcrest.unfinished", "goldcrest.probe"] {
        fs::write(folder.path().join(left), "half").unwrap();
    }
    drop(Store::open(&path).unwrap());
    assert_eq!(names(folder.path()), ["copies", "goldcrest.db"]);
}

#[test]
fn a_copy_that_cannot_be_restored_changes_nothing_and_leaves_nothing() {
    let (folder, path) = home();
    // A folder has the name that the new file would get.
    let taken = folder.path().join("goldcrest.restored/x");
    fs::create_dir_all(&taken).unwrap();
    let before = (fs::read(&path).unwrap(), names(folder.path()));
    assert!(restore_copy(&path, "day-2026-03-06.db", TODAY).is_err());
    assert!(start_empty(&path, TODAY).is_err());
    assert_eq!((fs::read(&path).unwrap(), names(folder.path())), before);
}

#[test]
fn damage_that_the_daily_check_finds_is_said_at_the_next_start() {
    let (_folder, path) = home();
    let store = Store::open(&path).unwrap();
    chat(&store, "Storks", &"-".repeat(100_000));
    drop(store);
    let bytes = fs::read(&path).unwrap();
    let text = bytes.windows(64).position(|part| part == [b'-'; 64]);
    overwrite(&path, text.unwrap() + 8192, 8192);
    drop(Store::open(&path).unwrap());
    let copy = daily_copy(&path, TODAY).unwrap();
    assert!(matches!(copy, Copy::Refused(_)), "{copy:?}");

    for _ in 0..2 {
        let error = error(&path);
        assert!(
            matches!(error, StoreError::Damaged { opens: true, .. }),
            "{error:?}"
        );
    }
    let checked = store::check(&path);
    assert!(matches!(
        checked,
        Err(StoreError::Damaged { opens: true, .. })
    ));
    store::forget_check(&path);
    drop(Store::open(&path).unwrap());

    daily_copy(&path, TODAY).unwrap();
    restore_copy(&path, "day-2026-03-06.db", TODAY).unwrap();
    assert!(
        !path.with_extension("check").exists(),
        "it was of that file"
    );
    assert_eq!(titles(&path), ["Goldcrests", "Wrens"]);
    let store = Store::open(&path).unwrap();
    store.ask_for_check().unwrap();
    drop(store);
    assert!(path.with_extension("check").exists());
    assert_eq!(titles(&path), ["Goldcrests", "Wrens"], "a good file passes");
    store::check(&path).unwrap();
    assert!(!path.with_extension("check").exists());
}

#[test]
fn a_folder_in_the_files_place_is_unreadable() {
    let (folder, path) = folder();
    fs::create_dir(&path).unwrap();
    let error = error(&path);
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error:?}");
    assert!(error.to_string().contains("it is a folder"), "{error}");
    assert_eq!(names(folder.path()), ["goldcrest.db"], "no probe is left");
    start_empty(&path, TODAY).unwrap();
    assert!(titles(&path).is_empty());
}

#[test]
fn a_file_that_another_program_holds_is_held() {
    let (_folder, path) = home();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.pragma_update(None, "journal_mode", "DELETE").unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let copied = std::thread::scope(|scope| {
        // Both wait for it.
        let copied = scope.spawn(|| daily_copy(&path, TODAY));
        let error = error(&path);
        assert!(matches!(error, StoreError::Held { .. }), "{error:?}");
        copied.join().unwrap()
    });
    assert!(copied.is_err(), "that is no damage: {copied:?}");
    assert!(!path.with_extension("check").exists());
}

#[test]
fn a_database_that_was_set_aside_is_listed_and_restored() {
    let (_folder, path) = home();
    restore_copy(&path, "day-2026-03-05.db", TODAY).unwrap();
    assert_eq!(titles(&path), ["Goldcrests"]);
    restore_copy(&path, "day-2026-03-06.db", TODAY).unwrap();
    let aside = || -> Vec<_> {
        let listed = listed_copies(&path).into_iter();
        let aside = listed.filter(|copy| copy.reason == CopyReason::SetAside);
        aside
            .map(|copy| (copy.name, copy.day.unwrap(), copy.number, copy.chats))
            .collect()
    };
    let name = |number: &str| format!("goldcrest-set-aside-{TODAY}{number}.db");
    assert_eq!(
        aside(),
        [
            (name("-2"), TODAY.to_owned(), 2, 1),
            (name(""), TODAY.to_owned(), 1, 3)
        ]
    );
    restore_copy(&path, &name(""), TODAY).unwrap();
    assert_eq!(titles(&path), ["Firecrests", "Goldcrests", "Wrens"]);
    assert_eq!(aside().len(), 3);
}

#[test]
fn a_list_of_copies_does_not_read_them_and_a_damaged_one_is_not_restored() {
    let (folder, path) = home();
    let copy = folder.path().join("copies/day-2026-03-06.db");
    let bytes = fs::read(&copy).unwrap();
    let text = b"150 is a number";
    let at = bytes.windows(text.len()).position(|part| part == text);
    overwrite(&copy, at.unwrap() / 4096 * 4096, 4096);
    let has_it = |copies: Vec<store::DatabaseCopy>| {
        copies.iter().any(|copy| copy.name == "day-2026-03-06.db")
    };
    assert!(has_it(listed_copies(&path)) && !has_it(good_copies(&path)));
    assert!(restore_copy(&path, "day-2026-03-06.db", TODAY).is_err());
}

use std::fs;
use std::path::Path;

use store::{Copy, Store, daily_copy};

use crate::{chat, say};

fn copies(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("copies")).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_day_has_one_copy_and_the_last_five_days_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let (id, _) = chat(&store, "Goldcrests", "How heavy?");
    for day in 1..=7 {
        let made = daily_copy(&path, &format!("2026-03-0{day}")).unwrap();
        assert!(matches!(made, Copy::Made(_)), "{made:?}");
    }
    assert_eq!(daily_copy(&path, "2026-03-07").unwrap(), Copy::Present);
    let kept = (3..=7).map(|day| format!("day-2026-03-0{day}.db"));
    assert_eq!(copies(folder.path()), kept.collect::<Vec<_>>());

    // A copy is a database of its own.
    let copy = Store::open(&folder.path().join("copies/day-2026-03-07.db")).unwrap();
    assert_eq!(copy.chats().get(id).unwrap().title, "Goldcrests");
}

#[test]
fn a_copy_that_was_not_finished_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let _store = Store::open(&path).unwrap();
    fs::create_dir(folder.path().join("copies")).unwrap();
    fs::write(
        folder.path().join("copies/day-2026-03-05.unfinished"),
        "half",
    )
    .unwrap();
    daily_copy(&path, "2026-03-05").unwrap();
    assert_eq!(copies(folder.path()), ["day-2026-03-05.db"]);
}

#[test]
fn a_damaged_database_pushes_no_good_copy_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let (id, first) = chat(&store, "Goldcrests", "How heavy?");
    (0..300).fold(first, |parent, n| {
        say(&store, id, Some(parent), &format!("{n} is a number"))
    });
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes[half..half + 8192].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let refused = daily_copy(&path, "2026-03-05");
    assert!(
        matches!(refused, Ok(Copy::Refused(_)) | Err(_)),
        "{refused:?}"
    );
    assert!(!folder.path().join("copies/day-2026-03-05.db").exists());
}

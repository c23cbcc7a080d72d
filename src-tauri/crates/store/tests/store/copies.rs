use std::fs;
use std::path::Path;

use store::{Copy, Store};

use crate::chat;

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
    let store = Store::open(&folder.path().join("goldcrest.db")).unwrap();
    let (id, _) = chat(&store, "Goldcrests", "How heavy?");
    for day in 1..=7 {
        let made = store.daily_copy(&format!("2026-03-0{day}")).unwrap();
        assert!(matches!(made, Copy::Made(_)), "{made:?}");
    }
    assert_eq!(store.daily_copy("2026-03-07").unwrap(), Copy::Present);
    let kept = (3..=7).map(|day| format!("day-2026-03-0{day}.db"));
    assert_eq!(copies(folder.path()), kept.collect::<Vec<_>>());

    // A copy is a database of its own.
    let copy = Store::open(&folder.path().join("copies/day-2026-03-07.db")).unwrap();
    assert_eq!(copy.chats().get(id).unwrap().title, "Goldcrests");
}

#[test]
fn a_copy_that_was_not_finished_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("goldcrest.db")).unwrap();
    fs::create_dir(folder.path().join("copies")).unwrap();
    fs::write(
        folder.path().join("copies/day-2026-03-05.unfinished"),
        "half",
    )
    .unwrap();
    store.daily_copy("2026-03-05").unwrap();
    assert_eq!(copies(folder.path()), ["day-2026-03-05.db"]);
}

#[test]
fn a_store_in_memory_has_no_copies() {
    assert_eq!(
        Store::in_memory()
            .unwrap()
            .daily_copy("2026-03-05")
            .unwrap(),
        Copy::Present
    );
}

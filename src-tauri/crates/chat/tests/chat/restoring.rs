//! A copy that replaces the store, and a store that moves to another place.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chat::{ChatEvent, Failure};
use store::Store;

use crate::beside::Beside;
use crate::importing::{DAY, add, chat_titled, chats, import, titles};
use crate::scripted::{Bench, Script, Step, TODAY};

/// Makes a store on a file with one chat, and a copy from before it had one.
fn restorable() -> (tempfile::TempDir, std::path::PathBuf, Bench) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let before = store.chats().create("Before", DAY, 100).unwrap();
    add(&store, before, "x");
    store::back_up(&path, DAY, "14:05").unwrap();
    let mut bench = Bench::start(store, &Script::default(), TODAY);
    bench.until_ready();
    bench.ask(None, "After");
    (folder, path, bench)
}

#[test]
fn a_copy_takes_the_stores_place_without_a_restart() {
    let (_folder, path, mut bench) = restorable();
    let copies = store::good_copies(&path);
    assert_eq!(copies[0].name, "manual-2026-03-05-14.05.db");
    assert_eq!(
        (copies[0].day.as_deref(), copies[0].time.as_deref()),
        (Some(DAY), Some("14:05"))
    );
    bench
        .chat
        .rename(bench.chat.snapshot().unwrap().chats[0].id, "Renamed")
        .unwrap();
    let kept = bench.chat.restore_copy(&path, &copies[0].name).unwrap();
    assert_eq!(titles(&bench), ["Before"]);
    assert_eq!(
        bench.chat.undo().unwrap(),
        None,
        "what was changed before is not there"
    );
    // The former file is kept, and new writes are in the present one.
    bench.ask(None, "Later");
    bench.chat.shutdown();
    let titles = |path: &std::path::Path| {
        let mut titles: Vec<_> = Store::open(path)
            .unwrap()
            .chats()
            .list()
            .unwrap()
            .into_iter()
            .map(|chat| chat.title)
            .collect();
        titles.sort();
        titles
    };
    assert_eq!(titles(&path), ["Before", "Later"]);
    assert_eq!(titles(&kept), ["Before", "Renamed"]);
}

/// Restores the copy while the file cannot be moved to the store's place `times` times, and returns the result.
fn restore_over(path: &Path, bench: &Bench, times: usize) -> Result<PathBuf, Failure> {
    store::faults::refuse_renames(path, times);
    let name = store::good_copies(path).remove(0).name;
    bench.chat.restore_copy(path, &name)
}

#[test]
fn the_file_that_was_there_is_put_back_where_the_copy_does_not_get_to_its_place() {
    let (_folder, path, mut bench) = restorable();
    let after = chat_titled(&bench, "After");
    bench.chat.rename(after, "Renamed").unwrap();
    let before = titles(&bench);
    let failed = restore_over(&path, &bench, 1).unwrap_err().message;
    assert!(failed.contains("the drive is gone"), "{failed}");
    assert_eq!(titles(&bench), before);
    let undone = bench.chat.undo().unwrap().map(|undone| undone.label);
    assert_eq!(undone.as_deref(), Some("renamed “After”"));
    bench.ask(None, "Later");
    restore_over(&path, &bench, 0).unwrap();
    assert_eq!(titles(&bench), ["Before"]);
}

#[test]
fn the_copy_is_used_where_the_file_that_was_there_cannot_be_put_back() {
    let (_folder, path, mut bench) = restorable();
    let after = chat_titled(&bench, "After");
    bench.chat.rename(after, "Renamed").unwrap();
    let kept = restore_over(&path, &bench, 2).unwrap();
    assert_eq!(titles(&bench), ["Before"]);
    assert_eq!(bench.chat.undo().unwrap(), None, "it is of another file");
    bench.ask(None, "Later");
    assert_eq!(titles(&bench).len(), 2);
    assert_eq!(Store::open(&kept).unwrap().chats().list().unwrap().len(), 2);
}

#[test]
fn the_copy_is_found_at_the_next_start_where_nothing_can_be_put_in_the_stores_place() {
    let (_folder, path, bench) = restorable();
    let failed = restore_over(&path, &bench, 3).unwrap_err().message;
    assert!(failed.contains("the drive is gone"), "{failed}");
    let closed = bench.chat.snapshot().unwrap_err().message;
    assert!(closed.contains("closing"), "{closed}");
    let bench = Bench::on_file(&path, &Script::default());
    assert_eq!(titles(&bench), ["Before"]);
}

#[test]
fn what_was_there_is_listed_even_if_it_was_read_meanwhile() {
    let (_folder, path, mut bench) = restorable();
    let reads = store::StoreSnapshot::take(&path).unwrap();
    bench.ask(None, "In the journal");
    bench
        .chat
        .restore_copy(&path, "manual-2026-03-05-14.05.db")
        .unwrap();
    drop(reads);
    let listed = store::listed_copies(&path);
    let aside = listed
        .iter()
        .find(|copy| copy.reason == store::CopyReason::SetAside);
    assert_eq!(aside.map(|copy| copy.chats), Some(3));
}

#[test]
fn a_copy_that_is_not_there_changes_nothing_and_neither_does_one_while_an_answer_is_written() {
    let (_folder, path, mut bench) = restorable();
    let before = titles(&bench);
    let missing = bench.chat.restore_copy(&path, "day-2000-01-01.db");
    assert!(missing.unwrap_err().message.contains("was not restored"));
    assert_eq!(titles(&bench), before);
    bench.script.answer([Step::Say("Well"), Step::Wait]);
    let chat = bench.chat.snapshot().unwrap().chats[0].id;
    bench.chat.send(Some(chat), "Go on", false).unwrap();
    let failure = bench
        .chat
        .restore_copy(&path, "manual-2026-03-05-14.05.db")
        .unwrap_err();
    assert!(
        failure.message.contains("answer is still being written"),
        "{failure}"
    );
    assert!(!path.with_extension("unfinished").exists());
    bench.chat.stop(chat).unwrap();
    bench.until(|event| matches!(event, ChatEvent::Ended { .. }));
    assert_eq!(titles(&bench), before);
}

#[test]
fn the_store_is_left_for_its_copy_or_goes_on_where_that_fails() {
    let (_folder, path, bench) = restorable();
    let failed = bench
        .chat
        .leave_store(|_| Err(Failure::other("no room")), &mut || false);
    assert_eq!(failed.unwrap_err().message, "no room");
    assert_eq!(titles(&bench).len(), 2);
    let copy = |file: &std::path::Path| {
        // The WAL is merged.
        assert!(!file.with_extension("db-wal").exists());
        Ok(())
    };
    assert!(bench.chat.leave_store(copy, &mut || false).unwrap());
    let closed = bench.chat.snapshot().unwrap_err();
    assert!(closed.message.contains("closing"), "{closed}");
    assert_eq!(Store::open(&path).unwrap().chats().list().unwrap().len(), 2);
}

#[test]
fn the_store_is_left_once_the_answer_is_written() {
    let (_folder, path, mut bench) = restorable();
    bench.script.answer([Step::Say("Well"), Step::Wait]);
    let chat = bench.chat.snapshot().unwrap().chats[0].id;
    bench.chat.send(Some(chat), "Go on", false).unwrap();
    bench.until(|event| matches!(event, ChatEvent::Delta { .. }));
    let none = |_: &std::path::Path| -> Result<(), Failure> { panic!("it is still written") };
    assert!(!bench.chat.leave_store(none, &mut || false).unwrap());
    let mut asked = 0;
    let handle = bench.chat.clone();
    let mut stop_later = || {
        asked += 1;
        if asked == 2 {
            handle.stop(chat).unwrap();
        }
        true
    };
    let left = bench.chat.leave_store(|_| Ok(()), &mut stop_later);
    assert!(left.unwrap() && asked >= 2);
    let store = Store::open(&path).unwrap();
    let leaf = store.chats().get(chat).unwrap().leaf.unwrap();
    assert_eq!(
        store.messages().get(leaf).unwrap().progress.parts.text(),
        "Well"
    );
}

#[test]
fn what_comes_while_the_store_is_left_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let (begun, wait) = std::sync::mpsc::channel();
    let leaving = bench.chat.clone();
    let left = std::thread::spawn(move || {
        let copy = move |_: &std::path::Path| {
            begun.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            Ok(())
        };
        leaving.leave_store(copy, &mut || false)
    });
    wait.recv().unwrap();
    let refused = bench.chat.send(None, "How heavy?", true).unwrap_err();
    assert!(refused.message.contains("is closing"), "{refused}");
    left.join().unwrap().unwrap();
}

#[test]
fn a_copy_does_not_take_the_stores_place_while_a_branch_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let long = store.chats().create("Long", DAY, 100).unwrap();
    let fill = |store: &Store| {
        (0..3000).for_each(|at| add(store, long, &at.to_string()));
        Ok::<_, store::StoreError>(())
    };
    store.transaction(fill).unwrap();
    let leaf = store.chats().get(long).unwrap().leaf.unwrap();
    store::back_up(&path, DAY, "14:05").unwrap();
    let mut bench = Bench::start(store, &Script::default(), TODAY);
    bench.until_ready();
    let handle = bench.chat.clone();
    let fork = std::thread::spawn(move || handle.fork(leaf).unwrap());
    let refused = loop {
        // Called between two parts of the copy.
        match bench.chat.may_leave_store() {
            Err(failure) => break failure.message,
            Ok(()) => assert!(!fork.is_finished(), "never refused"),
        }
    };
    assert!(
        refused.contains("A chat is still being copied"),
        "{refused}"
    );
    assert_eq!(fork.join().unwrap().messages.len(), 3000);
    let name = "manual-2026-03-05-14.05.db";
    bench.chat.restore_copy(&path, name).unwrap();
    assert_eq!(titles(&bench), ["Long"]);
}

#[test]
fn what_waits_to_be_read_ahead_of_the_file_that_was_there_is_not_read() {
    let (_folder, path, mut bench) = restorable();
    let chat = chat_titled(&bench, "After");
    let loaded = bench.script.slow_open();
    bench
        .chat
        .open_model(chat::ModelChoice::BundledModel)
        .unwrap();
    bench.chat.read_ahead(Some(chat), "Where ", true).unwrap();
    let name = store::good_copies(&path).remove(0).name;
    bench.chat.restore_copy(&path, &name).unwrap();
    // The id now belongs to another chat.
    import(&bench, chats(1, "another")).unwrap();
    assert_eq!(chat_titled(&bench, "Chat 0"), chat);
    drop(loaded);
    bench.until_ready();
    bench.chat.read_ahead(None, "Here ", true).unwrap();
    let new = Beside::ReadAhead(chat::ChatId(0), "Here".into());
    let done = bench.script.beside().until(&new);
    assert!(
        !done.contains(&Beside::ReadAhead(chat, "Where".into())),
        "{done:?}"
    );
}

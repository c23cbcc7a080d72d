use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use store::{Copy, Store, daily_copy, good_copies};

use crate::{FILE, chat, child, folder, names, on_file, say};

fn copies(folder: &Path) -> Vec<String> {
    names(&folder.join("copies"))
}

#[test]
fn a_day_has_one_copy_and_the_last_five_days_are_kept() {
    let (folder, path, store) = on_file();
    let id = store.chats().list().unwrap()[0].id;
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
fn a_copy_tells_how_many_chats_it_has() {
    let (folder, path, store) = on_file();
    let (deleted, _) = chat(&store, "Wrens", "How loud?");
    store.chats().delete(deleted, 500).unwrap();
    daily_copy(&path, "2026-03-05").unwrap();
    let copy = good_copies(&path).remove(0);
    let file = folder.path().join("copies/day-2026-03-05.db");
    assert_eq!((copy.chats, copy.path.as_path()), (1, file.as_path()));
    assert_eq!(copy.bytes, fs::metadata(file).unwrap().len());
}

#[test]
fn the_copy_of_today_is_kept_whatever_days_a_wrong_clock_has_given_to_others() {
    let (folder, path, _store) = on_file();
    for day in 1..=5 {
        daily_copy(&path, &format!("2099-03-0{day}")).unwrap();
    }
    for day in ["2026-03-05", "2026-03-06"] {
        let target = folder.path().join(format!("copies/day-{day}.db"));
        assert_eq!(daily_copy(&path, day).unwrap(), Copy::Made(target.clone()));
        assert!(target.exists(), "{day}");
    }
    assert_eq!(copies(folder.path()).len(), 6);
}

#[test]
fn a_copy_that_was_not_finished_is_made_again() {
    let (folder, path, _store) = on_file();
    fs::create_dir(folder.path().join("copies")).unwrap();
    for half in [
        "day-2026-03-05",
        "day-2025-12-24",
        "manual-2026-03-04-14.05",
    ] {
        let half = folder.path().join(format!("copies/{half}.unfinished"));
        fs::write(half, "half").unwrap();
    }
    daily_copy(&path, "2026-03-05").unwrap();
    assert_eq!(copies(folder.path()), ["day-2026-03-05.db"]);
}

#[test]
fn a_damaged_database_pushes_no_good_copy_out() {
    let (folder, path) = folder();
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

/// Makes a database that takes a while to copy.
fn large(path: &Path, megabytes: usize) -> Store {
    let store = Store::open(path).unwrap();
    let (id, first) = chat(&store, "Goldcrests", "How heavy?");
    // Without words, so that the index takes no time.
    let text = "-".repeat(100_000);
    store
        .transaction(|store| {
            for _ in 0..megabytes * 10 {
                say(store, id, Some(first), &text);
            }
            Ok::<_, store::StoreError>(())
        })
        .unwrap();
    store
}

#[test]
fn a_copy_is_of_one_moment_and_ends_however_much_is_written_meanwhile() {
    let (_folder, path) = folder();
    drop(large(&path, 16));
    let deadline = Instant::now() + Duration::from_secs(60);
    let (copied, commits) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let store = Store::open(&path).unwrap();
            // Two rows in one transaction: a copy with one of them would not be consistent.
            while !copied.load(Ordering::Acquire) && Instant::now() < deadline {
                store
                    .transaction(|store| {
                        let n = commits.fetch_add(1, Ordering::Relaxed);
                        chat(store, &format!("left {n}"), "x");
                        chat(store, &format!("right {n}"), "x");
                        Ok::<_, store::StoreError>(())
                    })
                    .unwrap();
            }
        });
        while commits.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        let made = daily_copy(&path, "2026-03-05");
        copied.store(true, Ordering::Release);
        assert!(matches!(made, Ok(Copy::Made(_))), "{made:?}");
    });
    assert!(
        Instant::now() < deadline,
        "the copy was begun again at each commit"
    );
    let copy = good_copies(&path).remove(0);
    let chats = usize::try_from(copy.chats).unwrap();
    assert_eq!(chats % 2, 1, "half of a transaction is in the copy");
}

#[test]
fn copies_that_are_made_at_once_do_not_remove_each_other() {
    let (folder, path) = folder();
    drop(large(&path, 16));
    let unfinished = folder
        .path()
        .join("copies/manual-2026-03-05-14.05.unfinished");
    let deadline = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        let backup = scope.spawn(|| store::back_up(&path, "2026-03-05", "14:05"));
        while !unfinished.exists() {
            assert!(Instant::now() < deadline, "the backup does not begin");
            std::thread::yield_now();
        }
        daily_copy(&path, "2026-03-05").unwrap();
        backup.join().unwrap().unwrap();
    });
    assert_eq!(
        copies(folder.path()),
        ["day-2026-03-05.db", "manual-2026-03-05-14.05.db"]
    );
}

#[test]
#[ignore = "the child process of the test below"]
fn copies_until_it_is_killed() {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    daily_copy(Path::new(&file), "2026-03-05").unwrap();
}

#[test]
fn a_copy_that_is_broken_off_has_no_name_of_a_copy() {
    let (folder, path) = folder();
    drop(large(&path, 32));
    let mut child = child("copies::copies_until_it_is_killed", &path);
    // Returns the copy once a part of it exists.
    let begun = || {
        let entries = fs::read_dir(folder.path().join("copies")).ok()?;
        entries.flatten().find(|entry| {
            let length = entry.metadata().map_or(0, |file| file.len());
            length > 0
        })
    };
    while begun().is_none() {
        assert!(child.try_wait().unwrap().is_none(), "nothing was copied");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for name in copies(folder.path()) {
        if name.ends_with(".db") {
            assert_eq!(good_copies(&path).len(), 1, "{name} is not whole");
        }
    }
    daily_copy(&path, "2026-03-05").unwrap();
    assert_eq!(copies(folder.path()), ["day-2026-03-05.db"]);
    assert_eq!(good_copies(&path).len(), 1);
}

#[test]
fn copies_made_before_an_update_go_after_thirty_days() {
    let (folder, path, _store) = on_file();
    fs::create_dir(folder.path().join("copies")).unwrap();
    // 2026-03-31 is 30 days after 2026-03-01, whose first second this is.
    let made = SystemTime::UNIX_EPOCH + Duration::from_secs(20_513 * 86_400);
    let copy = folder.path().join("copies/version-1-1.db");
    File::create(&copy).unwrap().set_modified(made).unwrap();
    daily_copy(&path, "2026-03-31").unwrap();
    assert!(copy.exists(), "30 days");
    daily_copy(&path, "2026-04-01").unwrap();
    assert!(!copy.exists(), "31 days");
}

/// Returns all bytes of all files below a folder.
fn bytes_below(folder: &Path) -> Vec<u8> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                bytes_below(&path)
            } else {
                fs::read(path).unwrap()
            }
        })
        .collect()
}

#[test]
fn what_was_purged_is_in_no_file() {
    let (folder, path, store) = on_file();
    let contains = |word: &str| {
        let bytes = bytes_below(folder.path());
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    let (secret, first) = chat(&store, "Xylophones", "quartzite quartzite");
    (0..40).fold(first, |parent, n| {
        say(
            &store,
            secret,
            Some(parent),
            &format!("quartzite {n} zzyzx{n}"),
        )
    });
    let words = [
        "Xylophones",
        "xylophones",
        "quartzite",
        "uartzite",
        "zzyzx7",
    ];
    assert!(contains("quartzite") && contains("Xylophones"));
    store.chats().delete(secret, 500).unwrap();
    while store.chats().purge(501, Duration::from_millis(1)).unwrap() {}
    assert!(store.empty_wal().unwrap());
    daily_copy(&path, "2026-03-05").unwrap();
    for word in words {
        assert!(!contains(word), "{word} while the store is open");
    }
    drop(store);
    for word in words {
        assert!(!contains(word), "{word} once it is closed");
    }
}

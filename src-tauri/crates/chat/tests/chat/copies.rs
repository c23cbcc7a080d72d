//! The daily copy of the database.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chat::{ChatEvent, Failure, FailureCode, Timing};
use store::{Store, StoreError, faults};

use crate::clocks::SetClock;
use crate::scripted::{Bench, EVENT_TIMEOUT, Script, TIMING, TODAY};

const AT_ONCE: Timing = Timing {
    copy_after: Duration::ZERO,
    ..TIMING
};

fn bench(path: &Path) -> Bench {
    let store = Store::open(path).unwrap();
    Bench::timed(store, &Script::default(), TODAY, AT_ONCE)
}

fn until_copied(folder: &Path) -> PathBuf {
    until_copied_on(folder, "2026-03-05")
}

fn until_copied_on(folder: &Path, day: &str) -> PathBuf {
    let copy = folder.join(format!("copies/day-{day}.db"));
    let begun = Instant::now();
    while !copy.exists() {
        assert!(begun.elapsed() < EVENT_TIMEOUT, "no copy was made");
        std::thread::sleep(Duration::from_millis(5));
    }
    copy
}

fn failed(bench: &mut Bench) -> Failure {
    match bench
        .until(|event| matches!(event, ChatEvent::CopyFailed { .. }))
        .pop()
    {
        Some(ChatEvent::CopyFailed { error: failure }) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_copy_of_the_day_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let bench = bench(&path);
    let copy = until_copied(folder.path());
    bench.chat.shutdown();
    assert!(
        Store::open(&copy)
            .unwrap()
            .chats()
            .list()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn each_day_has_its_copy_by_the_clock_on_the_wall() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("goldcrest.db")).unwrap();
    let clock = SetClock::at(TODAY);
    let bench = Bench::clocked(store, &Script::default(), Box::new(clock.clone()), AT_ONCE);
    until_copied(folder.path());
    // Asleep for a week, in which no other clock advances.
    clock.set("2026-03-12T00:00:01+00:00[UTC]");
    bench.chat.save_draft(None, "awake").unwrap();
    until_copied_on(folder.path(), "2026-03-12");
}

#[test]
fn no_copy_is_made_while_an_answer_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let timing = Timing {
        copy_after: Duration::from_secs(2),
        ..TIMING
    };
    let store = Store::open(&path).unwrap();
    let mut bench = Bench::timed(store, &Script::default(), TODAY, timing);
    let (_, go) = bench.begin_first();
    std::thread::sleep(timing.copy_after + Duration::from_millis(300));
    bench.chat.snapshot().unwrap();
    assert!(!folder.path().join("copies").exists());
    go.send(()).unwrap();
    bench.until_ended();
    until_copied(folder.path());
}

#[test]
fn the_window_learns_that_the_database_is_damaged_and_which_copy_is_good() {
    for (day, offered) in [
        (Some("2026-03-04"), "restore the copy of 4 March 2026."),
        (None, "there is no earlier copy"),
    ] {
        damaged(day, offered);
    }
}

/// Checks that a database whose last copy is of this day is found damaged.
fn damaged(day: Option<&str>, offered: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    drop(Store::open(&path).unwrap());
    if let Some(day) = day {
        store::daily_copy(&path, day).unwrap();
    }
    // Makes free pages and falsifies their number: the file opens and is written, but fails SQLite's check.
    faults::lay_ballast(&path, 8_000).unwrap();
    faults::make_room(&path).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let free = u32::from_be_bytes(bytes[36..40].try_into().unwrap());
    bytes[36..40].copy_from_slice(&free.checked_sub(1).unwrap().to_be_bytes());
    fs::write(&path, bytes).unwrap();

    let mut bench = bench(&path);
    let failure = failed(&mut bench);
    assert_eq!(failure.code, FailureCode::Store);
    let place = path.to_string_lossy();
    for part in ["damaged", "start Goldcrest again", &*place, offered] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    let copy = folder.path().join("copies/day-2026-03-05.db");
    assert!(!copy.exists(), "no good copy gives way to it");
    bench.ask(None, "How heavy?");
    bench.chat.shutdown();
    let next = Store::open(&path).err();
    assert!(
        matches!(next, Some(StoreError::Damaged { .. })),
        "the next start checks the file, and says so: {next:?}"
    );
}

#[test]
fn the_window_learns_that_no_copy_can_be_made() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("copies"), "no folder").unwrap();
    let mut bench = bench(&folder.path().join("goldcrest.db"));
    let failure = failed(&mut bench);
    assert_eq!(failure.code, FailureCode::Store);
    assert!(failure.message.contains("copies"), "{}", failure.message);
    bench.ask(None, "How heavy?");
    std::thread::sleep(Duration::from_millis(200));
    bench.chat.snapshot().unwrap();
    assert!(
        !bench
            .events
            .try_iter()
            .any(|event| matches!(event, ChatEvent::CopyFailed { .. })),
        "it is tried once a day"
    );
}

//! Retention of deleted chats, whatever the clock shows.

use std::path::Path;

use chat::ChatId;
use store::{ChatField, Store};

use crate::beside::Beside;
use crate::clocks::SetClock;
use crate::scripted::{Bench, Script, TIMING};

/// Returns noon of a day of 2026, counted from 1; days beyond the year continue.
fn noon(day: i64) -> String {
    let first: jiff::civil::Date = "2026-01-01".parse().unwrap();
    let date = first.checked_add(jiff::Span::new().days(day - 1)).unwrap();
    format!("{date}T12:00:00+00:00[UTC]")
}

/// Starts the app, and waits until it has purged. Returns the numbers of chats and messages that remain in the bin.
fn started(path: &Path, now: &str) -> (usize, usize) {
    let script = Script::default();
    let clock = Box::new(SetClock::at(now));
    let bench = Bench::clocked(Store::open(path).unwrap(), &script, clock, TIMING);
    let retains = |it: &Beside| matches!(it, Beside::Retain(_));
    let mut done = script.beside().at_least(1);
    while !done.iter().any(retains) {
        done = script.beside().at_least(done.len() + 1);
    }
    let in_bin = (
        bench.chat.bin().unwrap().len(),
        bench.chat.deleted_messages().unwrap().len(),
    );
    bench.chat.shutdown();
    in_bin
}

/// Creates a database in which a chat, and a message of another one, were deleted at this time.
fn deleted(now: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let clock = Box::new(SetClock::at(now));
    let mut bench = Bench::clocked(store, &Script::default(), clock, TIMING);
    bench.until_ready();
    let chat = bench.ask(None, "One").chat.id;
    bench.chat.delete([chat]).unwrap();
    let view = bench.ask(None, "Two");
    bench.chat.delete_message(view.messages[0].id).unwrap();
    bench.chat.shutdown();
    (folder, path)
}

/// Seconds of a day.
pub const DAY: i64 = 24 * 60 * 60;
/// The day after [`TODAY`](crate::clocks::TODAY), on which chats that had expired then are purged.
pub const TOMORROW: &str = "2026-03-06T12:00:00+00:00[UTC]";

/// Backdates the deletion of these chats by this time before [`TODAY`](crate::clocks::TODAY).
pub fn date_back(store: &Store, chats: &[ChatId], seconds: i64) {
    let today: jiff::ZonedDateTime = crate::clocks::TODAY.parse().unwrap();
    let at = today.timestamp().as_second() - seconds;
    let dates = chats.iter().map(|chat| (*chat, Some(at))).collect();
    store.chats().set(ChatField::Deleted, &dates).unwrap();
}

#[test]
fn what_was_deleted_is_purged_after_30_days_at_a_start() {
    let (_folder, path) = deleted(&noon(1));
    for day in [1, 4, 10, 16, 22, 28] {
        assert_eq!(started(&path, &noon(day)), (1, 1), "day {day}");
    }
    started(&path, &noon(33));
    assert_eq!(started(&path, &noon(34)), (0, 0));
}

#[test]
fn what_was_deleted_is_purged_in_an_app_that_is_never_closed() {
    let script = Script::default();
    let clock = SetClock::at(&noon(1));
    let mut bench = Bench::clocked(
        Store::in_memory().unwrap(),
        &script,
        Box::new(clock.clone()),
        TIMING,
    );
    bench.until_ready();
    let chat = bench.ask(None, "One").chat.id;
    bench.chat.delete([chat]).unwrap();
    script.beside().until(&Beside::Forget(vec![chat]));
    for day in 2..=34 {
        let before = script.beside().at_least(1).len();
        clock.set(&noon(day));
        bench.chat.save_draft(None, "awake").unwrap();
        let purged = script.beside().at_least(before + 1).pop();
        // The prefill of a new chat stays.
        let all = [Some(chat).filter(|_| day < 33), Some(ChatId(0))];
        let all = all.into_iter().flatten().collect();
        assert_eq!(purged, Some(Beside::Retain(all)), "day {day}");
        assert_eq!(bench.chat.bin().unwrap().len(), usize::from(day < 33));
    }
}

#[test]
fn a_clock_that_was_behind_empties_no_bin() {
    for wrong in [
        "2016-01-01T00:00:00+00:00[UTC]",
        "1970-01-01T00:00:00+00:00[UTC]",
        "1960-01-01T00:00:00+00:00[UTC]",
    ] {
        let (_folder, path) = deleted(wrong);
        for day in 1..=20 {
            assert_eq!(started(&path, &noon(day)), (1, 1), "{wrong}, day {day}");
        }
        for day in 21..=35 {
            started(&path, &noon(day));
        }
        assert_eq!(started(&path, &noon(36)), (0, 0));
    }
}

#[test]
fn a_clock_that_is_ahead_at_one_start_empties_no_bin_and_stops_no_purge() {
    for ahead in [2, 31, 400, 200_000] {
        let (_folder, path) = deleted(&noon(1));
        for day in [1, 8, 15, 22, 29] {
            started(&path, &noon(day));
        }
        for wrong in [noon(29 + ahead), noon(29 + ahead)] {
            assert_eq!(started(&path, &wrong), (1, 1), "{ahead} days ahead");
        }
        assert_eq!(started(&path, &noon(30)), (1, 1), "{ahead} days ahead");
        for day in [37, 44, 51, 58, 65, 72, 79] {
            started(&path, &noon(day));
        }
        assert_eq!(started(&path, &noon(86)), (0, 0), "{ahead} days ahead");
    }
}

#[test]
fn a_clock_that_was_ahead_while_something_was_deleted_does_not_keep_it_for_ever() {
    let (_folder, path) = deleted(&noon(4000));
    for day in [1, 2, 8, 15, 22, 29] {
        assert_eq!(started(&path, &noon(day)), (1, 1), "day {day}");
    }
    started(&path, &noon(36));
    assert_eq!(started(&path, &noon(43)), (0, 0));
}

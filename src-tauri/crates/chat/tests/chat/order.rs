//! Chats that are pinned, archived, moved and deleted, several at once.

use std::time::{Duration, Instant};

use chat::{ChatEvent, ChatId, ChatSummary, Failure, Timing};
use store::Store;

use crate::bench::Bench;
use crate::beside::Beside;
use crate::clocks::{TIMING, TODAY};
use crate::scripted::Script;

/// Chats with these titles, in order.
fn begun<const N: usize>(bench: &mut Bench, titles: [&str; N]) -> [ChatId; N] {
    titles.map(|title| bench.ask(None, title).chat.id)
}

fn all(bench: &Bench) -> Vec<ChatSummary> {
    let mut chats = bench.chat.snapshot().unwrap().chats;
    chats.sort_by_key(|chat| chat.id);
    chats
}

fn undone(bench: &Bench) -> String {
    bench.chat.undo().unwrap().unwrap().label
}

#[test]
fn each_change_of_several_chats_is_one_and_taken_back_as_it_was() {
    let mut bench = Bench::new();
    let [one, two, three] = begun(&mut bench, ["One", "Two", "Three"]);
    let work = bench.chat.create_folder("Work", []).unwrap();
    let home = bench.chat.create_folder("Home", [two]).unwrap();
    bench.chat.pin([two], true).unwrap();
    bench.chat.archive([three], true).unwrap();
    let start = all(&bench);
    let both = [two, three];

    type Verb = Box<dyn Fn(&Bench) -> Result<String, Failure>>;
    let verbs: [(&str, Verb); 8] = [
        (
            "pinned 2 chats",
            Box::new(move |bench| bench.chat.pin(both, true)),
        ),
        (
            "unpinned 2 chats",
            Box::new(move |bench| bench.chat.pin(both, false)),
        ),
        (
            "archived 2 chats",
            Box::new(move |bench| bench.chat.archive(both, true)),
        ),
        (
            "unarchived 2 chats",
            Box::new(move |bench| bench.chat.archive(both, false)),
        ),
        (
            "moved 2 chats to “Work”",
            Box::new(move |bench| bench.chat.move_chats(both, Some(work))),
        ),
        (
            "moved 2 chats out of folders",
            Box::new(move |bench| bench.chat.move_chats(both, None)),
        ),
        (
            "deleted 2 chats",
            Box::new(move |bench| bench.chat.delete(both)),
        ),
        (
            "deleted “One”",
            Box::new(move |bench| bench.chat.delete([one])),
        ),
    ];
    for (label, verb) in &verbs {
        assert_eq!(verb(&bench).as_deref(), Ok(*label));
        let changed = all(&bench);
        assert_ne!(changed, start, "{label}");
        for _ in 0..2 {
            assert_eq!(undone(&bench), *label);
            assert_eq!(all(&bench), start, "{label}, undone");
            assert_eq!(bench.chat.redo().unwrap().unwrap().label, *label);
            assert_eq!(all(&bench), changed, "{label}, made again");
        }
        bench.chat.undo().unwrap();
    }
    // Two was in “Home” before, and is there again.
    assert_eq!(start[1].folder, Some(home));
}

#[test]
fn what_is_gone_meanwhile_is_left_out_and_nothing_at_all_is_refused() {
    let mut bench = Bench::new();
    let [one, two] = begun(&mut bench, ["One", "Two"]);
    bench.chat.pin([one, ChatId(99)], true).unwrap();
    assert_eq!(all(&bench).iter().filter(|chat| chat.pinned).count(), 1);
    for refused in [
        bench.chat.pin([], true),
        bench.chat.pin([ChatId(99)], true),
        bench.chat.delete([ChatId(99)]),
        bench.chat.restore([ChatId(99)]),
        bench.chat.move_chats([two], Some(chat::FolderId(9))),
    ] {
        let message = refused.unwrap_err().message;
        assert!(message.ends_with("does not exist any more."), "{message}");
    }
    assert_eq!(
        undone(&bench),
        "pinned 2 chats",
        "what was refused is no change"
    );
}

#[test]
fn the_window_hears_of_many_chats_at_once() {
    let mut bench = Bench::new();
    let chats = begun(&mut bench, ["One", "Two"]);
    bench.chat.archive(chats, true).unwrap();
    bench.until(|event| {
        matches!(event, ChatEvent::ChatsChanged { chats } if chats.len() == 2 && chats[0].archived)
    });
    bench.chat.delete(chats).unwrap();
    bench.until(
        |event| matches!(event, ChatEvent::ChatsRemoved { chats: gone } if gone[..] == chats),
    );
    bench.chat.undo().unwrap();
    bench.until(|event| matches!(event, ChatEvent::ChatsChanged { chats } if chats.len() == 2));
}

#[test]
fn an_archived_chat_is_found_and_goes_on() {
    let mut bench = Bench::new();
    let [one] = begun(&mut bench, ["Goldcrests"]);
    bench.chat.archive([one], true).unwrap();
    assert_eq!(bench.chat.search("goldcrest").unwrap().chats[0].chat, one);
    assert!(
        bench.ask(Some(one), "And wrens?").chat.archived,
        "it stays there"
    );
}

#[test]
fn a_chat_that_is_named_often_is_one() {
    let mut bench = Bench::new();
    let [one, two, three] = begun(&mut bench, ["One", "Two", "Three"]);
    let often = |chats: [ChatId; 2]| chats.repeat(1000);
    assert_eq!(
        bench.chat.delete(often([one, one])).unwrap(),
        "deleted “One”"
    );
    assert_eq!(
        bench.chat.delete(often([two, three])).unwrap(),
        "deleted 2 chats"
    );
    assert_eq!(
        bench.chat.restore(often([two, one])).unwrap(),
        "restored 2 chats"
    );
    assert_eq!(
        bench.chat.pin(often([two, two]), true).unwrap(),
        "pinned “Two”"
    );
    assert_eq!(
        bench.chat.archive(often([two, one]), true).unwrap(),
        "archived 2 chats"
    );
    let moved = bench.chat.move_chats(often([one, one]), None).unwrap();
    assert_eq!(moved, "moved “One” out of folders");
    bench.chat.create_folder("Work", often([one, one])).unwrap();
    bench.until(
        |event| matches!(event, ChatEvent::ChatsChanged { chats } if chats[0].folder.is_some()),
    );
}

#[test]
fn the_bin_has_what_was_deleted_until_it_is_removed_for_good() {
    let script = Script::default();
    let timing = Timing {
        purge_after: Duration::from_secs(3600),
        ..TIMING
    };
    let mut bench = Bench::timed(Store::in_memory().unwrap(), &script, TODAY, timing);
    bench.until_ready();
    let [one, two, three] = begun(&mut bench, ["One", "Two", "Three"]);
    bench.chat.delete([one]).unwrap();
    bench.chat.rename(three, "Third").unwrap();
    bench.chat.delete([two]).unwrap();
    let now = TODAY
        .parse::<jiff::ZonedDateTime>()
        .unwrap()
        .timestamp()
        .as_second();
    let bin = bench.chat.bin().unwrap();
    let ids = |bin: &[ChatSummary]| bin.iter().map(|chat| chat.id).collect::<Vec<_>>();
    assert_eq!(ids(&bin), [two, one], "the last one first");
    assert_eq!(bin[0].purge_at, Some(now + 30 * 24 * 3600));
    let read = bench.chat.open_chat(one).unwrap();
    assert_eq!(
        (read.messages.len(), read.chat.purge_at),
        (2, bin[1].purge_at)
    );

    // A chat that is not in the bin is not purged.
    bench.chat.delete_for_good([one, three]).unwrap();
    assert_eq!(ids(&bench.chat.bin().unwrap()), [two]);
    script
        .beside()
        .until(&Beside::Retain(vec![two, three, ChatId(0)]));
    let gone = |failure: Failure| failure.message.ends_with("does not exist any more.");
    assert!(bench.chat.restore([one]).is_err_and(gone));
    assert!(bench.chat.open_chat(one).is_err_and(gone));
    assert_eq!(undone(&bench), "deleted “Two”");
    assert_eq!(undone(&bench), "renamed “Three”");
    assert_eq!(
        bench.chat.undo().unwrap(),
        None,
        "what is gone for good is not in the way"
    );
    let titles: Vec<_> = all(&bench).into_iter().map(|chat| chat.title).collect();
    assert_eq!(titles, ["Two", "Three"]);
}

#[test]
fn ten_thousand_chats_are_changed_at_once_and_taken_back() {
    let store = Store::in_memory().unwrap();
    let made = store.transaction(|store| {
        (0..10_000)
            .map(|at| {
                store
                    .chats()
                    .create(&format!("Chat {at}"), "2026-03-05", at)
            })
            .collect::<Result<Vec<_>, _>>()
    });
    let chats = made.unwrap();
    let mut bench = Bench::start(store, &Script::default(), TODAY);
    bench.until_ready();
    let folder = bench.chat.create_folder("All", []).unwrap();
    let begin = Instant::now();
    assert_eq!(
        bench.chat.move_chats(chats.clone(), Some(folder)).unwrap(),
        "moved 10,000 chats to “All”"
    );
    bench.chat.delete(chats).unwrap();
    bench.chat.undo().unwrap();
    bench.chat.delete_folder(folder).unwrap();
    bench.chat.undo().unwrap();
    let took = begin.elapsed();
    assert!(
        took < Duration::from_secs(10),
        "{took:?}: no query per pair of chats"
    );
    let there = all(&bench);
    assert_eq!(there.len(), 10_000);
    assert!(there.iter().all(|chat| chat.folder == Some(folder)));
}

#[test]
fn a_title_of_a_megabyte_is_refused_with_its_length() {
    let mut bench = Bench::new();
    let [one] = begun(&mut bench, ["One"]);
    let refused = bench.chat.rename(one, "x".repeat(1_000_000)).unwrap_err();
    assert_eq!(
        refused.message,
        "A title has at most 200 characters; this one has 1,000,000."
    );
    assert_eq!(all(&bench)[0].title, "One");
    // A first message may be as long: its title is its beginning.
    let view = bench.ask(None, &"y".repeat(1_000_000));
    assert_eq!(view.chat.title.chars().count(), 61);
}

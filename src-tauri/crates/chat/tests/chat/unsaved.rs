//! A database that cannot be written: a full disk, or another process that holds the file.

use std::time::{Duration, Instant};

use chat::{ChatEvent, ChatId, FailureCode, MessageState, Role, Timing};
use inference::StopReason;
use store::{NewMessage, Parts, Store, StoreError, faults};

use crate::beside::Beside;
use crate::bin::{DAY, TOMORROW, date_back};
use crate::scripted::{Bench, EVENT_TIMEOUT, Script, Step, TIMING, TODAY, last_row, texts};

/// Timing without journaling and retries.
const UNHURRIED: Timing = Timing {
    journal_after: Duration::from_secs(3600),
    retry_after: Duration::from_secs(3600),
    ..TIMING
};

const TABLES: [&str; 5] = ["chat", "message", "setting", "draft", "window"];

/// Makes a file, and a bench over it.
fn on_file() -> (tempfile::TempDir, std::path::PathBuf, Bench) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    (folder, path, bench)
}

/// Returns the number of messages that a search finds.
fn found(bench: &Bench, query: &str) -> u32 {
    let chats = bench.chat.search(query).unwrap().chats;
    chats.iter().map(|chat| chat.count).sum()
}

#[test]
fn an_answer_that_cannot_be_saved_is_stopped_and_saved_when_that_is_possible() {
    let (_folder, path, mut bench) = on_file();
    let go = bench.script.go();
    bench.script.answer([
        Step::Say("Six "),
        Step::Wait,
        Step::Say("grams"),
        // Only a cancel ends this.
        Step::Wait,
    ]);
    let chat = bench.chat.send(None, "How heavy?", true).unwrap().chat.id;
    bench.until_delta();
    faults::refuse_writes(&path, &["message"]).unwrap();
    go.send(()).unwrap();
    let ended = bench.until_ended();
    assert_eq!(
        (ended.state, &*ended.text()),
        (MessageState::Failed, "Six grams")
    );
    let error = ended.error.clone().unwrap();
    assert_eq!(error.code, FailureCode::Store);
    assert!(error.message.contains("disk is full"), "{}", error.message);

    let view = bench.chat.open_chat(chat).unwrap();
    assert!(!view.chat.writing);
    assert_eq!(
        (view.messages[1].state, &*view.messages[1].text()),
        (MessageState::Failed, "Six grams"),
        "nothing of it is gone"
    );
    assert_eq!(view.messages[1].error.as_ref(), Some(&error));
    for refused in [
        bench.chat.send(Some(chat), "Sure?", true),
        bench.chat.continue_answer(ended.id),
        bench.chat.regenerate(ended.id, true, None),
    ] {
        assert_eq!(refused.unwrap_err().code, FailureCode::Store);
    }

    faults::allow_writes(&path).unwrap();
    let saved = bench.until_ended();
    assert_eq!(
        (saved.id, saved.state, &*saved.text()),
        (ended.id, MessageState::Failed, "Six grams")
    );
    assert_eq!(found(&bench, "grams"), 1);
    let view = bench.ask(Some(chat), "Sure?");
    assert_eq!(texts(&view), ["How heavy?", "Six grams", "Sure?", "Yes."]);
    assert_eq!(bench.script.last_turn().history[1].text, "Six grams");
}

#[test]
fn an_answer_that_fills_the_disk_is_whole_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    drop(Store::open(&path).unwrap());
    faults::lay_ballast(&path, 4_000_000).unwrap();
    let store = Store::open(&path).unwrap();
    faults::fill_disk(&store, 40).unwrap();
    let script = Script::default();
    let timing = Timing {
        journal_after: UNHURRIED.journal_after,
        ..TIMING
    };
    let mut bench = Bench::timed(store, &script, TODAY, timing);
    let long: &'static str = "gold ".repeat(100_000).leak();
    script.answer([Step::Say(long)]);
    let chat = bench.chat.send(None, "A long one.", true).unwrap().chat.id;
    let ended = bench.until_ended();
    assert_eq!(ended.state, MessageState::Failed);
    let error = ended.error.unwrap();
    assert_eq!(error.code, FailureCode::DiskFull);
    assert!(
        error.message.starts_with("The disk is full"),
        "{}",
        error.message
    );
    assert_eq!(ended.parts.text(), long);
    assert_eq!(ended.stats.unwrap().figures.tokens, 1);
    assert_eq!(
        bench.chat.open_chat(chat).unwrap().messages[1].text(),
        long,
        "it can be read meanwhile"
    );
    // A short message would still fit, but not below a missing answer.
    let refused = bench.chat.send(Some(chat), "Sure?", true).unwrap_err();
    assert_eq!(refused.code, FailureCode::DiskFull);
    // Caches are freed to make room.
    script.beside().until(&Beside::MakeRoom);

    faults::make_room(&path).unwrap();
    let ended = bench.until_ended();
    assert_eq!((ended.state, ended.error), (MessageState::Done, None));
    assert_eq!(ended.stats.unwrap().figures.tokens, 1);
    bench.chat.shutdown();
    let row = last_row(&path);
    assert_eq!(
        (row.state, &*row.progress.parts.text()),
        (MessageState::Done, long)
    );
}

#[test]
fn an_end_that_was_not_saved_is_saved_when_the_app_closes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let mut bench = Bench::timed(store, &Script::default(), TODAY, UNHURRIED);
    let go = bench.script.go();
    bench.script.answer([Step::Say("Six grams."), Step::Wait]);
    bench.chat.send(None, "How heavy?", true).unwrap();
    bench.until_delta();
    faults::refuse_writes(&path, &["message"]).unwrap();
    go.send(()).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Failed);
    faults::allow_writes(&path).unwrap();
    bench.chat.shutdown();

    let row = last_row(&path);
    assert_eq!(
        (row.state, &*row.progress.parts.text(), row.error),
        (MessageState::Done, "Six grams.", None)
    );
}

#[test]
fn what_is_saved_by_the_next_request_need_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let script = Script::default();
    let mut bench = Bench::timed(Store::open(&path).unwrap(), &script, TODAY, UNHURRIED);
    let go = script.go();
    script.answer([
        Step::Say("Once "),
        Step::Wait,
        Step::End(StopReason::MaxTokens),
    ]);
    bench.chat.send(None, "A story.", true).unwrap();
    bench.until_delta();
    faults::refuse_writes(&path, &["message"]).unwrap();
    go.send(()).unwrap();
    let answer = bench.until_ended().id;
    faults::allow_writes(&path).unwrap();
    script.answer([Step::Say("upon")]);
    bench.chat.continue_answer(answer).unwrap();
    assert_eq!(
        bench.until_ended().state,
        MessageState::Limit,
        "as it ended"
    );
    assert_eq!(bench.until_ended().text(), "Once upon");
}

#[test]
fn an_answer_that_nobody_writes_is_shown_as_interrupted() {
    let (_folder, path, mut bench) = on_file();
    let view = bench.ask(None, "How heavy?");
    let elsewhere = Store::open(&path).unwrap();
    let stranded = elsewhere
        .messages()
        .add(&NewMessage {
            chat: view.chat.id,
            parent: Some(view.messages[0].id),
            role: Role::Assistant,
            state: MessageState::Writing,
            parts: Parts::of_text("Six "),
            thinks: false,
            created_at: 0,
        })
        .unwrap();
    let view = bench.chat.open_chat(view.chat.id).unwrap();
    assert_eq!(
        (view.messages[1].id, view.messages[1].state),
        (stranded, MessageState::Interrupted)
    );
    bench.script.answer([Step::Say("grams.")]);
    let view = bench.chat.continue_answer(stranded).unwrap();
    assert_eq!(view.messages[0].state, MessageState::Writing);
    assert_eq!(bench.until_ended().text(), "Six grams.");
}

#[test]
fn an_answer_that_a_crash_left_is_marked_once_that_is_possible() {
    let (_folder, path, mut bench) = on_file();
    let view = bench.ask(None, "How heavy?");
    let (chat, asked) = (view.chat.id, view.messages[0].id);
    bench.chat.shutdown();
    let store = Store::open(&path).unwrap();
    let left = NewMessage {
        chat,
        parent: Some(asked),
        role: Role::Assistant,
        state: MessageState::Writing,
        parts: Parts::of_text("Six grams"),
        thinks: false,
        created_at: 0,
    };
    let left = store.messages().add(&left).unwrap();
    drop(store);
    faults::refuse_writes(&path, &["message"]).unwrap();

    let mut bench = Bench::on_file(&path, &Script::default());
    let shown = bench.chat.open_chat(chat).unwrap().messages.remove(1);
    assert_eq!(
        (shown.id, shown.state, &*shown.text()),
        (left, MessageState::Failed, "Six grams")
    );
    let error = shown.error.unwrap();
    assert!(error.message.contains("disk is full"), "{}", error.message);
    let refused = bench.chat.continue_answer(left).unwrap_err();
    assert_eq!(refused.code, FailureCode::Store);

    faults::allow_writes(&path).unwrap();
    let saved = loop {
        let ended = bench.until_ended();
        if ended.error.is_none() {
            break ended;
        }
    };
    assert_eq!((saved.id, saved.state), (left, MessageState::Interrupted));
    assert_eq!(found(&bench, "grams"), 1);
    assert_eq!(last_row(&path).state, MessageState::Interrupted);
}

#[test]
fn damage_that_is_met_is_looked_for_at_the_next_start() {
    let (_folder, path, mut bench) = on_file();
    let long: &'static str = "-".repeat(100_000).leak();
    bench.script.answer([Step::Say(long)]);
    let chat = bench.ask(None, "How heavy?").chat.id;
    bench.chat.shutdown();
    let mut bytes = std::fs::read(&path).unwrap();
    // A page of a long text begins with the number of the next one.
    let pages = bytes.chunks_exact_mut(4096);
    let of_text = pages.filter(|page| page[4..].iter().all(|byte| *byte == b'-'));
    of_text.for_each(|page| page[..4].fill(0xff));
    let bench = Bench::on_file(&path, &Script::default());
    assert!(bench.chat.rename(ChatId(99), "x").is_err());
    assert!(!path.with_extension("check").exists(), "that is no damage");
    std::fs::write(&path, bytes).unwrap();
    let failed = bench.chat.open_chat(chat).unwrap_err();
    assert_eq!(failed.code, FailureCode::Store, "{failed}");
    bench.chat.shutdown();
    let next = Store::open(&path).err();
    assert!(
        matches!(next, Some(StoreError::Damaged { opens: true, .. })),
        "{next:?}"
    );
}

#[test]
fn chats_can_be_read_though_nothing_can_be_written() {
    let (_folder, path, mut bench) = on_file();
    bench.script.answer([Step::Say("Six grams.")]);
    let first = bench.ask(None, "How heavy?");
    bench.script.answer([Step::Say("Five grams.")]);
    bench
        .chat
        .regenerate(first.messages[1].id, true, None)
        .unwrap();
    bench.until_ended();
    let second = bench.ask(None, "How long?");
    faults::refuse_writes(&path, &TABLES).unwrap();

    let (chat, answer) = (first.chat.id, first.messages[1].id);
    assert_eq!(
        texts(&bench.chat.open_chat(chat).unwrap()),
        ["How heavy?", "Five grams."]
    );
    assert_eq!(
        texts(&bench.chat.show_sibling(answer).unwrap()),
        ["Six grams."]
    );
    assert_eq!(
        texts(&bench.chat.open_chat(chat).unwrap()),
        ["How heavy?", "Six grams."],
        "it stays shown"
    );
    assert_eq!(found(&bench, "grams"), 2);
    bench.chat.open_chat(second.chat.id).unwrap();
    let refused = bench.chat.send(Some(chat), "Sure?", true).unwrap_err();
    assert_eq!(refused.code, FailureCode::Store);
    let refused = bench.chat.delete([chat]).unwrap_err();
    assert_eq!(refused.code, FailureCode::Store);

    faults::allow_writes(&path).unwrap();
    // A message is added below the shown one.
    let view = bench.ask(Some(chat), "Sure?");
    assert_eq!(texts(&view), ["How heavy?", "Six grams.", "Sure?", "Yes."]);
}

#[test]
fn a_shown_branch_that_could_not_be_saved_is_saved_later() {
    let (_folder, path, mut bench) = on_file();
    let first = bench.ask(None, "How heavy?");
    let (chat, answer) = (first.chat.id, first.messages[1].id);
    bench.chat.regenerate(answer, true, None).unwrap();
    bench.until_ended();
    faults::refuse_writes(&path, &TABLES).unwrap();
    bench.chat.show_sibling(answer).unwrap();
    faults::allow_writes(&path).unwrap();
    bench.chat.shutdown();
    let bench = Bench::on_file(&path, &Script::default());
    assert_eq!(bench.chat.open_chat(chat).unwrap().messages[1].id, answer);
}

#[test]
fn a_branch_that_is_shown_later_takes_the_place_of_one_that_could_not_be_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let script = Script::default();
    let mut bench = Bench::timed(Store::open(&path).unwrap(), &script, TODAY, UNHURRIED);
    let view = bench.ask(None, "How heavy?");
    let (chat, first) = (view.chat.id, view.messages[1].id);
    let second = bench.chat.regenerate(first, true, None).unwrap().messages[0].id;
    bench.until_ended();
    faults::refuse_writes(&path, &TABLES).unwrap();
    bench.chat.show_sibling(first).unwrap();
    faults::allow_writes(&path).unwrap();
    let view = bench.chat.show_sibling(second).unwrap();
    assert_eq!(view.messages[0].id, second);
    bench.chat.shutdown();
    let bench = Bench::on_file(&path, &Script::default());
    assert_eq!(bench.chat.open_chat(chat).unwrap().messages[1].id, second);
}

#[test]
fn a_chat_that_cannot_be_deleted_goes_on_with_its_answer() {
    let (_folder, path, mut bench) = on_file();
    let go = bench.script.go();
    bench
        .script
        .answer([Step::Say("Six "), Step::Wait, Step::Say("grams.")]);
    let chat = bench.chat.send(None, "How heavy?", true).unwrap().chat.id;
    bench.until_delta();
    faults::refuse_writes(&path, &["chat"]).unwrap();
    assert_eq!(
        bench.chat.delete([chat]).unwrap_err().code,
        FailureCode::Store
    );
    faults::allow_writes(&path).unwrap();
    go.send(()).unwrap();
    let ended = bench.until_ended();
    assert_eq!(
        (ended.state, &*ended.text()),
        (MessageState::Done, "Six grams.")
    );
}

#[test]
fn expired_chats_are_purged_after_the_start_while_others_are_served() {
    let (_folder, path, mut bench) = on_file();
    let kept = bench.ask(None, "How heavy?").chat.id;
    let gone = bench.ask(None, "How long?").chat.id;
    for text in ["One", "Two", "Three"].repeat(10) {
        bench.ask(Some(gone), text);
    }
    bench.chat.delete([gone]).unwrap();
    bench.chat.shutdown();
    let store = Store::open(&path).unwrap();
    date_back(&store, &[gone], 40 * DAY);
    let mut bench = Bench::start(store, &Script::default(), TOMORROW);
    assert_eq!(texts(&bench.ask(Some(kept), "Sure?"))[2], "Sure?");
    let reader = Store::open(&path).unwrap();
    let begun = Instant::now();
    while !reader.messages().tree(gone).unwrap().is_empty() {
        assert!(begun.elapsed() < EVENT_TIMEOUT, "they are still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(bench.chat.restore([gone]).is_err());
}

#[test]
fn messages_that_the_search_lacks_are_indexed_after_the_start() {
    let (_folder, path, mut bench) = on_file();
    bench.ask(None, "How heavy?");
    bench.chat.shutdown();
    let store = Store::open(&path).unwrap();
    faults::empty_index(&store).unwrap();
    let bench = Bench::start(store, &Script::default(), TODAY);
    let begun = Instant::now();
    while bench.chat.search("heavy").unwrap().indexing {
        assert!(begun.elapsed() < EVENT_TIMEOUT, "they are not indexed");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(found(&bench, "heavy"), 1);
}

#[test]
fn the_app_starts_though_expired_chats_cannot_be_purged() {
    let (_folder, path, mut bench) = on_file();
    let kept = bench.ask(None, "How heavy?").chat.id;
    let gone = bench.ask(None, "How long?").chat.id;
    bench.chat.delete([gone]).unwrap();
    bench.chat.shutdown();
    let store = Store::open(&path).unwrap();
    date_back(&store, &[gone], 40 * DAY);
    faults::refuse_writes(&path, &TABLES).unwrap();
    let mut bench = Bench::start(store, &Script::default(), TOMORROW);
    assert_eq!(texts(&bench.chat.open_chat(kept).unwrap())[0], "How heavy?");
    bench.until(|event| matches!(event, ChatEvent::Model { .. }));
}

#[test]
fn all_ends_are_saved_once_that_is_possible() {
    let (_folder, path, mut bench) = on_file();
    let chats: Vec<_> = ["One", "Two", "Three"]
        .map(|text| bench.ask(None, text).chat.id)
        .into();
    let go = bench.script.go();
    for text in ["Six.", "Seven.", "Eight."] {
        bench.script.answer([Step::Wait, Step::Say(text)]);
    }
    for chat in &chats {
        bench.chat.send(Some(*chat), "And?", true).unwrap();
    }
    faults::refuse_writes(&path, &["message"]).unwrap();
    for _ in &chats {
        go.send(()).unwrap();
    }
    for _ in &chats {
        assert_eq!(bench.until_ended().state, MessageState::Failed);
    }
    // Meanwhile it is retried several times.
    std::thread::sleep(10 * TIMING.retry_after);
    faults::allow_writes(&path).unwrap();
    let mut saved: Vec<_> = chats.iter().map(|_| bench.until_ended().text()).collect();
    saved.sort();
    assert_eq!(saved, ["Eight.", "Seven.", "Six."]);
    for chat in chats {
        let view = bench.chat.open_chat(chat).unwrap();
        assert_eq!(view.messages[3].error, None);
    }
}

#[test]
fn a_message_that_cannot_be_shown_is_not_sent() {
    let (_folder, path, mut bench) = on_file();
    let view = bench.ask(None, "How heavy?");
    let (chat, answer) = (view.chat.id, view.messages[1].id);
    faults::damage_queue(&path, chat).unwrap();
    assert!(bench.chat.open_chat(chat).is_err());
    assert!(bench.chat.send(Some(chat), "And how long?", true).is_err());
    assert!(bench.chat.regenerate(answer, true, None).is_err());
    assert!(bench.chat.continue_answer(answer).is_err());
    let edited = bench.chat.edit_message(answer, "Six.", None);
    assert!(edited.is_err());
    faults::mend_queue(&path, chat).unwrap();
    let after = bench.chat.open_chat(chat).unwrap();
    assert_eq!(
        after.messages, view.messages,
        "nothing is there twice later"
    );
    let sent = bench.chat.send(Some(chat), "And how long?", true).unwrap();
    assert!(sent.chat.writing);
    assert_eq!(sent.messages.last().unwrap().state, MessageState::Writing);
    bench.until_ended();
    assert_eq!(bench.chat.open_chat(chat).unwrap().messages.len(), 4);
}

//! The list: order, titles, the bin, drafts, search.

use chat::{ChatEvent, ChatId, Draft, FailureCode, MessageState, WindowRow};
use store::Store;

use crate::bin::{DAY, TOMORROW, date_back};
use crate::scripted::{Bench, Script, Step, SteppingClock, TIMING};

fn titles(bench: &Bench) -> Vec<String> {
    bench
        .chat
        .snapshot()
        .unwrap()
        .chats
        .into_iter()
        .map(|chat| chat.title)
        .collect()
}

#[test]
fn the_latest_chat_comes_first() {
    let mut bench = Bench::new();
    bench.ask(None, "One");
    bench.ask(None, "Two");
    assert_eq!(titles(&bench), ["Two", "One"]);
}

#[test]
fn a_chat_in_which_something_is_written_becomes_the_latest() {
    let clock = Box::new(SteppingClock::default());
    let script = Script::default();
    let mut bench = Bench::clocked(Store::in_memory().unwrap(), &script, clock, TIMING);
    let one = bench.ask(None, "One");
    let two = bench.ask(None, "Two");
    assert_eq!(titles(&bench), ["Two", "One"]);
    bench.ask(Some(one.chat.id), "More");
    assert_eq!(titles(&bench), ["One", "Two"], "a message");
    bench
        .chat
        .regenerate(two.messages[1].id, true, None)
        .unwrap();
    bench.until_ended();
    assert_eq!(titles(&bench), ["Two", "One"], "another answer");
    bench
        .chat
        .edit_message(one.messages[0].id, "One more", None)
        .unwrap();
    assert_eq!(titles(&bench), ["One", "Two"], "an edit");
    bench.chat.rename(two.chat.id, "Second").unwrap();
    bench.chat.open_chat(two.chat.id).unwrap();
    assert_eq!(
        titles(&bench),
        ["One", "Second"],
        "not what is only looked at"
    );
}

#[test]
fn the_first_start_is_over_with_the_first_chat_though_it_was_deleted() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "One").chat.id;
    bench.chat.delete([chat]).unwrap();
    let snapshot = bench.chat.snapshot().unwrap();
    assert!(snapshot.chats.is_empty() && !snapshot.first_start);
}

#[test]
fn a_title_is_one_line_and_not_empty() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "One").chat.id;
    assert_eq!(
        bench
            .chat
            .rename(chat, "  Birds\nof Europe ")
            .unwrap()
            .title,
        "Birds of Europe"
    );
    bench.until(
        |event| matches!(event, ChatEvent::ChatChanged { chat } if chat.title == "Birds of Europe"),
    );
    assert_eq!(
        bench.chat.rename(chat, " ").unwrap_err().code,
        FailureCode::Other
    );
    assert_eq!(
        bench.chat.rename(ChatId(99), "X").unwrap_err().code,
        FailureCode::Other
    );
    assert_eq!(titles(&bench), ["Birds of Europe"]);
}

#[test]
fn deleting_can_be_undone() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "One");
    let chat = view.chat.id;
    bench.chat.delete([chat]).unwrap();
    bench.until(|event| *event == ChatEvent::ChatsRemoved { chats: vec![chat] });
    assert!(titles(&bench).is_empty());
    assert_eq!(bench.chat.snapshot().unwrap().current, None);
    assert!(
        bench.chat.open_chat(chat).unwrap().chat.purge_at.is_some(),
        "it can be read"
    );
    assert_eq!(bench.chat.snapshot().unwrap().current, None);
    assert_eq!(
        bench.chat.rename(chat, "X").unwrap_err().code,
        FailureCode::Other
    );
    assert_eq!(
        bench.chat.send(Some(chat), "Hm?", true).unwrap_err().code,
        FailureCode::Other
    );
    let message = view.messages[1].id;
    assert_eq!(
        bench.chat.regenerate(message, true, None).unwrap_err().code,
        FailureCode::Other
    );

    assert_eq!(bench.chat.restore([chat]).unwrap(), "restored “One”");
    bench.until(|event| matches!(event, ChatEvent::ChatsChanged { .. }));
    assert_eq!(bench.chat.open_chat(chat).unwrap(), view);
}

#[test]
fn deleting_stops_the_answer_and_undoing_brings_what_there_was() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::Say("partial"), Step::Wait, Step::Say("never")]);
    let chat = bench.chat.send(None, "One", true).unwrap().chat.id;
    bench.until_delta();
    bench.chat.delete([chat]).unwrap();
    // The next answer can only come once the first one has stopped.
    bench.ask(None, "Two");
    let view = bench
        .chat
        .restore([chat])
        .and_then(|_| bench.chat.open_chat(chat))
        .unwrap();
    assert_eq!(
        (&*view.messages[1].text(), view.messages[1].state),
        ("partial", MessageState::Stopped)
    );
}

#[test]
fn the_bin_is_emptied_after_thirty_days() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let chat = bench.ask(None, "One").chat.id;
    bench.chat.delete([chat]).unwrap();
    bench.chat.shutdown();

    let restored_after = |seconds| {
        let store = Store::open(&path).unwrap();
        date_back(&store, &[chat], seconds);
        let bench = Bench::start(store, &Script::default(), TOMORROW);
        let restored = bench.chat.restore([chat]);
        if restored.is_ok() {
            bench.chat.delete([chat]).unwrap();
        }
        bench.chat.shutdown();
        restored.map_err(|failure| failure.code)
    };
    let there = Ok("restored “One”");
    assert_eq!(restored_after(0).as_deref(), there);
    assert_eq!(restored_after(30 * DAY - 60).as_deref(), there);
    assert_eq!(restored_after(30 * DAY + 60), Err(FailureCode::Other));
}

#[test]
fn drafts_stay_until_they_are_sent() {
    let mut bench = Bench::new();
    bench.chat.save_draft(None, "How hea").unwrap();
    assert_eq!(
        bench.chat.snapshot().unwrap().new_chat_draft.text,
        "How hea"
    );
    let chat = bench.ask(None, "How heavy?").chat.id;
    assert_eq!(
        bench.chat.snapshot().unwrap().new_chat_draft,
        Draft::default()
    );

    bench.chat.save_draft(Some(chat), "And how o").unwrap();
    assert_eq!(bench.chat.open_chat(chat).unwrap().draft.text, "And how o");
    assert_eq!(
        bench.ask(Some(chat), "And how old?").draft,
        Draft::default()
    );
    assert_eq!(
        bench
            .chat
            .save_draft(Some(ChatId(99)), "x")
            .unwrap_err()
            .code,
        FailureCode::Other
    );
}

#[test]
fn search_finds_titles_texts_and_thinking() {
    let mut bench = Bench::new();
    bench
        .script
        .answer([Step::Think("Regulus regulus"), Step::Say("Six grams.")]);
    let view = bench.ask(None, "How heavy is a goldcrest?");
    let found = |query: &str| bench.chat.search(query).unwrap().chats;

    let chats = found("goldcr");
    assert_eq!((chats.len(), chats[0].in_title), (1, true));
    let hits = &chats[0].hits;
    assert_eq!(hits[0].message, view.messages[0].id);
    assert!(
        hits[0].snippet.contains("\u{E000}goldcrest\u{E001}"),
        "{:?}",
        hits[0].snippet
    );
    let in_chat = bench.chat.search_chat("goldcr", view.chat.id).unwrap();
    assert_eq!(&in_chat, hits);
    assert_eq!(found("regulus")[0].hits[0].message, view.messages[1].id);
    assert_eq!(found("six").len(), 1);
    bench.chat.delete([view.chat.id]).unwrap();
    assert_eq!(found("goldcrest"), []);
}

#[test]
fn windows_are_remembered() {
    let bench = Bench::new();
    let window = WindowRow {
        x: -5,
        y: 7,
        width: 900,
        height: 600,
        maximised: true,
    };
    assert_eq!(bench.chat.window("main").unwrap(), None);
    bench.chat.save_window("main", window).unwrap();
    assert_eq!(bench.chat.window("main").unwrap(), Some(window));
}

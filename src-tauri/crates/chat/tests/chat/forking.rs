//! A branch that becomes a chat of its own, and deleted messages.

use chat::{LengthWish, MessageState};
use store::Store;

use crate::beside::Beside;
use crate::bin::{DAY, TOMORROW};
use crate::scripted::{Bench, Script, Step, TODAY, texts};

#[test]
fn a_branch_becomes_a_chat_of_its_own_whose_prompt_is_the_same() {
    let mut bench = Bench::new();
    bench.script.answer([
        Step::Tag(7),
        Step::Think("Hm."),
        Step::Tag(8),
        Step::Say("Six."),
    ]);
    let chat = bench.ask(None, "How heavy?").chat.id;
    let whole = bench.ask(Some(chat), "And a wren?");
    bench.ask(Some(chat), "More");
    let fork = bench.chat.fork(whole.messages[3].id).unwrap();
    assert_ne!(fork.chat.id, chat);
    assert_eq!(fork.chat.title, "How heavy? (copy)");
    assert_eq!(texts(&fork), ["How heavy?", "Six.", "And a wren?", "Yes."]);
    let without = |message: &chat::Message| chat::Message {
        id: chat::MessageId(0),
        parent: None,
        siblings: Vec::new(),
        ..message.clone()
    };
    let all = |messages: &[chat::Message]| messages.iter().map(without).collect::<Vec<_>>();
    assert_eq!(
        all(&fork.messages),
        all(&whole.messages),
        "thinking and figures"
    );

    bench.ask(Some(chat), "Sure?");
    bench.ask(Some(fork.chat.id), "Sure?");
    let turns = bench.script.turns();
    let [original, copied] = &turns[turns.len() - 2..] else {
        panic!("two turns");
    };
    // The original has one more exchange.
    assert_eq!(original.history[..4], copied.history[..4]);
    assert_eq!(
        copied.history[1].ids.as_deref(),
        Some(&[7, 101, 8, 103][..])
    );
    assert_eq!(original.today, copied.today);

    assert_eq!(texts(&bench.chat.open_chat(chat).unwrap()).len(), 8);
    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(undone.label, "made a new chat of “How heavy?”");
    let undone = bench.chat.open_chat(fork.chat.id).unwrap();
    assert!(undone.chat.purge_at.is_some(), "it is in the bin");
    bench.chat.redo().unwrap();
    assert_eq!(
        bench.chat.open_chat(fork.chat.id).unwrap().messages.len(),
        6
    );
}

#[test]
fn a_long_branch_is_copied_while_others_are_served() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "0").chat.id;
    let mut last = bench.chat.open_chat(chat).unwrap().messages[1].id;
    for at in 1..300 {
        let view = bench.ask(Some(chat), &format!("{at} {}", "words ".repeat(40)));
        last = view.messages.last().unwrap().id;
    }
    let other = bench.chat.clone();
    let copies = std::thread::spawn(move || other.fork(last).unwrap());
    let mut slowest = std::time::Duration::ZERO;
    while !copies.is_finished() {
        assert_eq!(
            bench.chat.bin().unwrap(),
            [],
            "it is hidden until it is whole"
        );
        let before = std::time::Instant::now();
        bench.chat.save_draft(Some(chat), "x").unwrap();
        slowest = slowest.max(before.elapsed());
    }
    assert_eq!(copies.join().unwrap().messages.len(), 600);
    assert!(
        slowest < std::time::Duration::from_millis(400),
        "{slowest:?}"
    );
    let chats = bench.chat.snapshot().unwrap().chats;
    assert_eq!(chats.len(), 2);
}

#[test]
fn a_branch_is_copied_to_the_end_though_its_chat_is_deleted_for_good_meanwhile() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "0").chat.id;
    let mut last = bench.chat.open_chat(chat).unwrap().messages[1].id;
    for at in 1..40 {
        let view = bench.ask(Some(chat), &format!("{at} {}", "words ".repeat(8000)));
        last = view.messages.last().unwrap().id;
    }
    let other = bench.chat.clone();
    let copies = std::thread::spawn(move || other.fork(last).unwrap());
    while bench.chat.may_leave_store().is_ok() {
        assert!(!copies.is_finished(), "it is asked between two parts");
    }
    bench.chat.delete([chat]).unwrap();
    bench.chat.delete_for_good([chat]).unwrap();
    assert_eq!(copies.join().unwrap().messages.len(), 80);
    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(undone.label, "made a new chat of “0”");
}

#[test]
fn what_is_not_there_or_not_done_is_not_copied() {
    let mut bench = Bench::new();
    assert!(bench.chat.fork(chat::MessageId(77)).is_err());
    let (view, go) = bench.begin_first();
    let refused = bench.chat.fork(view.messages[1].id).unwrap_err();
    assert!(refused.message.contains("still being written"), "{refused}");
    drop(go);
    assert_eq!(bench.chat.snapshot().unwrap().chats.len(), 1);
}

#[test]
fn a_deleted_message_takes_what_follows_and_undoing_brings_it_back() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "A").chat.id;
    let whole = bench.ask(Some(chat), "B");
    let view = bench.chat.delete_message(whole.messages[2].id).unwrap();
    assert_eq!(view.after, Some(whole.messages[1].id));
    assert_eq!(texts(&bench.chat.open_chat(chat).unwrap()), ["A", "Yes."]);
    assert!(bench.chat.search("B").unwrap().chats.is_empty());
    bench.ask(Some(chat), "C");
    let history = bench.script.last_turn().history;
    let said: Vec<_> = history.iter().map(|turn| turn.text.as_str()).collect();
    assert_eq!(said, ["A", "Yes.", "C"]);
    let shown = bench.chat.open_chat(chat).unwrap();
    assert_eq!(shown.messages[2].siblings.len(), 1, "not counted any more");

    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(undone.label, "deleted “B”");
    let back = bench.chat.open_chat(chat).unwrap();
    assert_eq!(texts(&back), texts(&whole));
    assert_eq!(back.messages[2].siblings.len(), 2);
    bench.chat.redo().unwrap();
    assert_eq!(
        texts(&bench.chat.open_chat(chat).unwrap()),
        ["A", "Yes.", "C", "Yes."]
    );
}

#[test]
fn the_last_message_of_a_chat_can_be_deleted_and_the_chat_goes_on() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "A");
    let empty = bench.chat.delete_message(view.messages[0].id).unwrap();
    assert!(empty.messages.is_empty() && empty.after.is_none());
    let again = bench.ask(Some(view.chat.id), "B");
    assert_eq!(texts(&again), ["B", "Yes."]);
    bench.chat.undo().unwrap();
    let back = bench.chat.open_chat(view.chat.id).unwrap();
    assert_eq!(texts(&back), ["A", "Yes."]);
    assert_eq!(back.messages[0].siblings.len(), 2);
}

#[test]
fn a_deleted_message_is_purged_after_thirty_days_with_what_was_read_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let view = bench.ask(None, "A");
    let (chat, answer) = (view.chat.id, view.messages[1].id);
    bench.chat.delete_message(answer).unwrap();
    bench.chat.shutdown();
    let today: jiff::ZonedDateTime = TODAY.parse().unwrap();
    let again = |seconds: i64, retained: &[chat::ChatId]| {
        let script = Script::default();
        let store = Store::open(&path).unwrap();
        store.messages().undelete(answer).unwrap();
        let at = today.timestamp().as_second() - seconds;
        store.messages().delete(answer, at).unwrap();
        let mut bench = Bench::start(store, &script, TOMORROW);
        bench.until_ready();
        let retain = Beside::Retain(retained.to_vec());
        script.beside().until(&retain);
        bench.chat.shutdown();
        let store = Store::open(&path).unwrap();
        store.messages().chat_of_deleted(answer).is_ok()
    };
    let new = chat::ChatId(0);
    assert!(again(30 * DAY - 60, &[chat, new]));
    assert!(!again(30 * DAY + 60, &[new]));
}

#[test]
fn while_an_answer_is_written_nothing_is_deleted_and_the_deletion_before_can_still_be_undone() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "A").chat.id;
    let whole = bench.ask(Some(chat), "B");
    bench.chat.delete_message(whole.messages[2].id).unwrap();
    bench.script.answer([Step::Say("partial"), Step::Wait]);
    bench.chat.send(Some(chat), "C", true).unwrap();
    bench.until_delta();
    for refused in [
        bench.chat.delete_message(whole.messages[0].id).map(|_| ()),
        bench.chat.undo().map(|_| ()),
    ] {
        assert!(refused.unwrap_err().message.contains("still being written"));
    }
    bench.chat.stop(chat).unwrap();
    bench.until_ended();
    assert_eq!(bench.chat.undo().unwrap().unwrap().label, "deleted “B”");
}

#[test]
fn a_regenerated_answer_is_undone_also_while_it_is_written() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "A");
    let (chat, first) = (view.chat.id, view.messages[1].id);
    bench.script.answer([Step::Say("partial"), Step::Wait]);
    bench.chat.regenerate(first, true, None).unwrap();
    bench.until_delta();
    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(
        (undone.label.as_str(), undone.chat),
        ("regenerated an answer", Some(chat))
    );
    let back = bench.chat.open_chat(chat).unwrap();
    assert_eq!(texts(&back), ["A", "Yes."]);
    assert!(!back.chat.writing);
    assert_eq!(back.messages[1].siblings, [first]);
    bench.chat.redo().unwrap();
    let again = bench.chat.open_chat(chat).unwrap();
    assert_eq!(texts(&again), ["A", "partial"]);
    assert_eq!(again.messages[1].state, MessageState::Stopped);
}

#[test]
fn an_edit_is_undone_and_what_came_after_it_is_kept() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "A");
    let (chat, asked) = (view.chat.id, view.messages[0].id);
    bench.chat.edit_message(asked, "B", Some(true)).unwrap();
    bench.until_ended();
    assert_eq!(bench.chat.undo().unwrap().unwrap().label, "edited “A”");
    let back = bench.chat.open_chat(chat).unwrap();
    assert_eq!(texts(&back), ["A", "Yes."]);
    assert_eq!(back.messages[0].siblings, [asked]);

    bench.chat.redo().unwrap();
    assert_eq!(texts(&bench.chat.open_chat(chat).unwrap()), ["B", "Yes."]);
    bench.ask(Some(chat), "C");
    bench.chat.undo().unwrap();
    let back = bench.chat.open_chat(chat).unwrap();
    assert_eq!(texts(&back), ["A", "Yes."]);
    assert_eq!(
        back.messages[0].siblings.len(),
        2,
        "the chat went on from it"
    );
    bench.chat.redo().unwrap();
    assert_eq!(
        texts(&bench.chat.open_chat(chat).unwrap()),
        ["B", "Yes.", "C", "Yes."]
    );
}

#[test]
fn a_wish_for_another_length_is_part_of_the_question_from_then_on() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "A");
    let (chat, first) = (view.chat.id, view.messages[1].id);
    let mut asked_with = |length| {
        let view = bench.chat.regenerate(first, true, Some(length)).unwrap();
        assert_eq!(view.messages[0].length, Some(length));
        bench.until_ended();
        bench.script.last_turn().history[0].text.clone()
    };
    let longer = asked_with(LengthWish::Longer);
    assert!(longer.starts_with("A\n\nAnswer at length"), "{longer}");
    let shorter = asked_with(LengthWish::Shorter);
    assert!(
        shorter.starts_with("A\n\nKeep the answer short"),
        "{shorter}"
    );
    let shown = bench.ask(Some(chat), "B");
    assert_eq!(
        shown.messages[0].text(),
        "A",
        "it is not shown as part of it"
    );
    let history = bench.script.last_turn().history;
    assert_eq!(
        (history[0].text.as_str(), history[2].text.as_str()),
        (shorter.as_str(), "B")
    );
    bench.chat.show_sibling(first).unwrap();
    bench.ask(Some(chat), "C");
    assert_eq!(bench.script.last_turn().history[0].text, "A");
    // A draft has the same prompt.
    bench.chat.show_sibling(shown.messages[1].id).unwrap();
    bench
        .chat
        .read_ahead(Some(chat), "And then? ", true)
        .unwrap();
    let prompted = loop {
        let prompted = bench.script.prompted().pop().unwrap();
        if prompted.messages.last().unwrap().text.starts_with("And") {
            break prompted;
        }
    };
    assert_eq!(prompted.messages[0].text, shorter);
}

#[test]
fn deleted_messages_are_listed_and_come_back_one_by_one_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let chat = bench.ask(None, "A").chat.id;
    let whole = bench.ask(Some(chat), "B");
    let [_, answered, second, last] = [0, 1, 2, 3].map(|at| whole.messages[at].id);
    bench.chat.delete_message(last).unwrap();
    bench.chat.delete_message(second).unwrap();
    bench.chat.shutdown();

    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let listed = || {
        let all = bench.chat.deleted_messages().unwrap().into_iter();
        all.map(|it| (it.id, it.title, it.text)).collect::<Vec<_>>()
    };
    // The answer could not stand without its question.
    assert_eq!(listed(), [(second, "A".into(), "B".into())]);
    assert!(bench.chat.restore_message(last).is_err());
    assert!(bench.chat.restore_message(answered).is_err());
    assert_eq!(bench.chat.restore_message(second).unwrap(), "restored “B”");
    assert_eq!(listed(), [(last, "A".into(), "Yes.".into())]);
    assert_eq!(
        bench.chat.restore_message(last).unwrap(),
        "restored an answer"
    );
    assert_eq!(texts(&bench.chat.open_chat(chat).unwrap()), texts(&whole));
    assert_eq!(listed(), []);

    bench.chat.undo().unwrap();
    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(
        (undone.label.as_str(), undone.chat),
        ("restored “B”", Some(chat))
    );
    assert_eq!(texts(&bench.chat.open_chat(chat).unwrap()), ["A", "Yes."]);
    bench.chat.delete([chat]).unwrap();
    assert_eq!(listed(), [], "it comes back with its chat");
}

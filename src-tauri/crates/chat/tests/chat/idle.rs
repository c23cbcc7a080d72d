//! Idle work of the model: it saves its caches, and prefills drafts.

use std::time::Duration;

use chat::{ChatEvent, ChatId, MessageState, ModelChoice, Settings, Stage, Timing};
use store::Store;

use crate::beside::Beside;
use crate::scripted::{Bench, Script, Step, TIMING, TODAY, texts};

/// Makes a bench without the purge at the start, which erases caches.
fn without_purge(script: &Script) -> Bench {
    let timing = Timing {
        purge_after: Duration::from_secs(3600),
        ..TIMING
    };
    let mut bench = Bench::timed(Store::in_memory().unwrap(), script, TODAY, timing);
    bench.until_ready();
    bench
}

fn resume(chat: ChatId, text: &str) -> Beside {
    Beside::Resume(chat, text.into())
}

#[test]
fn saving_follows_an_answer_until_nothing_is_left() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    script.beside().set_caches(3);
    let chat = bench.ask(None, "Hello?").chat.id;
    let done = script.beside().at_least(4);
    let expected = [
        resume(chat, "Hello?"),
        Beside::Save,
        Beside::Save,
        Beside::Save,
    ];
    assert_eq!(done, expected);
    // Then the model rests until the next answer.
    std::thread::sleep(5 * TIMING.idle_after);
    assert_eq!(script.beside().at_least(4).len(), 4);
    bench.ask(Some(chat), "And now?");
    assert_eq!(
        script.beside().at_least(6)[4..],
        [resume(chat, "And now?"), Beside::Save]
    );
}

#[test]
fn saving_gives_way_to_an_answer_and_to_closing() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    script.beside().set_caches(usize::MAX);
    let chat = bench.ask(None, "Hello?").chat.id;
    script.beside().until(&Beside::Save);
    bench.ask(Some(chat), "At once!");
    let done = script.beside().until(&resume(chat, "At once!"));
    script.beside().at_least(done.len() + 1);
    assert_eq!(bench.chat.shutdown(), chat::AtEnd::Stopped);
}

#[test]
fn the_first_message_of_a_new_chat_is_read_ahead() {
    let script = Script::default();
    let bench = without_purge(&script);
    bench.chat.read_ahead(None, "", true).unwrap();
    bench.chat.read_ahead(None, "Where are my ", true).unwrap();
    let new = ChatId(0);
    let ahead = Beside::ReadAhead(new, "Where are my".into());
    assert_eq!(
        script.beside().at_least(2)[..2],
        [resume(new, "Where are my"), ahead]
    );
    assert!(bench.chat.snapshot().unwrap().chats.is_empty());
}

#[test]
fn a_chat_that_is_opened_while_the_model_loads_is_read_when_it_has() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    let (chat, before) = answered(&mut bench);
    let loaded = script.slow_open();
    bench.chat.open_model(ModelChoice::BundledModel).unwrap();
    bench.chat.read_ahead(Some(chat), "What", true).unwrap();
    bench.chat.read_ahead(Some(chat), "Where ", true).unwrap();
    drop(loaded);
    bench.until_ready();
    // Only the last of them, and once.
    let ahead = Beside::ReadAhead(chat, "Where".into());
    script.beside().until(&ahead);
    std::thread::sleep(5 * TIMING.idle_after);
    let done = script.beside().at_least(before + 2);
    let read = |it: &&Beside| matches!(it, Beside::ReadAhead(..));
    let read: Vec<_> = done.iter().filter(read).collect();
    assert_eq!(read, [&ahead], "{done:?}");
}

#[test]
fn a_chat_that_is_opened_while_another_is_answered_is_read_afterwards() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    let (chat, _) = answered(&mut bench);
    script.answer([Step::Wait, Step::Say("Yes.")]);
    let go = script.go();
    bench.chat.send(None, "Hello?", true).unwrap();
    bench.chat.read_ahead(Some(chat), "", true).unwrap();
    go.send(()).unwrap();
    bench.until_ended();
    script
        .beside()
        .until(&Beside::ReadChat(chat, "Yes.".into()));
}

#[test]
fn a_draft_is_read_ahead_behind_what_the_chat_has() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    let chat = bench.ask(None, "Hello?").chat.id;
    let before = script.beside().at_least(2).len();
    bench
        .chat
        .read_ahead(Some(chat), "Where are my ", true)
        .unwrap();
    let done = script.beside().at_least(before + 2);
    let ahead = Beside::ReadAhead(chat, "Where are my".into());
    assert_eq!(
        done[before..before + 2],
        [resume(chat, "Where are my"), ahead]
    );
    let prompted = script.prompted();
    let texts: Vec<_> = prompted[prompted.len() - 1]
        .messages
        .iter()
        .map(|turn| turn.text.as_str())
        .collect();
    assert_eq!(texts, ["Hello?", "Yes.", "Where are my"]);
    // No row is written.
    assert_eq!(bench.chat.open_chat(chat).unwrap().messages.len(), 2);
    let missing = bench.chat.read_ahead(Some(ChatId(77)), "Hello", true);
    assert!(missing.is_err(), "there is no such chat");

    let settings = Settings {
        read_ahead: false,
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    let before = script.prompted().len();
    bench
        .chat
        .read_ahead(Some(chat), "Where are my chats ", true)
        .unwrap();
    bench.ask(Some(chat), "Where?");
    assert_eq!(script.prompted().len(), before + 1, "the answer's alone");
}

#[test]
fn what_is_kept_of_purged_chats_is_erased() {
    let script = Script::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chats.db");
    let mut bench = Bench::on_file(&path, &script);
    // The prefill of a new chat belongs to no existing chat.
    let new = ChatId(0);
    assert_eq!(script.beside().at_least(1), [Beside::Retain(vec![new])]);
    let kept = bench.ask(None, "Hello?").chat.id;
    // It can be restored for 30 days, and its caches are kept for as long.
    bench.chat.delete([kept]).unwrap();
    bench.chat.shutdown();
    let before = script.beside().at_least(1).len();
    let bench = Bench::on_file(&path, &script);
    let done = script.beside().at_least(before + 1);
    assert_eq!(done[before..], [Beside::Retain(vec![kept, new])]);
    bench.chat.delete_for_good([kept]).unwrap();
    let done = script.beside().at_least(before + 2);
    assert_eq!(done[before + 1], Beside::Retain(vec![new]));
}

#[test]
fn taking_up_a_chat_is_shown_and_can_be_stopped() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    script.beside().hold(true);
    let chat = bench.chat.send(None, "Hello?", true).unwrap().chat.id;
    let reading = |event: &ChatEvent| match event {
        ChatEvent::Stage { stage, .. } => matches!(stage, Stage::Reading { done: 1, .. }),
        _ => false,
    };
    bench.until(reading);
    bench.chat.stop(chat).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Stopped);
    assert_eq!(script.beside().at_least(2)[1], Beside::Interrupted);
}

#[test]
fn after_a_panic_while_saving_the_model_is_opened_again() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    script.beside().panic_when_saving();
    let chat = bench.ask(None, "Hello?").chat.id;
    bench.until_ready();
    assert_eq!((script.closes(), script.opens().len()), (1, 2));
    let answered = bench.ask(Some(chat), "And now?");
    assert_eq!(texts(&answered), ["Hello?", "Yes.", "And now?", "Yes."]);
}

/// Makes a chat with one answer. Returns it with the number of actions for it.
fn answered(bench: &mut Bench) -> (ChatId, usize) {
    let chat = bench.ask(None, "Hello?").chat.id;
    (chat, bench.script.beside().at_least(2).len())
}

#[test]
fn a_draft_that_goes_on_does_not_interrupt_what_is_read_of_it() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    let (chat, before) = answered(&mut bench);
    script.beside().hold(true);
    let ahead = |text: &str| {
        bench.chat.read_ahead(Some(chat), text, true).unwrap();
        // It may have started before it interrupted the work, and then starts again.
        std::thread::sleep(5 * TIMING.idle_after);
        script.beside().at_least(before + 1)
    };
    let first = ahead("Where ");
    assert_eq!(first.last(), Some(&resume(chat, "Where")));
    assert_eq!(ahead("Where are "), first);
    // Another one does.
    assert_eq!(ahead("What ").last(), Some(&resume(chat, "What")));
}

#[test]
fn a_draft_is_not_read_once_it_is_sent() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    let (chat, before) = answered(&mut bench);
    script.beside().hold(true);
    bench.chat.read_ahead(Some(chat), "Where ", true).unwrap();
    script.beside().at_least(before + 1);
    std::thread::sleep(5 * TIMING.idle_after);
    // It waits for the first, and the answer comes before it.
    bench
        .chat
        .read_ahead(Some(chat), "Where are ", true)
        .unwrap();
    bench
        .chat
        .send(Some(chat), "Where are they?", true)
        .unwrap();
    script.beside().until(&resume(chat, "Where are they?"));
    script.beside().hold(false);
    bench.until_ended();
    std::thread::sleep(5 * TIMING.idle_after);
    let done = script.beside().at_least(before);
    assert!(!done.contains(&resume(chat, "Where are")), "{done:?}");
}

#[test]
fn a_chat_without_a_draft_is_read_as_it_is() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    let (chat, before) = answered(&mut bench);
    bench.chat.read_ahead(Some(chat), "", true).unwrap();
    let read = Beside::ReadChat(chat, "Yes.".into());
    assert_eq!(script.beside().at_least(before + 2)[before + 1], read);
}

#[test]
fn no_more_is_kept_of_a_chat_that_is_deleted() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    let (chat, before) = answered(&mut bench);
    bench.chat.delete([chat]).unwrap();
    let done = script.beside().at_least(before + 1);
    assert_eq!(done[before], Beside::Forget(vec![chat]));
}

#[test]
fn an_error_in_idle_time_drops_nothing_that_waits_for_the_disk() {
    let script = Script::default();
    script.context(200);
    let timing = Timing {
        purge_after: Duration::from_secs(3600),
        idle_after: Duration::from_secs(3600),
        ..TIMING
    };
    let mut bench = Bench::timed(Store::in_memory().unwrap(), &script, TODAY, timing);
    bench.until_ready();
    script.beside().set_caches(3);
    let chat = bench.ask(None, "Hello?").chat.id;
    // Too long for a prefill.
    let draft = "word ".repeat(300);
    bench.chat.read_ahead(Some(chat), draft, true).unwrap();
    let expected = [
        resume(chat, "Hello?"),
        Beside::Save,
        Beside::Save,
        Beside::Save,
    ];
    assert_eq!(script.beside().at_least(4), expected);
}

#[test]
fn what_waits_for_idle_time_is_kept_before_the_model_goes() {
    let script = Script::default();
    let timing = Timing {
        purge_after: Duration::from_secs(3600),
        idle_after: Duration::from_secs(3600),
        ..TIMING
    };
    let mut bench = Bench::timed(Store::in_memory().unwrap(), &script, TODAY, timing);
    bench.until_ready();
    let chat = bench.ask(None, "Hello?").chat.id;
    bench.chat.open_model(ModelChoice::BundledModel).unwrap();
    bench.until_ready();
    bench.ask(Some(chat), "And now?");
    bench.chat.eject_model().unwrap();
    bench.ask(Some(chat), "And then?");
    bench.chat.shutdown();
    let done = script.beside().at_least(6);
    let kept = done.iter().skip(1).step_by(2);
    assert!(
        kept.eq(&[Beside::Save, Beside::Save, Beside::Save]),
        "{done:?}"
    );
}

#[test]
fn what_is_read_ahead_goes_on_after_a_job_of_another_kind() {
    let script = Script::default();
    let mut bench = without_purge(&script);
    let (chat, before) = answered(&mut bench);
    let (other, _) = answered(&mut bench);
    script.beside().hold(true);
    bench.chat.read_ahead(Some(chat), "Where ", true).unwrap();
    script.beside().at_least(before + 1);
    bench.chat.delete([other]).unwrap();
    script.beside().until(&Beside::Forget(vec![other]));
    std::thread::sleep(5 * TIMING.idle_after);
    let done = script.beside().at_least(before);
    assert_eq!(done.last(), Some(&resume(chat, "Where")), "{done:?}");
}

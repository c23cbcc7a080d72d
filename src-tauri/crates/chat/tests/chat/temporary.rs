//! Temporary chats: in memory until they are kept.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use chat::{Chat, ChatEvent, ChatId, MessageId, MessageState, QueuedMessage};
use inference::Role;
use store::{NewMessage, Parts, Store, faults};

use crate::bench::Bench;
use crate::beside::Beside;
use crate::clocks::{SetClock, TIMING};
use crate::scripted::{EVENT_TIMEOUT, Script, Step};
use crate::shown::texts;

/// Returns whether any file of a folder contains a text.
fn is_on_disk(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => is_on_disk(&path, text),
            false => {
                let bytes = fs::read(&path).unwrap();
                bytes
                    .windows(text.len())
                    .any(|part| part == text.as_bytes())
            }
        }
    })
}

/// Waits until none of the [`WORDS`] is in any file of a folder.
fn until_off_disk(folder: &Path) {
    let begun = Instant::now();
    while let Some(word) = WORDS.iter().find(|word| is_on_disk(folder, word)) {
        assert!(
            begun.elapsed() < EVENT_TIMEOUT,
            "{word} is still on the disk"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

/// A temporary chat in which each of these words is somewhere: a message, thinking, an answer, a title, a draft.
const WORDS: [&str; 7] = [
    "quetzal", "motmot", "hoatzin", "kagu", "shoebill", "turaco", "oilbird",
];

fn write_everywhere(bench: &mut Bench) -> ChatId {
    let chat = bench.chat.new_temporary_chat().unwrap().chat.id;
    bench.chat.save_draft(Some(chat), "a quet").unwrap();
    bench
        .script
        .answer([Step::Think("a motmot"), Step::Say("a hoatzin")]);
    bench.ask(Some(chat), "a quetzal");
    bench.chat.rename(chat, "a kagu").unwrap();
    bench.chat.save_draft(Some(chat), "a shoebill").unwrap();
    bench
        .chat
        .save_pastes(Some(chat), vec!["a turaco".into()])
        .unwrap();
    let queued = QueuedMessage {
        text: "an oilbird".into(),
        pastes: Vec::new(),
        thinking: true,
    };
    bench.chat.save_queue(chat, vec![queued]).unwrap();
    chat
}

#[test]
fn nothing_of_a_temporary_chat_is_in_the_folder_until_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let chat = write_everywhere(&mut bench);
    assert!(chat.is_temporary());
    let found = || WORDS.map(|word| is_on_disk(folder.path(), word));
    assert_eq!(found(), [false; 7]);
    assert_eq!(bench.chat.search("quetzal").unwrap().chats, []);
    bench.chat.delete([chat]).unwrap();
    bench.chat.undo().unwrap();
    assert_eq!(found(), [false; 7]);
    assert_eq!(bench.chat.snapshot().unwrap().current, None);

    let before = bench.chat.open_chat(chat).unwrap();
    let kept = bench.chat.keep_chat(chat).unwrap();
    assert!(!kept.temporary && kept.title == "a kagu");
    assert_eq!(found(), [true; 7], "so the search can find it");
    let after = bench.chat.open_chat(kept.id).unwrap();
    assert_eq!(
        (texts(&after), &after.draft),
        (texts(&before), &before.draft)
    );
    assert_eq!(bench.chat.search("motmot").unwrap().chats[0].chat, kept.id);
    bench.chat.shutdown();

    let bench = Bench::on_file(&path, &Script::default());
    let chats = bench.chat.snapshot().unwrap().chats;
    assert_eq!(
        chats.iter().map(|chat| chat.id).collect::<Vec<_>>(),
        [kept.id]
    );
}

/// Makes a temporary chat that takes a while to copy.
fn long_chat(bench: &mut Bench) -> ChatId {
    let chat = bench.chat.new_temporary_chat().unwrap().chat.id;
    for at in 0..300 {
        bench.ask(
            Some(chat),
            &format!("{at} quetzal {}", "words ".repeat(400)),
        );
    }
    chat
}

/// Serves others while `act` copies the chat of this message, and returns its result. The chat cannot be changed
/// meanwhile.
fn served_beside<T: Send + 'static>(
    bench: &Bench,
    question: MessageId,
    act: impl FnOnce(&Chat) -> T + Send + 'static,
) -> T {
    let other = bench.chat.clone();
    let acts = thread::spawn(move || act(&other));
    let (mut slowest, mut refused) = (Duration::ZERO, 0);
    while !acts.is_finished() {
        let before = Instant::now();
        let there = bench.chat.snapshot().unwrap().chats;
        slowest = slowest.max(before.elapsed());
        assert_eq!(there.len(), 1, "one of both is there");
        if let Err(failure) = bench.chat.continue_answer(question) {
            let said = "This chat is still being copied. Try again in a moment.";
            refused += usize::from(failure.message == said);
        }
    }
    assert!(refused > 2, "{refused}");
    assert!(slowest < Duration::from_millis(400), "{slowest:?}");
    acts.join().unwrap()
}

#[test]
fn a_long_chat_is_kept_while_others_are_served() {
    let mut bench = Bench::new();
    let chat = long_chat(&mut bench);
    let first = |bench: &Bench, of| bench.chat.open_chat(of).unwrap().messages[0].id;
    let question = first(&bench, chat);
    let kept = served_beside(&bench, question, move |chats| {
        chats.keep_chat(chat).unwrap()
    });
    assert_eq!(bench.chat.open_chat(kept.id).unwrap().messages.len(), 600);
    // Likewise when it becomes temporary again with later messages, and is kept again.
    bench.ask(Some(kept.id), "And a wren?");
    let question = first(&bench, kept.id);
    let undone = served_beside(&bench, question, |chats| chats.undo().unwrap().unwrap());
    let back = undone.chat.unwrap();
    assert!(back.is_temporary());
    let question = first(&bench, back);
    let redone = served_beside(&bench, question, |chats| chats.redo().unwrap().unwrap());
    let again = redone.chat.unwrap();
    assert!(!again.is_temporary());
    assert_eq!(bench.chat.open_chat(again).unwrap().messages.len(), 602);
}

#[test]
fn keeping_that_fails_leaves_nothing_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let chat = write_everywhere(&mut bench);
    // The draft comes last.
    faults::refuse_writes(&path, &["draft"]).unwrap();
    let failed = bench.chat.keep_chat(chat).unwrap_err();
    assert!(failed.message.contains("the disk is full"), "{failed}");
    faults::allow_writes(&path).unwrap();
    let there = bench.chat.snapshot().unwrap().chats;
    assert!(there.len() == 1 && there[0].id == chat);
    until_off_disk(folder.path());
    bench.ask(Some(chat), "It goes on");
    bench.chat.keep_chat(chat).unwrap();

    // Nor does it after a redo.
    let back = bench.chat.undo().unwrap().unwrap().chat;
    bench.chat.save_draft(back, "a shoebill").unwrap();
    until_off_disk(folder.path());
    faults::refuse_writes(&path, &["draft"]).unwrap();
    let failed = bench.chat.redo().unwrap_err();
    assert!(
        failed.message.contains("could not be done again"),
        "{failed}"
    );
    faults::allow_writes(&path).unwrap();
    until_off_disk(folder.path());
    let kept = bench.chat.redo().unwrap().unwrap().chat.unwrap();
    assert_eq!(bench.chat.open_chat(kept).unwrap().messages.len(), 4);
}

#[test]
fn keeping_that_a_crash_ends_leaves_nothing_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let temporary = Store::temporary().unwrap();
    let chat = temporary.chats().create("a kagu", "2026-03-05", 1).unwrap();
    for text in ["a quetzal", "a motmot"] {
        let message = NewMessage {
            chat,
            parent: None,
            role: Role::User,
            state: MessageState::Done,
            parts: Parts::of_text(text),
            thinks: false,
            created_at: 1,
        };
        temporary.messages().add(&message).unwrap();
    }
    let store = Store::open(&path).unwrap();
    let copy = temporary.begin_copy(chat, &store).unwrap();
    let copy = copy.go_on(&temporary, &store, Duration::ZERO).unwrap();
    assert!(!copy.is_whole() && is_on_disk(folder.path(), "quetzal"));
    drop(store);

    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    assert_eq!(bench.chat.snapshot().unwrap().chats, []);
    until_off_disk(folder.path());
}

#[test]
fn a_temporary_chat_that_is_deleted_while_it_is_kept_is_not_kept() {
    let mut bench = Bench::new();
    let chat = long_chat(&mut bench);
    let other = bench.chat.clone();
    let keeps = thread::spawn(move || other.keep_chat(chat));
    while bench.chat.may_leave_store().is_ok() {
        assert!(!keeps.is_finished(), "it is asked between two parts");
    }
    bench.chat.delete([chat]).unwrap();
    assert!(keeps.join().unwrap().is_err());
    assert_eq!(bench.chat.snapshot().unwrap().chats, []);
    bench.chat.undo().unwrap();
    assert_eq!(bench.chat.open_chat(chat).unwrap().messages.len(), 600);
}

#[test]
fn a_summary_of_a_temporary_chat_that_is_kept_points_to_no_temporary_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let chat = bench.chat.new_temporary_chat().unwrap().chat.id;
    bench.ask(Some(chat), "A quetzal");
    let summary = bench.chat.start_summary(chat).unwrap().chat.id;
    bench.until_ended();
    let kept = bench.chat.keep_chat(summary).unwrap().id;
    let answer = bench.chat.open_chat(kept).unwrap().messages[1].id;
    bench.chat.regenerate(answer, false, None).unwrap();
    let failed = bench.until_ended().error.unwrap().message;
    assert!(failed.contains("was deleted"), "{failed}");
    bench.chat.shutdown();

    let store = Store::open(&path).unwrap();
    let question = store.messages().get(answer).unwrap().parent.unwrap();
    let named = store.messages().get(question).unwrap().prompt_leaf;
    assert_eq!(named, Some(MessageId(0)));
}

#[test]
fn a_temporary_chat_ends_with_the_app() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let chat = write_everywhere(&mut bench);
    assert!(bench.chat.snapshot().unwrap().chats[0].temporary);
    bench.chat.shutdown();
    let bench = Bench::on_file(&path, &Script::default());
    assert!(bench.chat.snapshot().unwrap().chats.is_empty());
    assert!(bench.chat.open_chat(chat).is_err());
}

#[test]
fn keeping_is_undone_without_losing_what_was_said_since() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let chat = write_everywhere(&mut bench);
    let kept = bench.chat.keep_chat(chat).unwrap().id;
    assert_eq!(bench.chat.undo().unwrap().unwrap().label, "kept “a kagu”");
    bench.until(|event| matches!(event, ChatEvent::ChatChanged { chat: back } if back.id == chat));
    assert!(bench.chat.open_chat(kept).is_err());
    assert_eq!(bench.chat.bin().unwrap(), [], "it is not in the bin");
    assert_eq!(
        bench.chat.undo().unwrap().unwrap().label,
        "renamed “a quetzal”"
    );
    bench.chat.redo().unwrap();
    bench.chat.redo().unwrap();

    let again = bench.chat.snapshot().unwrap().chats[0].id;
    assert!(!again.is_temporary());
    let longer = bench.ask(Some(again), "And a wren?");
    bench.chat.undo().unwrap();
    let back = &bench.chat.snapshot().unwrap().chats[..];
    assert!(back.len() == 1 && back[0].temporary);
    assert_eq!(
        texts(&bench.chat.open_chat(back[0].id).unwrap()),
        texts(&longer)
    );
    bench.chat.shutdown();
    // Purged content is overwritten at once, or at the next start.
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    until_off_disk(folder.path());
}

#[test]
fn an_unused_temporary_chat_is_taken_again_and_cannot_be_kept() {
    let mut bench = Bench::new();
    let chat = bench.chat.new_temporary_chat().unwrap().chat;
    assert_eq!((chat.title.as_str(), chat.temporary), ("", true));
    assert_eq!(bench.chat.new_temporary_chat().unwrap().chat.id, chat.id);
    let refused = bench.chat.keep_chat(chat.id).unwrap_err().message;
    assert_eq!(refused, "There is nothing to keep in this chat yet.");
    let usual = bench.ask(None, "One").chat.id;
    let refused = bench.chat.keep_chat(usual).unwrap_err().message;
    assert_eq!(refused, "This chat is kept already.");

    bench.ask(Some(chat.id), "Two");
    assert_ne!(bench.chat.new_temporary_chat().unwrap().chat.id, chat.id);
    let both = [usual, chat.id];
    let refused = bench.chat.pin(both, true).unwrap_err().message;
    assert!(refused.ends_with("Keep it first."), "{refused}");
    let pinned = |bench: &Bench| bench.chat.open_chat(usual).unwrap().chat.pinned;
    assert!(!pinned(&bench), "nothing is half done");
    bench.chat.delete(both).unwrap();
    assert_eq!(bench.chat.undo().unwrap().unwrap().label, "deleted 2 chats");
    assert_eq!(bench.chat.snapshot().unwrap().chats.len(), 3);
}

#[test]
fn keeping_is_undone_once_the_answer_is_there_and_the_chat_is_named_that_came_back() {
    let mut bench = Bench::new();
    let chat = bench.chat.new_temporary_chat().unwrap().chat.id;
    bench.ask(Some(chat), "One");
    let kept = bench.chat.keep_chat(chat).unwrap().id;
    bench.script.answer([Step::Say("partial"), Step::Wait]);
    bench.chat.send(Some(kept), "Two", true).unwrap();
    bench.until_delta();
    let refused = bench.chat.undo().unwrap_err().message;
    assert!(refused.contains("still being written"), "{refused}");
    bench.chat.stop(kept).unwrap();
    bench.until_ended();
    let shown = bench.chat.undo().unwrap().unwrap().chat.unwrap();
    assert!(shown.is_temporary() && shown != chat);
    let view = bench.chat.open_chat(shown).unwrap();
    assert_eq!(texts(&view), ["One", "Yes.", "Two", "partial"]);
    let again = bench.chat.redo().unwrap().unwrap().chat.unwrap();
    assert!(!again.is_temporary() && again != kept);
    let back = bench.chat.undo().unwrap().unwrap().chat;
    assert_eq!(back, Some(shown), "nothing was said since");
}

#[test]
fn only_a_temporary_chat_in_which_nothing_was_ever_said_is_taken_again() {
    let mut bench = Bench::new();
    let chat = bench.chat.new_temporary_chat().unwrap().chat.id;
    let view = bench.ask(Some(chat), "One");
    bench.chat.delete_message(view.messages[0].id).unwrap();
    assert_ne!(bench.chat.new_temporary_chat().unwrap().chat.id, chat);
}

#[test]
fn a_temporary_chat_that_is_kept_goes_on_with_what_was_read_of_it() {
    let mut bench = Bench::new();
    let chat = bench.chat.new_temporary_chat().unwrap().chat.id;
    bench.ask(Some(chat), "One");
    let kept = bench.chat.keep_chat(chat).unwrap().id;
    bench.until(|event| matches!(event, ChatEvent::ChatsRemoved { chats } if chats == &[chat]));
    bench.ask(Some(kept), "Two");
    let forgets = |of| Beside::Forget(vec![of]);
    let done = bench.script.beside().at_least(1);
    assert!(!done.contains(&forgets(chat)), "{done:?}");
    // The cache of the other now belongs to a temporary chat again: it must not reach the disk.
    let back = bench.chat.undo().unwrap().unwrap().chat.unwrap();
    bench.script.beside().until(&forgets(kept));
    let done = bench.script.beside().at_least(1);
    let at = |wanted: &Beside| done.iter().position(|step| step == wanted);
    let relabelled = at(&Beside::Relabel(kept, back)).expect("it goes on with it");
    assert!(Some(relabelled) < at(&forgets(kept)), "{done:?}");
}

#[test]
fn a_temporary_chat_that_is_deleted_leaves_the_memory_after_a_day() {
    let script = Script::default();
    let clock = SetClock::at("2026-03-05T12:00:00+00:00[UTC]");
    let store = Store::in_memory().unwrap();
    let mut bench = Bench::clocked(store, &script, Box::new(clock.clone()), TIMING);
    bench.until_ready();
    let ask = |bench: &mut Bench, text| {
        let chat = bench.chat.new_temporary_chat().unwrap().chat.id;
        bench.ask(Some(chat), text).chat.id
    };
    let (gone, kept, there) = (
        ask(&mut bench, "One"),
        ask(&mut bench, "Two"),
        ask(&mut bench, "Three"),
    );
    let on_disk = bench.chat.keep_chat(kept).unwrap().id;
    bench.chat.delete([gone]).unwrap();
    clock.set("2026-03-06T11:00:00+00:00[UTC]");
    bench.chat.save_draft(None, "awake").unwrap();
    assert!(bench.chat.open_chat(gone).is_ok(), "deleting can be undone");
    clock.set("2026-03-07T11:00:00+00:00[UTC]");
    bench.chat.save_draft(None, "awake").unwrap();
    script
        .beside()
        .until(&Beside::Retain(vec![on_disk, there, ChatId(0)]));
    for chat in [gone, kept] {
        assert!(bench.chat.open_chat(chat).is_err());
    }
    // The deletion cannot be undone any more; keeping the chat can.
    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(undone.label, "kept “Two”");
    let back = bench.chat.open_chat(undone.chat.unwrap()).unwrap();
    assert_eq!(texts(&back), ["Two", "Yes."]);
}

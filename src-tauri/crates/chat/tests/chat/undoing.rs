//! Undo and redo.

use chat::{FailureCode, Undone};
use store::faults;

use crate::bench::Bench;
use crate::scripted::{Script, texts};

#[test]
fn a_change_is_undone_and_made_again_and_a_new_one_ends_what_could_be_redone() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "What is a wren?").chat.id;
    let title = || bench.chat.snapshot().unwrap().chats[0].title.clone();
    assert_eq!(
        bench.chat.undo().unwrap(),
        None,
        "sending is no such change"
    );

    bench.chat.rename(chat, "Birds").unwrap();
    bench.chat.rename(chat, "Wrens").unwrap();
    let undone = bench.chat.undo().unwrap();
    let of = |label: &str| {
        Some(Undone {
            label: label.to_owned(),
            restored: None,
            chat: Some(chat),
            settings: None,
        })
    };
    assert_eq!(undone, of("renamed “Birds”"));
    assert_eq!(title(), "Birds");
    bench.chat.undo().unwrap();
    assert_eq!(title(), "What is a wren?");
    assert_eq!(bench.chat.undo().unwrap(), None);
    assert_eq!(bench.chat.redo().unwrap(), of("renamed “What is a wren?”"));
    assert_eq!(title(), "Birds");

    bench.chat.delete([chat]).unwrap();
    assert_eq!(
        bench.chat.redo().unwrap(),
        None,
        "deleting came after what was undone"
    );
    assert!(bench.chat.snapshot().unwrap().chats.is_empty());
    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(undone.restored.as_deref(), Some("“Birds”"));
    assert_eq!(title(), "Birds");
    bench.chat.redo().unwrap();
    assert!(bench.chat.snapshot().unwrap().chats.is_empty());
}

#[test]
fn a_change_that_cannot_be_undone_now_is_undone_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let whole = bench.ask(None, "What is a wren?");
    let chat = whole.chat.id;
    bench.chat.rename(chat, "Birds").unwrap();
    bench.chat.delete_message(whole.messages[1].id).unwrap();
    faults::refuse_writes(&path, &["deleted_message"]).unwrap();
    for _ in 0..2 {
        let refused = bench.chat.undo().unwrap_err();
        assert_eq!(refused.code, FailureCode::Store);
        let said = "This could not be undone: deleted an answer. ";
        assert!(refused.message.starts_with(said), "{refused}");
    }
    faults::allow_writes(&path).unwrap();
    bench.chat.undo().unwrap();
    let back = bench.chat.open_chat(chat).unwrap();
    assert_eq!(texts(&back), texts(&whole));
    assert_eq!(back.chat.title, "Birds");
}

#[test]
fn what_takes_a_new_chat_away_shows_the_chat_that_it_was_made_of() {
    let mut bench = Bench::new();
    let view = bench.ask(None, "What is a wren?");
    let chat = view.chat.id;
    let fork = bench.chat.fork(view.messages[1].id).unwrap().chat.id;
    let summary = bench.chat.start_summary(chat).unwrap().chat.id;
    bench.until_ended();
    let chat_of = |undone: Result<Option<Undone>, _>| undone.unwrap().unwrap().chat;
    for _ in 0..2 {
        assert_eq!(chat_of(bench.chat.undo()), Some(chat));
        assert_eq!(chat_of(bench.chat.redo()), Some(summary));
    }
    bench.chat.undo().unwrap();
    for _ in 0..2 {
        assert_eq!(chat_of(bench.chat.undo()), Some(chat));
        assert_eq!(chat_of(bench.chat.redo()), Some(fork));
    }
}

//! Undo and redo.

use chat::Undone;

use crate::bench::Bench;

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
    bench.chat.undo().unwrap();
    assert_eq!(title(), "Birds");
    bench.chat.redo().unwrap();
    assert!(bench.chat.snapshot().unwrap().chats.is_empty());
}

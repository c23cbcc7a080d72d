//! Lists with a chat that cannot be parsed.

use chat_files::Omissions;

use crate::lenient::{left_out, pair, titles};
use crate::{Found, read_text};

/// Three chats, the second altered by `harm`.
fn with_damage(harm: impl Fn(&str) -> String) -> Found {
    let chat = |title: &str| pair(title, |_| {}).to_string();
    let second = harm(&chat("Second"));
    let list = format!("[{},{second},{}]", chat("First"), chat("Third"));
    read_text("c.json", list).unwrap()
}

#[test]
fn a_damaged_chat_of_a_list_is_left_out_and_named() {
    for (harm, with) in [
        ("\"current_node\":", "\"current_node\""),
        ("\"create_time\":1", "\"create_time\":tru"),
        ("\"title\":\"Second\"", "\"title\":\"Sec\u{1}ond\""),
        ("\"title\":\"Second\"", "\"title\":\"Sec\\qond\""),
        ("\"title\":\"Second\"", "\"title\":\"Second\n"),
        ("\"title\":\"Second\"", "\"ti\u{0}\u{0}\u{0}Second\""),
        ("\"parts\":[\"Question\"]", "\"parts\":[\"Question\"}"),
        (",\"mapping\"", ",,\"mapping\""),
    ] {
        let found = with_damage(|chat| {
            assert!(chat.contains(harm), "{harm} in {chat}");
            chat.replacen(harm, with, 1)
        });
        assert_eq!(titles(&found), ["First", "Third"], "{with}");
        assert_eq!(
            found.tally.unread_chats,
            left_out(1, &["number 2 in c.json"]),
            "{with}"
        );
        assert_eq!(found.tally.damaged_files, Omissions::default(), "{with}");
    }
}

#[test]
fn what_follows_damage_without_an_end_is_left_out_and_its_place_is_named() {
    for (harm, with) in [
        ("\"parts\":[\"Question\"]", "\"parts\":[\"Question\""),
        ("\"title\":\"Second\"", "\"title\":\"Second"),
        ("\"mapping\":{", "\"mapping\":{{"),
    ] {
        let found = with_damage(|chat| {
            assert!(chat.contains(harm), "{harm} in {chat}");
            chat.replacen(harm, with, 1)
        });
        assert_eq!(titles(&found), ["First"], "{with}");
        let Omissions { count, names, .. } = &found.tally.damaged_files;
        assert_eq!(*count, 1, "{with}");
        assert!(
            names[0].starts_with("c.json after line 1, column "),
            "{names:?}"
        );
    }
}

#[test]
fn chats_are_found_wherever_the_damage_of_a_list_is() {
    let chat = |title: &str| pair(title, |_| {}).to_string();
    let (first, second) = (chat("First"), chat("Second"));
    for list in [
        format!("[{first}}},{second}]"),
        format!("[{first} {second}]"),
        format!("[{first},,{second},]"),
        format!("[{first},: nonsense {second}]"),
        format!("[nonsense\n,{first}]\n[{second}]"),
        format!("{first}\nnon sense\n{second}"),
        format!("[{first}],[{second}]"),
    ] {
        let found = read_text("c.json", &list).expect(&list);
        assert_eq!(titles(&found), ["First", "Second"], "{list}");
    }
    let found = read_text("c.json", format!("[{first},{{\"title\":x}},{second}")).err();
    assert!(found.is_none(), "damaged before it was cut off");
}

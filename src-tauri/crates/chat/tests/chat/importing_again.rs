//! Chats that are imported again: known, continued, or in several states.

use std::time::Instant;

use store::{Parts, WholeChat};

use crate::importing::{chat_titled, chats, import, titles};
use crate::scripted::Bench;

#[test]
fn what_is_here_already_is_left_out_and_what_went_on_is_added() {
    let bench = Bench::new();
    let chats = chats(3, "x");
    import(&bench, chats.clone()).unwrap();
    let again = import(&bench, chats.clone()).unwrap();
    assert_eq!((again.added, again.known, again.changed), (0, 3, 0));
    // A chat that is continued here has everything that the file has.
    let first = bench.chat.snapshot().unwrap().chats[0].id;
    let mut bench = bench;
    bench.ask(Some(first), "And how long?");
    assert_eq!(import(&bench, chats.clone()).unwrap().known, 3);
    // A chat that was continued there has more.
    let mut more = chats;
    let mut message = more[0].messages[0].clone();
    message.id = 2;
    message.parent = Some(1);
    message.parts = Parts::of_text("Later");
    more[0].messages.push(message);
    more[0].chat.leaf = Some(2);
    for known in [2, 3] {
        let counts = import(&bench, more.clone()).unwrap();
        assert_eq!((counts.added, counts.known), (3 - known, known));
    }
    assert_eq!(titles(&bench).len(), 4);
    // A deleted chat is imported again.
    let all: Vec<_> = bench
        .chat
        .snapshot()
        .unwrap()
        .chats
        .iter()
        .map(|chat| chat.id)
        .collect();
    bench.chat.delete(all).unwrap();
    assert_eq!(import(&bench, more).unwrap().added, 3);
}

/// Adds one more message to the first of the chats.
fn gone_on(mut chats: Vec<WholeChat>, text: &str) -> Vec<WholeChat> {
    let chat = &mut chats[0];
    let last = chat.messages.last().unwrap().clone();
    chat.messages.push(store::MessageRecord {
        id: last.id + 1,
        parent: Some(last.id),
        parts: Parts::of_text(text),
        ..last
    });
    chat.chat.leaf = Some(last.id + 1);
    chats
}

#[test]
fn a_chat_that_comes_twice_in_one_import_is_added_once() {
    let bench = Bench::new();
    let [a] = &chats(1, "x")[..] else { panic!() };
    import(&bench, vec![a.clone()]).unwrap();
    let b = gone_on(vec![a.clone()], "Later").remove(0);
    let counts = import(&bench, vec![b.clone(), b.clone()]).unwrap();
    assert_eq!((counts.added, counts.changed, counts.known), (1, 1, 1));
    // Likewise if none of them is here.
    let bench = Bench::new();
    let counts = import(&bench, vec![a.clone(), b.clone(), b.clone(), a.clone()]).unwrap();
    assert_eq!((counts.added, counts.changed, counts.known), (2, 1, 2));
    assert_eq!(import(&bench, vec![b, a.clone()]).unwrap().known, 2);
}

#[test]
fn states_of_one_chat_in_one_import_have_uids_of_their_own() {
    let bench = Bench::new();
    let a = chats(1, "x").remove(0);
    let mut all: Vec<_> = ["B", "C", "D"]
        .map(|text| gone_on(vec![a.clone()], text).remove(0))
        .into();
    // A chat with the uid that a later state would get.
    let mut taken = chats(1, "y").remove(0);
    taken.chat.uid = store::later_uid(&a.chat.uid, 2);
    all.insert(1, taken);
    all.insert(0, a);
    assert_eq!(import(&bench, all.clone()).unwrap().added, 5);
    let uids: std::collections::BTreeSet<String> = bench
        .chat
        .snapshot()
        .unwrap()
        .chats
        .iter()
        .map(|chat| bench.chat.record(chat.id).unwrap().chat.uid)
        .collect();
    assert_eq!(uids.len(), 5, "{uids:?}");
    assert_eq!(import(&bench, all).unwrap().known, 5);
}

#[test]
fn many_states_of_one_chat_take_as_long_as_many_chats() {
    let took = |chats: Vec<WholeChat>| {
        let (bench, count) = (Bench::new(), chats.len());
        let begun = Instant::now();
        assert_eq!(import(&bench, chats).unwrap().added, count);
        begun.elapsed()
    };
    let first = chats(1, "x").remove(0);
    let states = (0..3000).map(|at| gone_on(vec![first.clone()], &at.to_string()).remove(0));
    let states: Vec<_> = states.collect();
    let mut apart = states.clone();
    for (at, whole) in apart.iter_mut().enumerate() {
        whole.chat.uid = at.to_string();
    }
    let (apart, states) = (took(apart), took(states));
    assert!(
        states < 3 * apart,
        "{states:?}, and {apart:?} of as many chats"
    );
}

/// Two chats of one store: "first", "second", "third", and a summary of it up to "second".
fn summed_up() -> Vec<WholeChat> {
    let mut both = chats(2, "x");
    let [of, summary] = &mut both[..] else {
        panic!()
    };
    for (id, text) in [(2, "second"), (3, "third")] {
        let message = store::MessageRecord {
            id,
            parent: Some(1),
            parts: Parts::of_text(text),
            ..of.messages[0].clone()
        };
        of.messages.push(message);
    }
    of.chat.leaf = Some(2);
    summary.messages[0].prompt_leaf = Some(store::MessagePlace {
        chat: of.chat.uid.clone(),
        message: 2,
    });
    summary.chat.continues = Some(of.chat.uid.clone());
    both
}

/// Returns the text of the message that the summary covers; `None` if there is none.
fn summed_up_message(bench: &Bench, title: &str) -> Option<String> {
    let chats = bench.chat.snapshot().unwrap().chats;
    let records: Vec<_> = chats
        .iter()
        .map(|chat| bench.chat.record(chat.id).unwrap())
        .collect();
    let summary = records.iter().find(|it| it.chat.title == title).unwrap();
    let place = summary.messages[0].prompt_leaf.clone()?;
    let of = records.iter().find(|it| it.chat.uid == place.chat).unwrap();
    assert_eq!(summary.chat.continues.as_ref(), Some(&of.chat.uid));
    Some(
        of.messages[place.message as usize - 1]
            .parts
            .text()
            .into_owned(),
    )
}

#[test]
fn a_summary_that_is_imported_again_is_of_the_chat_that_came_with_it() {
    let both = summed_up();
    let [of, summary] = [0, 1].map(|at| both[at].chat.title.clone());
    let second = Some("second".to_owned());

    let bench = Bench::new();
    import(&bench, both.clone()).unwrap();
    assert_eq!(summed_up_message(&bench, &summary), second);
    // The chat is here in another state: this one is added beside it.
    let view = bench.chat.open_chat(chat_titled(&bench, &of)).unwrap();
    let message = view
        .messages
        .iter()
        .find(|it| it.text() == "second")
        .unwrap();
    bench.chat.delete_message(message.id).unwrap();
    bench.chat.delete([chat_titled(&bench, &summary)]).unwrap();
    let counts = import(&bench, both.clone()).unwrap();
    assert_eq!((counts.added, counts.changed), (2, 1));
    assert_eq!(summed_up_message(&bench, &summary), second);

    // Everything in it is here, at other positions: before the summary, and after it.
    for at_end in [false, true] {
        let bench = Bench::new();
        import(&bench, vec![both[0].clone()]).unwrap();
        let mut shorter = both.clone();
        shorter[0].messages.remove(0);
        for (place, message) in (1..).zip(&mut shorter[0].messages) {
            (message.id, message.parent) = (place, None);
        }
        shorter[0].chat.leaf = Some(1);
        shorter[1].messages[0].prompt_leaf.as_mut().unwrap().message = 1;
        if at_end {
            shorter.reverse();
        }
        let counts = import(&bench, shorter).unwrap();
        assert_eq!((counts.added, counts.known), (1, 1));
        assert_eq!(summed_up_message(&bench, &summary), second);
    }

    // With two exports in one import, each summary refers to the state that came with it.
    let bench = Bench::new();
    let mut later = both.clone();
    later[0].messages.remove(0);
    for (place, message) in (1..).zip(&mut later[0].messages) {
        (message.id, message.parent) = (place, None);
        message.parts.push_text(" edited");
    }
    later[0].chat.leaf = Some(1);
    later[1].chat.uid = "another".into();
    later[1].chat.title = "Another".into();
    later[1].messages[0].prompt_leaf.as_mut().unwrap().message = 1;
    import(&bench, [both, later].concat()).unwrap();
    assert_eq!(summed_up_message(&bench, &summary), second);
    let edited = Some("second edited".to_owned());
    assert_eq!(summed_up_message(&bench, "Another"), edited);
}

#[test]
fn a_message_that_was_deleted_here_comes_back_with_an_earlier_export() {
    let bench = Bench::new();
    let all = chats(1, "x");
    import(&bench, all.clone()).unwrap();
    let chat = bench.chat.snapshot().unwrap().chats[0].id;
    let message = bench.chat.open_chat(chat).unwrap().messages[0].id;
    bench.chat.delete_message(message).unwrap();
    assert!(bench.chat.record(chat).unwrap().messages.is_empty());
    let counts = import(&bench, all.clone()).unwrap();
    assert_eq!((counts.added, counts.changed), (1, 1));
    assert_eq!(import(&bench, all).unwrap().known, 1);
}

/// A program that keeps no dates: each import dates the chat.
#[test]
fn a_chat_that_comes_with_other_dates_is_the_same() {
    let bench = Bench::new();
    let first = chats(1, "x");
    let mut second = first.clone();
    second[0].chat.created_at += 60;
    for message in &mut second[0].messages {
        message.created_at += 60;
    }
    import(&bench, first).unwrap();
    let counts = import(&bench, second).unwrap();
    assert_eq!((counts.known, titles(&bench).len()), (1, 1));
}

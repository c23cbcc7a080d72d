//! Messages in the order of their time, whatever order they were written in.

use store::{ChatRecord, MessageRecord, MessageState, NewMessage, Parts, Role, Store, WholeChat};

use crate::records::write_all;
use crate::{chat, found};

#[test]
fn what_is_imported_is_found_in_its_place_in_time() {
    let store = Store::in_memory().unwrap();
    let at =
        |id, text: &str, created_at| MessageRecord::new(id, Role::User, text.into(), created_at);
    let whole = |uid: &str, messages| WholeChat {
        chat: ChatRecord::new(uid.into(), uid.into(), "2026-03-05".into(), 100, Some(1)),
        messages,
    };
    write_all(
        &store,
        vec![whole("own", vec![at(1, "today's invoice", 9_000)])],
    );
    let old = (1..=60).map(|id| at(id, "an invoice", 100 + i64::from(id % 7)));
    write_all(&store, vec![whole("old", old.collect())]);
    for query in ["invoice", "nvoic"] {
        let chats = store.search().find(query, 50).unwrap().chats;
        let counts: Vec<_> = chats.iter().map(|chat| chat.count).collect();
        assert_eq!((chats[0].at, counts), (9_000, vec![1, 60]), "{query}");
        let hits = store
            .search()
            .find_in_chat(query, chats[1].chat, 50)
            .unwrap();
        let times: Vec<_> = hits.iter().map(|hit| hit.at).collect();
        assert_eq!(times.len(), 50);
        assert!(times.is_sorted_by(|later, earlier| later >= earlier));
    }
}

#[test]
fn any_time_and_any_number_of_messages_of_one_second_can_be_imported() {
    let store = Store::in_memory().unwrap();
    let (first, _) = chat(&store, "x", "?");
    let times = [i64::MIN, -5, 0, 0, 7, i64::MAX, i64::MAX];
    let messages = (1..).zip(times);
    let messages = messages.map(|(id, at)| MessageRecord::new(id, Role::User, "wren".into(), at));
    let whole = WholeChat {
        chat: ChatRecord::new("x".into(), "x".into(), "2026-03-05".into(), 1, None),
        messages: messages.collect(),
    };
    write_all(&store, vec![whole]);
    assert_eq!(found(&store, "wren").len(), 7);
    // Takes all numbers nearby.
    for (at, width) in [1, 16, 256, 4096, 65536, 1 << 20].into_iter().enumerate() {
        let full = NewMessage {
            chat: first,
            parent: None,
            role: Role::User,
            state: MessageState::Done,
            parts: Parts::of_text("wren"),
            thinks: false,
            created_at: 16 * (100 / 16 + width - 1),
        };
        store.messages().add(&full).unwrap();
        chat(&store, "Another", "wren");
        assert_eq!(found(&store, "wren").len(), 7 + 2 * (at + 1));
    }
}

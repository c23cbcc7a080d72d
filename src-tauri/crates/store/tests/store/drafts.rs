use store::{DraftPlace, Store};

use crate::chat;

#[test]
fn each_place_has_its_draft() {
    let store = Store::in_memory().unwrap();
    let (id, _) = chat(&store, "Goldcrests", "A");
    let drafts = store.drafts();
    drafts.set(DraftPlace::NewChat, "new").unwrap();
    drafts.set(DraftPlace::Chat(id), "old").unwrap();
    drafts.set(DraftPlace::Chat(id), "in the chat").unwrap();
    assert_eq!(drafts.get(DraftPlace::NewChat).unwrap(), "new");
    assert_eq!(drafts.get(DraftPlace::Chat(id)).unwrap(), "in the chat");
    drafts.set(DraftPlace::NewChat, "").unwrap();
    assert_eq!(drafts.get(DraftPlace::NewChat).unwrap(), "");
}

#[test]
fn a_draft_goes_with_its_chat() {
    let store = Store::in_memory().unwrap();
    let (id, _) = chat(&store, "Goldcrests", "A");
    store
        .drafts()
        .set(DraftPlace::Chat(id), "half a thou")
        .unwrap();
    store.chats().delete(id, 1).unwrap();
    assert_eq!(
        store.drafts().get(DraftPlace::Chat(id)).unwrap(),
        "half a thou"
    );
    store.chats().purge(2).unwrap();
    assert_eq!(store.drafts().get(DraftPlace::Chat(id)).unwrap(), "");
}

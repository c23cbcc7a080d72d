use store::{Draft, DraftPlace, QueuedMessage, Store};

use crate::{LONG, chat};

#[test]
fn each_place_has_its_draft() {
    let store = Store::in_memory().unwrap();
    let (id, _) = chat(&store, "Goldcrests", "A");
    let drafts = store.drafts();
    drafts.set(DraftPlace::NewChat, "new").unwrap();
    drafts.set(DraftPlace::Chat(id), "old").unwrap();
    drafts.set(DraftPlace::Chat(id), "in the chat").unwrap();
    assert_eq!(drafts.get(DraftPlace::NewChat).unwrap().text, "new");
    assert_eq!(
        drafts.get(DraftPlace::Chat(id)).unwrap().text,
        "in the chat"
    );
    drafts.set(DraftPlace::NewChat, "").unwrap();
    assert_eq!(drafts.get(DraftPlace::NewChat).unwrap(), Draft::default());
}

fn whole_draft() -> Draft {
    Draft {
        text: "half a thou".into(),
        pastes: vec!["a \"long\" text\n".repeat(1000), "another".into()],
        queue: vec![QueuedMessage {
            text: "and then".into(),
            pastes: vec!["a third".into()],
            thinking: true,
        }],
    }
}

fn keep(store: &Store, place: DraftPlace, draft: &Draft) {
    let drafts = store.drafts();
    drafts.set(place, &draft.text).unwrap();
    drafts.set_pastes(place, &draft.pastes).unwrap();
    drafts.set_queue(place, &draft.queue).unwrap();
}

#[test]
fn what_was_pasted_and_what_waits_is_kept_beside_what_is_typed() {
    let store = Store::in_memory().unwrap();
    let (id, _) = chat(&store, "Goldcrests", "A");
    let (place, draft) = (DraftPlace::Chat(id), whole_draft());
    keep(&store, place, &draft);
    assert_eq!(store.drafts().get(place).unwrap(), draft);
    store.drafts().set(place, "half a thought").unwrap();
    let text = "half a thought".into();
    assert_eq!(store.drafts().get(place).unwrap(), Draft { text, ..draft });
    keep(&store, place, &Draft::default());
    assert_eq!(store.drafts().get(place).unwrap(), Draft::default());
}

#[test]
fn a_draft_goes_with_its_chat() {
    let store = Store::in_memory().unwrap();
    let (id, _) = chat(&store, "Goldcrests", "A");
    let (place, draft) = (DraftPlace::Chat(id), whole_draft());
    keep(&store, place, &draft);
    store.chats().delete(id, 1).unwrap();
    assert_eq!(store.drafts().get(place).unwrap(), draft);
    store.chats().purge(2, LONG).unwrap();
    assert_eq!(store.drafts().get(place).unwrap(), Draft::default());
}

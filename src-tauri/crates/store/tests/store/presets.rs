use store::{ChatPreset, DraftPlace, PresetId, PresetRow, Store, read_presets};

use crate::{LONG, chat};

fn preset(name: &str) -> PresetRow {
    PresetRow {
        id: PresetId(0),
        name: name.into(),
        instructions: "Answer in verse.".into(),
        thinking: Some(false),
        sampling: serde_json::json!({ "temperature": 1.5 }),
        tools: None,
    }
}

#[test]
fn presets_are_listed_by_name_and_changed_and_deleted() {
    let store = Store::in_memory().unwrap();
    let presets = store.presets();
    let poet = presets.add(&preset("poet")).unwrap();
    let coder = presets.add(&preset("Coder")).unwrap();
    let names = || -> Vec<String> {
        let rows = presets.list().unwrap().into_iter();
        rows.map(|row| row.name).collect()
    };
    assert_eq!(names(), ["Coder", "poet"]);
    let changed = PresetRow {
        id: poet,
        thinking: None,
        ..preset("A poet")
    };
    presets.put(&changed).unwrap();
    assert_eq!(names(), ["A poet", "Coder"]);
    assert_eq!(presets.get(poet).unwrap(), Some(changed));
    presets.delete(coder).unwrap();
    assert_eq!(presets.get(coder).unwrap(), None);
    assert_ne!(
        presets.add(&preset("Coder")).unwrap(),
        coder,
        "an id is given once"
    );
    let back = PresetRow {
        id: coder,
        ..preset("Coder")
    };
    presets.put(&back).unwrap();
    assert_eq!(presets.get(coder).unwrap(), Some(back));
}

#[test]
fn what_a_chat_is_answered_with_goes_with_it() {
    let store = Store::in_memory().unwrap();
    let (id, _) = chat(&store, "Goldcrests", "A");
    let presets = store.presets();
    let chosen = ChatPreset {
        preset: Some(PresetId(7)),
        instructions: "Be brief.".into(),
        tools: None,
    };
    for place in [DraftPlace::NewChat, DraftPlace::Chat(id)] {
        assert_eq!(presets.of(place).unwrap(), None);
        presets.choose(place, Some(&chosen)).unwrap();
        assert_eq!(presets.of(place).unwrap(), Some(chosen.clone()));
    }
    presets.choose(DraftPlace::NewChat, None).unwrap();
    assert_eq!(presets.of(DraftPlace::NewChat).unwrap(), None);
    store.chats().delete(id, 1).unwrap();
    assert_eq!(presets.of(DraftPlace::Chat(id)).unwrap(), Some(chosen));
    store.chats().purge(2, LONG).unwrap();
    assert_eq!(presets.of(DraftPlace::Chat(id)).unwrap(), None);
}

#[test]
fn presets_are_read_while_the_file_is_open_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    assert!(
        read_presets(&path).is_err() && !path.exists(),
        "nothing is made"
    );
    let store = Store::open(&path).unwrap();
    assert!(read_presets(&path).unwrap().is_empty());
    store.presets().add(&preset("Poet")).unwrap();
    assert_eq!(read_presets(&path).unwrap()[0].name, "Poet");
    drop(store);
    assert_eq!(read_presets(&path).unwrap()[0].name, "Poet");
}

use store::{ChatField, FolderId, Store, StoreError};

use crate::{LONG, chat};

fn names(store: &Store) -> Vec<String> {
    let folders = store.folders().list().unwrap();
    folders.into_iter().map(|folder| folder.name).collect()
}

#[test]
fn folders_are_in_the_users_order() {
    let store = Store::in_memory().unwrap();
    let [first, _, third] = ["a", "b", "c"].map(|name| store.folders().create(name, 7).unwrap());
    assert_eq!(names(&store), ["a", "b", "c"]);
    store.folders().place(third, 0).unwrap();
    store.folders().place(first, 9).unwrap();
    assert_eq!(names(&store), ["c", "b", "a"]);
    store.folders().collapse(third, true).unwrap();
    let row = store.folders().get(third).unwrap();
    assert_eq!((row.collapsed, row.created_at), (true, 7));
    store.folders().remove(third).unwrap();
    let next = store.folders().create("d", 8).unwrap();
    assert!(next > third, "an id is never given twice");
    store.folders().put_back(&row).unwrap();
    assert_eq!(store.folders().get(third).unwrap(), row);
    assert_eq!(names(&store), ["b", "a", "d", "c"]);
    for gone in [
        store.folders().rename(FolderId(99), "x"),
        store.folders().remove(FolderId(99)),
        store.folders().place(FolderId(99), 0),
    ] {
        assert!(matches!(gone, Err(StoreError::NotFound("folder"))));
    }
}

#[test]
fn a_chat_is_in_one_folder_that_is_there() {
    let store = Store::in_memory().unwrap();
    let (id, _) = chat(&store, "One", "a");
    let (binned, _) = chat(&store, "Two", "b");
    store.chats().delete(binned, 5).unwrap();
    let folder = store.folders().create("Work", 1).unwrap();
    let into = |folder: FolderId| {
        let values = [id, binned].map(|chat| (chat, Some(folder.0)));
        store
            .chats()
            .set(ChatField::Folder, &values.to_vec())
            .unwrap()
    };
    assert_eq!(into(folder), [(id, None), (binned, None)]);
    assert_eq!(store.chats().in_folder(folder).unwrap(), [id, binned]);
    assert!(
        store.folders().remove(folder).is_err(),
        "it is not removed from under its chats"
    );
    let before = into(FolderId(99));
    assert_eq!(before, [(id, Some(folder.0)), (binned, Some(folder.0))]);
    assert_eq!(store.chats().get(id).unwrap().folder, None);
    store.chats().set(ChatField::Folder, &before).unwrap();
    assert_eq!(store.chats().get(id).unwrap().folder, Some(folder));
    assert!(!store.chats().purge(6, LONG).unwrap(), "with its folder");
}

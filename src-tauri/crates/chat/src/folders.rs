//! Folders of chats, in the store on the disk.

use store::{ChatField, ChatId, FolderId, FolderRow, Store, StoreError};

use crate::failure::Failure;
use crate::title;
use crate::view::Folder;

/// A folder that was removed.
#[derive(Clone)]
pub(crate) struct RemovedFolder {
    pub row: FolderRow,
    /// Its position among the others, from 0.
    place: usize,
    /// Chats that were in it.
    pub chats: Vec<ChatId>,
}

pub(crate) fn list(store: &Store) -> Result<Vec<Folder>, StoreError> {
    let rows = store.folders().list()?;
    let folder = |row: FolderRow| Folder {
        id: row.id,
        name: row.name,
        collapsed: row.collapsed,
    };
    Ok(rows.into_iter().map(folder).collect())
}

/// Normalises a name from the user and checks that no folder has it, but for `of`.
pub(crate) fn free_name(
    store: &Store,
    name: &str,
    of: Option<FolderId>,
) -> Result<String, Failure> {
    let name = title::of_folder(name)?;
    let taken =
        |row: &FolderRow| Some(row.id) != of && row.name.to_lowercase() == name.to_lowercase();
    match store.folders().list()?.into_iter().find(taken) {
        Some(row) => Err(Failure::other(format!(
            "There is already a folder “{}”.",
            row.name
        ))),
        None => Ok(name),
    }
}

/// Moves a folder to a position among the others, from 0. Returns the one before.
pub(crate) fn place(store: &Store, folder: FolderId, to: usize) -> Result<usize, StoreError> {
    store.transaction(|store| {
        let before = place_of(store, folder)?;
        store.folders().place(folder, to)?;
        Ok(before)
    })
}

/// Removes a folder. Its chats stay, in no folder.
pub(crate) fn remove(store: &Store, folder: FolderId) -> Result<RemovedFolder, StoreError> {
    store.transaction(|store| {
        let row = store.folders().get(folder)?;
        let place = place_of(store, folder)?;
        let chats = store.chats().in_folder(folder)?;
        if !chats.is_empty() {
            let out = chats.iter().map(|chat| (*chat, None)).collect();
            store.chats().set(ChatField::Folder, &out)?;
        }
        store.folders().remove(folder)?;
        Ok(RemovedFolder { row, place, chats })
    })
}

/// Puts a folder back in its place, with those of its chats that are still there.
pub(crate) fn put_back(store: &Store, removed: &RemovedFolder) -> Result<(), StoreError> {
    let RemovedFolder { row, place, chats } = removed;
    store.transaction(|store| {
        store.folders().put_back(row)?;
        store.folders().place(row.id, *place)?;
        let into = chats.iter().map(|chat| (*chat, Some(row.id.0))).collect();
        match store.chats().set(ChatField::Folder, &into) {
            Ok(_) | Err(StoreError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    })
}

fn place_of(store: &Store, folder: FolderId) -> Result<usize, StoreError> {
    let rows = store.folders().list()?;
    let place = rows.iter().position(|row| row.id == folder);
    Ok(place.unwrap_or(rows.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_folder_comes_back_to_its_place_with_its_chats() -> Result<(), Failure> {
        let store = Store::in_memory()?;
        let create = |name| store.folders().create(name, 1);
        let [first, second, third] = [create("Birds")?, create("Trees")?, create("Towers")?];
        let chat = store.chats().create("Goldcrests", "2026-03-05", 1)?;
        let values = vec![(chat, Some(second.0))];
        store.chats().set(ChatField::Folder, &values)?;

        let removed = remove(&store, second)?;
        assert_eq!(removed.chats, [chat]);
        assert_eq!(store.chats().get(chat)?.folder, None);
        put_back(&store, &removed)?;
        let ids: Vec<_> = list(&store)?.iter().map(|folder| folder.id).collect();
        assert_eq!(ids, [first, second, third]);
        assert_eq!(store.chats().get(chat)?.folder, Some(second));

        let before = place(&store, third, 0)?;
        assert_eq!((before, place(&store, third, before)?), (2, 0));
        Ok(())
    }

    #[test]
    fn a_folder_that_lost_its_chats_comes_back_without_them() -> Result<(), Failure> {
        let store = Store::in_memory()?;
        let folder = store.folders().create("Birds", 1)?;
        let chat = store.chats().create("Goldcrests", "2026-03-05", 1)?;
        let values = vec![(chat, Some(folder.0))];
        store.chats().set(ChatField::Folder, &values)?;
        let removed = remove(&store, folder)?;
        store.chats().delete(chat, 1)?;
        store.chats().expire(&[chat])?;
        put_back(&store, &removed)?;
        assert_eq!(list(&store)?.len(), 1);
        Ok(())
    }

    #[test]
    fn a_name_is_taken_whatever_its_case_but_not_by_its_own_folder() -> Result<(), Failure> {
        let store = Store::in_memory()?;
        let folder = store.folders().create("Birds", 1)?;
        assert!(free_name(&store, "BIRDS", None).is_err());
        assert_eq!(free_name(&store, " birds ", Some(folder))?, "birds");
        Ok(())
    }
}

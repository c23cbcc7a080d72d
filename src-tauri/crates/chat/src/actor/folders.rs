//! Folders of chats.

use store::{ChatField, ChatId, FolderId, FolderRow, StoreError};

use crate::actor::order::distinct;
use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::failure::Failure;
use crate::title;
use crate::view::{ChatEvent, Folder};

impl ChatActor {
    /// Creates a folder and moves these chats into it.
    pub(crate) fn create_folder(
        &mut self,
        name: &str,
        chats: &[ChatId],
    ) -> Result<FolderId, Failure> {
        let name = self.free_name(name, None)?;
        let folder = self.stores.disk.folders().create(&name, self.now())?;
        self.emit_folders()?;
        let mut revert = Revert::new(move |actor| actor.remove_folder(folder));
        if !chats.is_empty() {
            let values = distinct(chats).into_iter();
            let values = values.map(|chat| (chat, Some(folder.0))).collect();
            match self.set(ChatField::Folder, values) {
                Ok(moved) => revert = Revert::both(revert, moved),
                Err(failure) => {
                    self.remove_folder(folder)?;
                    return Err(failure);
                }
            }
        }
        self.record(format!("created the folder “{name}”"), None, revert);
        Ok(folder)
    }

    pub(crate) fn rename_folder(&mut self, folder: FolderId, name: &str) -> Result<(), Failure> {
        let before = self.stores.disk.folders().get(folder)?.name;
        let name = self.free_name(name, Some(folder))?;
        let revert = self.set_folder_name(folder, &name)?;
        self.record(format!("renamed the folder “{before}”"), None, revert);
        Ok(())
    }

    /// Deletes a folder, and returns the label for undo. Its chats stay, in no folder.
    pub(crate) fn delete_folder(&mut self, folder: FolderId) -> Result<String, Failure> {
        let name = self.stores.disk.folders().get(folder)?.name;
        let revert = self.remove_folder(folder)?;
        let what = format!("the folder “{name}”");
        let label = format!("deleted {what}");
        self.record(label.clone(), None, revert);
        self.undo.set_removed(what);
        Ok(label)
    }

    /// Moves a folder to a position among the others, from 0.
    pub(crate) fn move_folder(&mut self, folder: FolderId, to: usize) -> Result<(), Failure> {
        let name = self.stores.disk.folders().get(folder)?.name;
        let revert = self.set_folder_place(folder, to)?;
        self.record(format!("moved the folder “{name}”"), None, revert);
        Ok(())
    }

    /// Collapses a folder. This cannot be undone, as the user sees it beside the name.
    pub(crate) fn collapse_folder(
        &mut self,
        folder: FolderId,
        collapsed: bool,
    ) -> Result<(), Failure> {
        self.stores.disk.folders().collapse(folder, collapsed)?;
        self.emit_folders()
    }

    pub(super) fn folders(&self) -> Result<Vec<Folder>, Failure> {
        let rows = self.stores.disk.folders().list()?;
        let folder = |row: FolderRow| Folder {
            id: row.id,
            name: row.name,
            collapsed: row.collapsed,
        };
        Ok(rows.into_iter().map(folder).collect())
    }

    fn set_folder_name(&mut self, folder: FolderId, name: &str) -> Result<Revert, Failure> {
        let before = self.stores.disk.folders().get(folder)?.name;
        self.stores.disk.folders().rename(folder, name)?;
        self.emit_folders()?;
        Ok(Revert::new(move |actor| {
            actor.set_folder_name(folder, &before)
        }))
    }

    fn set_folder_place(&mut self, folder: FolderId, to: usize) -> Result<Revert, Failure> {
        let before = self.place_of(folder)?;
        self.stores
            .disk
            .transaction(|store| store.folders().place(folder, to))?;
        self.emit_folders()?;
        Ok(Revert::new(move |actor| {
            actor.set_folder_place(folder, before)
        }))
    }

    pub(super) fn remove_folder(&mut self, folder: FolderId) -> Result<Revert, Failure> {
        let row = self.stores.disk.folders().get(folder)?;
        let place = self.place_of(folder)?;
        let chats = self.stores.disk.chats().in_folder(folder)?;
        self.stores.disk.transaction(|store| {
            if !chats.is_empty() {
                let out = chats.iter().map(|chat| (*chat, None)).collect();
                store.chats().set(ChatField::Folder, &out)?;
            }
            store.folders().remove(folder)
        })?;
        self.emit_all_changed(&chats)?;
        self.emit_folders()?;
        Ok(Revert::new(move |actor| {
            actor.put_folder_back(&row, place, &chats)
        }))
    }

    fn put_folder_back(
        &mut self,
        row: &FolderRow,
        place: usize,
        chats: &[ChatId],
    ) -> Result<Revert, Failure> {
        let folder = row.id;
        self.stores.disk.transaction(|store| {
            store.folders().put_back(row)?;
            store.folders().place(folder, place)?;
            let into = chats.iter().map(|chat| (*chat, Some(folder.0))).collect();
            match store.chats().set(ChatField::Folder, &into) {
                // Its chats may be gone by now.
                Ok(_) | Err(StoreError::NotFound(_)) => Ok(()),
                Err(error) => Err(error),
            }
        })?;
        self.emit_folders()?;
        self.emit_all_changed(chats)?;
        Ok(Revert::new(move |actor| actor.remove_folder(folder)))
    }

    fn place_of(&self, folder: FolderId) -> Result<usize, Failure> {
        let rows = self.stores.disk.folders().list()?;
        let place = rows.iter().position(|row| row.id == folder);
        Ok(place.unwrap_or(rows.len()))
    }

    /// Normalises a name from the user and checks that no other folder has it.
    fn free_name(&self, name: &str, of: Option<FolderId>) -> Result<String, Failure> {
        let name = title::of_folder(name)?;
        let taken =
            |row: &FolderRow| Some(row.id) != of && row.name.to_lowercase() == name.to_lowercase();
        match self
            .stores
            .disk
            .folders()
            .list()?
            .iter()
            .find(|row| taken(row))
        {
            Some(row) => Err(Failure::other(format!(
                "There is already a folder “{}”.",
                row.name
            ))),
            None => Ok(name),
        }
    }

    pub(super) fn emit_folders(&self) -> Result<(), Failure> {
        let folders = self.folders()?;
        self.emit(ChatEvent::FoldersChanged { folders });
        Ok(())
    }
}

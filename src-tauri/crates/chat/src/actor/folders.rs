//! Folders of chats.

use store::{ChatField, ChatId, FolderId};

use crate::actor::order::distinct;
use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::failure::Failure;
use crate::folders::{self, RemovedFolder};
use crate::view::ChatEvent;

impl ChatActor {
    /// Creates a folder and moves these chats into it.
    pub(crate) fn create_folder(
        &mut self,
        name: &str,
        chats: &[ChatId],
    ) -> Result<FolderId, Failure> {
        let name = folders::free_name(&self.stores.disk, name, None)?;
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
        let name = folders::free_name(&self.stores.disk, name, Some(folder))?;
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

    fn set_folder_name(&mut self, folder: FolderId, name: &str) -> Result<Revert, Failure> {
        let before = self.stores.disk.folders().get(folder)?.name;
        self.stores.disk.folders().rename(folder, name)?;
        self.emit_folders()?;
        Ok(Revert::new(move |actor| {
            actor.set_folder_name(folder, &before)
        }))
    }

    fn set_folder_place(&mut self, folder: FolderId, to: usize) -> Result<Revert, Failure> {
        let before = folders::place(&self.stores.disk, folder, to)?;
        self.emit_folders()?;
        Ok(Revert::new(move |actor| {
            actor.set_folder_place(folder, before)
        }))
    }

    pub(super) fn remove_folder(&mut self, folder: FolderId) -> Result<Revert, Failure> {
        let removed = folders::remove(&self.stores.disk, folder)?;
        self.emit_all_changed(&removed.chats)?;
        self.emit_folders()?;
        Ok(Revert::new(move |actor| actor.put_folder_back(&removed)))
    }

    fn put_folder_back(&mut self, removed: &RemovedFolder) -> Result<Revert, Failure> {
        folders::put_back(&self.stores.disk, removed)?;
        self.emit_folders()?;
        self.emit_all_changed(&removed.chats)?;
        let folder = removed.row.id;
        Ok(Revert::new(move |actor| actor.remove_folder(folder)))
    }

    pub(super) fn emit_folders(&self) -> Result<(), Failure> {
        let folders = folders::list(&self.stores.disk)?;
        self.emit(ChatEvent::FoldersChanged { folders });
        Ok(())
    }
}

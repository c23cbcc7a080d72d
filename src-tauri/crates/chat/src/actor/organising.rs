//! Organisation of chats: pinned, archived, in folders, in the bin. A verb that takes several chats is undone as one change,
//! and returns the label for undo.

use std::collections::BTreeSet;

use store::{ChatField, ChatId, ChatValues, FolderId};

use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::failure::Failure;
use crate::folders::{self, RemovedFolder};
use crate::job::Job;
use crate::view::{ChatEvent, ChatSummary};

impl ChatActor {
    pub(crate) fn pin(&mut self, chats: &[ChatId], pinned: bool) -> Result<String, Failure> {
        let verb = if pinned { "pinned" } else { "unpinned" };
        let at = pinned.then(|| self.now());
        self.change(chats, ChatField::Pinned, at, |chats| {
            format!("{verb} {chats}")
        })
    }

    pub(crate) fn archive(&mut self, chats: &[ChatId], archived: bool) -> Result<String, Failure> {
        let verb = if archived { "archived" } else { "unarchived" };
        let at = archived.then(|| self.now());
        self.change(chats, ChatField::Archived, at, |chats| {
            format!("{verb} {chats}")
        })
    }

    /// Moves chats into a folder; `None`: out of theirs.
    pub(crate) fn move_chats(
        &mut self,
        chats: &[ChatId],
        folder: Option<FolderId>,
    ) -> Result<String, Failure> {
        let name = folder.map(|folder| self.stores.disk.folders().get(folder));
        let name = name.transpose()?.map(|row| row.name);
        let value = folder.map(|id| id.0);
        self.change(chats, ChatField::Folder, value, |chats| match name {
            Some(name) => format!("moved {chats} to “{name}”"),
            None => format!("moved {chats} out of folders"),
        })
    }

    pub(crate) fn delete(&mut self, chats: &[ChatId]) -> Result<String, Failure> {
        let at = Some(self.deletion_date());
        let mut removed = String::new();
        let label = self.change(chats, ChatField::Deleted, at, |chats| {
            removed = chats.to_owned();
            format!("deleted {chats}")
        })?;
        self.undo.set_removed(removed);
        Ok(label)
    }

    pub(crate) fn restore(&mut self, chats: &[ChatId]) -> Result<String, Failure> {
        let label = |chats: &str| format!("restored {chats}");
        self.change(chats, ChatField::Deleted, None, label)
    }

    /// Returns the chats that can be restored, the last deleted first.
    pub(crate) fn bin(&self) -> Result<Vec<ChatSummary>, Failure> {
        let rows = self.stores.disk.chats().deleted()?;
        Ok(rows.into_iter().map(|row| self.summary(row)).collect())
    }

    /// Purges chats from the bin before their time. This cannot be undone.
    pub(crate) fn delete_for_good(&mut self, chats: &[ChatId]) -> Result<(), Failure> {
        let expired = self.stores.disk.chats().expire(chats)?;
        self.undo.forget(&expired);
        self.upkeep.purge_soon();
        self.retain_chats(&BTreeSet::new());
        Ok(())
    }

    /// Sets a field of chats. `label`: makes the label for undo from their names.
    fn change(
        &mut self,
        chats: &[ChatId],
        field: ChatField,
        value: Option<i64>,
        label: impl FnOnce(&str) -> String,
    ) -> Result<String, Failure> {
        let chats = distinct(chats);
        let label = label(&self.named(&chats)?);
        let values = chats.iter().map(|chat| (*chat, value)).collect();
        let revert = self.set(field, values)?;
        let only = <[ChatId; 1]>::try_from(chats).ok().map(|[chat]| chat);
        self.record(label.clone(), only, revert);
        Ok(label)
    }

    pub(super) fn set(&mut self, field: ChatField, values: ChatValues) -> Result<Revert, Failure> {
        let before = self.stores.set(field, values)?;
        let chats: Vec<ChatId> = before.iter().map(|(chat, _)| *chat).collect();
        let there = self.emit_all_changed(&chats)?;
        if field == ChatField::Deleted {
            let gone = chats.into_iter().filter(|chat| !there.contains(chat));
            self.leave(gone.collect())?;
        }
        Ok(Revert::new(move |actor| actor.set(field, before.clone())))
    }

    pub(super) fn put_into_bin(&mut self, chats: &[ChatId]) -> Result<Revert, Failure> {
        let at = Some(self.deletion_date());
        let values = chats.iter().map(|chat| (*chat, at)).collect();
        self.set(ChatField::Deleted, values)
    }

    /// Removes a chat that was derived from another one, which is then shown.
    pub(super) fn take_derived(&mut self, chat: ChatId, source: ChatId) -> Result<Revert, Failure> {
        self.put_into_bin(&[chat])?;
        let again = Revert::new(move |actor| {
            actor.set(ChatField::Deleted, vec![(chat, None)])?;
            Ok(Revert::new(move |actor| actor.take_derived(chat, source)))
        });
        Ok(again.showing(source))
    }

    /// Ends all activity in chats that no longer exist.
    pub(super) fn leave(&mut self, chats: Vec<ChatId>) -> Result<(), Failure> {
        if chats.is_empty() {
            return Ok(());
        }
        for chat in &chats {
            self.stop(*chat)?;
        }
        self.jobs.submit(Job::Forget(chats.clone()));
        self.emit(ChatEvent::ChatsRemoved { chats });
        Ok(())
    }

    /// Emits the chats that are not deleted, and returns them.
    pub(super) fn emit_all_changed(&self, chats: &[ChatId]) -> Result<Vec<ChatId>, Failure> {
        let rows = self.stores.some(chats)?;
        let there = rows.iter().map(|row| row.id).collect();
        if !rows.is_empty() {
            let chats = rows.into_iter().map(|row| self.summary(row)).collect();
            self.emit(ChatEvent::ChatsChanged { chats });
        }
        Ok(there)
    }

    /// Names chats for a label: `“Title”`, `3 chats`.
    fn named(&self, chats: &[ChatId]) -> Result<String, Failure> {
        match chats {
            [chat] => {
                let row = self.stores.of(*chat).chats().get_with_deleted(*chat)?;
                Ok(format!("“{}”", row.title))
            }
            _ => Ok(format!("{} chats", figures::count(chats.len()))),
        }
    }

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

/// Removes duplicates.
fn distinct(chats: &[ChatId]) -> Vec<ChatId> {
    let mut seen = BTreeSet::new();
    let first = chats.iter().filter(|chat| seen.insert(**chat));
    first.copied().collect()
}

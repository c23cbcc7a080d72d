//! Import. Its chats are hidden until it is complete; after an interruption the next purge removes them.

use store::Store;

use crate::actor::preferences::delete_added;
use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::failure::{Failure, nothing_imported};
use crate::importing::{ImportCounts, Importing, Published};

impl ChatActor {
    pub(crate) fn begin_import(&mut self) -> Result<(), Failure> {
        if self.import.is_some() {
            return Err(Failure::other("Another import is still running."));
        }
        self.import = Some(Importing::begin(&self.stores.disk, self.now())?);
        Ok(())
    }

    /// Returns the import in progress, and the store that it writes to.
    pub(crate) fn import(&mut self) -> Result<(&mut Importing, &Store), Failure> {
        let import = self.import.as_mut().ok_or_else(no_import)?;
        Ok((import, &self.stores.disk))
    }

    pub(crate) fn end_import(&mut self) -> Result<ImportCounts, Failure> {
        let import = self.import.take().ok_or_else(no_import)?;
        self.upkeep.purge_soon();
        let Published {
            chats,
            folders,
            presets,
            counts,
        } = import
            .publish(&self.stores.disk)
            .map_err(nothing_imported)?;
        if !folders.is_empty() {
            self.emit_folders()?;
        }
        if !presets.is_empty() {
            self.emit_presets();
        }
        let mut revert = None;
        let mut also = |change: Revert| {
            revert = Some(match revert.take() {
                Some(before) => Revert::both(change, before),
                None => change,
            });
        };
        if !chats.is_empty() {
            self.emit_all_changed(&chats)?;
            also(Revert::new(move |actor| actor.put_into_bin(&chats)));
        }
        for folder in folders {
            also(Revert::new(move |actor| actor.remove_folder(folder)));
        }
        if !presets.is_empty() {
            also(delete_added(&presets));
        }
        if let Some((revert, added)) = revert.zip(counts.of_added()) {
            self.record(format!("imported {added}"), None, revert);
        }
        Ok(counts)
    }

    pub(crate) fn drop_import(&mut self) {
        if self.import.take().is_some() {
            self.upkeep.purge_soon();
        }
    }
}

fn no_import() -> Failure {
    Failure::other("The import has ended.")
}

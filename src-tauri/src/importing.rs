//! An import: chats from files, added to those that are here, all or none.

use std::path::PathBuf;

use chat::{Chat, Failure, ImportCounts, RunningImport};
use chat_files::{Item, ReadError, Tally, read};
use jiff::tz::TimeZone;

use crate::wire::Imported;

/// Adds the chats of files to those of the app; `None`: `progress` ended it, which hears how many bytes of how many are
/// read.
pub fn into_app(
    chat: &Chat,
    files: &[PathBuf],
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Imported>, Failure> {
    let mut import = RunningImport::begin(chat)?;
    let add = &mut |item| match item {
        Item::Folder(folder) => import.add_folder(folder),
        Item::Preset(preset) => import.add_preset(preset),
        Item::Chat(whole) => import.add(whole),
    };
    let Some(tally) = read_all(files, progress, add)? else {
        return Ok(None);
    };
    Ok(Some(imported(&tally, import.finish()?)))
}

/// Reads files, and has `add` take what is in them; `None`: `progress` ended it.
pub fn read_all(
    files: &[PathBuf],
    progress: &mut dyn FnMut(u64, u64) -> bool,
    add: &mut dyn FnMut(Item) -> Result<(), Failure>,
) -> Result<Option<Tally>, Failure> {
    let mut refused = None;
    let read = read(files, &TimeZone::system(), progress, &mut |item| {
        refused = add(item).err();
        refused.is_none()
    });
    match (read, refused) {
        (_, Some(failure)) => Err(failure),
        (Ok(tally), None) => Ok(Some(tally)),
        (Err(ReadError::Stopped), None) => Ok(None),
        (Err(error), None) => Err(Failure::other(format!("{error} Nothing was imported."))),
    }
}

pub fn imported(tally: &Tally, counts: ImportCounts) -> Imported {
    Imported {
        added: count(counts.added),
        changed: count(counts.changed),
        known: count(counts.known),
        empty: count(tally.empty),
        cut: count(tally.cut),
        sources: tally.sources.clone(),
    }
}

/// A count for the page.
pub fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

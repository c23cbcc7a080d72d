//! `goldcrest import`: chats from files, all or none.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chat::{Failure, Importing, nothing_imported};
use chat_files::{Item, OnProgress};
use store::Store;

use super::args::ImportArgs;
use super::folders::data_folder;
use super::interrupt::Interrupt;
use super::output::{self, CliError};
use super::progress::ProgressLine;
use crate::data_lock;
use crate::wire::Imported;
use crate::worker;

/// Time for which chats are written, or removed, in one transaction.
const AT_ONCE: Duration = Duration::from_millis(100);

pub fn run(args: &ImportArgs) -> Result<(), CliError> {
    let folders = data_folder()?;
    let lock = data_lock::lock(&folders.data);
    let lock = lock.map_err(|error| CliError::file(&folders.data, error))?;
    // Held until the end: while the app is open, it alone writes its chats.
    let Some(lock) = lock else {
        if data_lock::is_import(&folders.data) {
            return Err(CliError::message(
                "another import is running; wait until it is done",
            ));
        }
        return Err(CliError::message(
            "Goldcrest is open. Import the files there (Settings, Chats and data), or close it first.",
        ));
    };
    lock.note_import();
    let message = |error: store::StoreError| CliError::message(error.to_string());
    let store = Store::open(&folders.database()).map_err(message)?;
    let interrupt = Interrupt::listen();
    let (added, _) = interrupt.during(|cancel| {
        let mut line = ProgressLine::new();
        add(&store, args, &mut |done, total| {
            line.show("Importing", done, total);
            !cancel.load(Ordering::Relaxed)
        })
    });
    let ended = ended(added);
    interrupt.during(|cancel| remove_what_is_hidden(&store, cancel));
    ended
}

/// Reports an import. A completed one counts, even if Ctrl+C came during its end.
fn ended(added: Result<Option<Imported>, Failure>) -> Result<(), CliError> {
    match added? {
        Some(imported) => Ok(writeln!(output::stderr(), "{}", imported.message)?),
        None => Err(CliError::Interrupted),
    }
}

fn add(
    store: &Store,
    args: &ImportArgs,
    progress: &mut OnProgress<'_>,
) -> Result<Option<Imported>, Failure> {
    let now = chat::now().timestamp().as_second();
    let mut importing = Importing::begin(store, now)?;
    let tally = worker::read(&args.files, progress, &mut |item| {
        match item {
            Item::File(_) => {}
            Item::Folder(folder) => importing.add_folder(folder),
            Item::Preset(preset) => importing.add_preset(preset),
            Item::Chat(whole) => {
                if importing.add(store, whole).map_err(nothing_imported)? {
                    write(&mut importing, store)?;
                }
            }
        }
        Ok(())
    })?;
    let Some(tally) = tally else {
        return Ok(None);
    };
    write(&mut importing, store)?;
    let counts = importing.finish(store).map_err(nothing_imported)?;
    Ok(Some(Imported::of(&tally, counts)))
}

fn write(importing: &mut Importing, store: &Store) -> Result<(), Failure> {
    while !importing.write(store, AT_ONCE).map_err(nothing_imported)? {}
    Ok(())
}

/// Removes the hidden chats of this import, which was not completed, and of earlier ones.
fn remove_what_is_hidden(store: &Store, cancel: &AtomicBool) {
    let mut line = ProgressLine::new();
    // A chat whose removal has begun has the date 0.
    let purge = || store.chats().purge(1, AT_ONCE);
    while !cancel.load(Ordering::Relaxed) {
        match purge() {
            Ok(true) => line.show("Removing what was not imported", 0, 1),
            Ok(false) => break,
            Err(error) => {
                return tracing::warn!(%error, "what was not imported is still there, hidden");
            }
        }
    }
    if let Err(error) = store.compact() {
        tracing::warn!(%error, "the file did not become smaller");
    }
}

#[cfg(test)]
mod tests {
    use chat::Role;
    use store::{ChatRecord, MessageRecord, WholeChat};

    use super::*;

    #[test]
    fn what_was_not_imported_is_removed_at_once_and_nothing_else() {
        let folder = tempfile::tempdir().expect("made");
        let store = Store::open(&folder.path().join("goldcrest.db")).expect("made");
        let deleted = store.chats().create("Deleted", "2026-03-05", 1);
        store
            .chats()
            .delete(deleted.expect("made"), 2)
            .expect("deleted");
        let mut importing = Importing::begin(&store, 3).expect("begun");
        let messages =
            (1..=40).map(|id| MessageRecord::new(id, Role::User, "word ".repeat(999), 1));
        let whole = WholeChat {
            chat: ChatRecord::new("a".into(), String::new(), "2026-03-05".into(), 1, Some(40)),
            messages: messages.collect(),
        };
        importing.add(&store, whole).expect("added");
        write(&mut importing, &store).expect("written");
        drop(importing);
        // State after an interrupted purge.
        assert!(store.chats().purge(0, Duration::ZERO).expect("begun"));
        let is_here = || store.records().has_uid("a").expect("read");
        assert!(is_here());
        remove_what_is_hidden(&store, &AtomicBool::new(false));
        assert!(!is_here());
        assert_eq!(store.chats().deleted().expect("read").len(), 1);
    }
}

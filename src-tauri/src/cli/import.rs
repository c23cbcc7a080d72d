//! `goldcrest import`: chats from files, all or none.

use std::io::{self, Write};
use std::time::Duration;

use chat::{Failure, Importing, Store};
use chat_files::{Item, OnProgress};

use super::args::ImportArgs;
use super::folders::data_folder;
use super::interrupt::Interrupt;
use super::output::CliError;
use super::progress::ProgressLine;
use crate::importing::read_all;
use crate::instance;
use crate::wire::Imported;

pub fn run(args: &ImportArgs) -> Result<(), CliError> {
    let folders = data_folder()?;
    let lock = instance::lock(&folders.data);
    let lock = lock.map_err(|error| CliError::file(&folders.data, error))?;
    // Until the end: the app alone writes its chats while it is open.
    let Some(lock) = lock else {
        if instance::is_import(&folders.data) {
            return Err(CliError::message(
                "another import is running; wait until it is done",
            ));
        }
        return Err(CliError::message(
            "Goldcrest is open. Import the files there (Settings, Chats and data), or close it first.",
        ));
    };
    lock.note_import();
    let message = |error: chat::StoreError| CliError::message(error.to_string());
    let store = Store::open(&folders.database()).map_err(message)?;
    let (added, _) = Interrupt::listen().during(|cancel| {
        let mut line = ProgressLine::new();
        add(&store, args, &mut |done, total| {
            line.show("Importing", done, total);
            !cancel.load(std::sync::atomic::Ordering::Relaxed)
        })
    });
    ended(added)
}

/// What was imported to its end counts, even where Ctrl+C came in the middle of that.
fn ended(added: Result<Option<Imported>, Failure>) -> Result<(), CliError> {
    match added.map_err(|failure| CliError::message(failure.message))? {
        Some(imported) => Ok(writeln!(io::stderr(), "{}", imported.message)?),
        // What was written is hidden, and the next purge removes it.
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
    let tally = read_all(&args.files, progress, &mut |item| {
        match item {
            Item::Folder(folder) => importing.add_folder(folder),
            Item::Preset(preset) => importing.add_preset(preset),
            Item::Chat(whole) => {
                if importing.add(store, whole)? {
                    importing.write(store, Duration::MAX)?;
                }
            }
        }
        Ok(())
    })?;
    let Some(tally) = tally else {
        return Ok(None);
    };
    importing.write(store, Duration::MAX)?;
    let counts = importing.finish(store)?;
    Ok(Some(Imported::of(&tally, counts)))
}

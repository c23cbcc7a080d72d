//! Reading chats from files of all known programs, recognised by their content.

mod container;

use std::fs::{self, File};
use std::io::BufRead;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use json_text::JsonText;

use self::container::{Container, Entry};
use crate::file_reading::{FileReading, Item, Tally};
use crate::input::{Counted, Counter};
use crate::jsonl;
use crate::options::OnProgress;
use crate::read_error::ReadError;
use crate::source::{FirstLine, Source, foreign, jan};

/// Reads chats from files, archives and folders, and passes them to `each`, which stops the read by returning false.
///
/// Nothing is written. Only one chat is in memory at a time. Dates that a chat needs are in `zone`. `progress` is
/// called for every piece that is read, also within a chat.
pub fn read(
    files: &[PathBuf],
    zone: &TimeZone,
    progress: &mut OnProgress<'_>,
    each: &mut dyn FnMut(Item) -> bool,
) -> Result<Tally, ReadError> {
    let total = size(files)?;
    let mut reading = FileReading {
        zone,
        counter: Counter::new(total, progress),
        tally: Tally::default(),
        each,
    };
    for file in files {
        reading.item(Item::File(shown(file)))?;
        read_path(file, &mut reading)?;
    }
    Ok(reading.tally)
}

/// Total bytes of files, archives and folders.
pub fn size(files: &[PathBuf]) -> Result<u64, ReadError> {
    let mut total = 0;
    for file in files {
        let name = shown(file);
        let failed = |error| ReadError::input(&name, &error);
        let found = fs::metadata(file).map_err(failed)?;
        // Opening a pipe would block until somebody writes to it.
        if !found.is_file() && !found.is_dir() {
            return Err(ReadError::NotAFile { file: name });
        }
        total += container::size(file).map_err(failed)?;
    }
    Ok(total)
}

/// The name of a file for messages.
fn shown(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn read_path(path: &Path, reading: &mut FileReading<'_>) -> Result<(), ReadError> {
    let name = shown(path);
    let failed = |error| ReadError::input(&name, &error);
    let container = if path.is_dir() {
        Container::folder(path).map_err(failed)?
    } else if container::is_archive(path).map_err(failed)? {
        Container::archive(path, &reading.counter).map_err(failed)?
    } else if jan::is_part(path) {
        // Its other part is in the same folder.
        Container::jan_thread(path.parent().unwrap_or(Path::new("")))
    } else {
        let file = File::open(path).map_err(failed)?;
        let counter = reading.counter.clone();
        return read_stream(&name, Counted::of(file, &counter), reading);
    };
    read_container(&name, container, reading)
}

/// Reads the files of a folder or an archive. Those without chats are skipped.
fn read_container<'a>(
    name: &str,
    mut container: Container<'a>,
    reading: &mut FileReading<'a>,
) -> Result<(), ReadError> {
    let mut is_known = false;
    let mut nothing = ReadError::Unknown {
        file: name.to_owned(),
    };
    for entry in container.chosen() {
        let inside = format!("{} in {name}", entry.name());
        let read = read_entry(&entry, &inside, &mut container, reading);
        match read {
            Ok(()) => is_known = true,
            Err(ReadError::Unknown { file }) => {
                reading.tally.unknown_files.add(1, file);
            }
            Err(error @ ReadError::Empty { .. }) => nothing = error,
            Err(ReadError::CutOff { file } | ReadError::Damaged { file, .. })
                if entry.is_one_chat() =>
            {
                is_known = true;
                reading.tally.unread_chats.add(1, file);
            }
            Err(ReadError::TooLarge { file }) if entry.is_one_chat() => {
                is_known = true;
                reading.tally.large_chats.add(1, file);
            }
            Err(error) => return Err(error),
        }
        reading.counter.begin_chat();
    }
    if is_known { Ok(()) } else { Err(nothing) }
}

fn read_entry<'a>(
    entry: &Entry,
    inside: &str,
    container: &mut Container<'a>,
    reading: &mut FileReading<'a>,
) -> Result<(), ReadError> {
    let failed = |error| ReadError::input(inside, &error);
    let counter = reading.counter.clone();
    let (thread, messages) = match entry {
        Entry::File(file) => {
            let input = container.open(file, &counter).map_err(failed)?;
            return read_stream(inside, input, reading);
        }
        Entry::JanThread { thread, messages } => (thread, messages),
    };
    let folder = thread.rsplit('/').nth(1).unwrap_or_default();
    let input = container.open(thread, &counter).map_err(failed)?;
    let mut input = JsonText::new(input);
    let thread = jan::Thread::read(&mut input).map_err(failed)?;
    reading.replaced(input.replaced(), inside);
    drop(input);
    let chat = match messages {
        Some(messages) => {
            let input = container.open(messages, &counter).map_err(failed)?;
            let mut input = JsonText::new(input);
            let chat = thread.chat(folder, Some(&mut input), reading.zone);
            reading.replaced(input.replaced(), inside);
            chat
        }
        None => thread.chat(folder, None, reading.zone),
    };
    reading.foreign(Source::Jan, chat.map_err(failed)?)
}

/// Reads one file, whose first bytes tell its format.
fn read_stream(
    name: &str,
    input: Counted<'_, '_>,
    reading: &mut FileReading<'_>,
) -> Result<(), ReadError> {
    let mut input = JsonText::new(input);
    let begin = input
        .fill_buf()
        .map_err(|error| ReadError::input(name, &error))?;
    let file = name.to_owned();
    if begin.is_empty() {
        return Err(ReadError::Empty { file });
    }
    let first_line = begin.split(|byte| *byte == b'\n').next().unwrap_or(begin);
    let first = serde_json::from_slice::<FirstLine>(first_line).unwrap_or_default();
    if first.format.as_deref() == Some(jsonl::NAME) {
        reading.source(Source::Goldcrest);
        jsonl::read(name, &mut input, reading)?;
    } else if let Some(b'{' | b'[') = begin.trim_ascii_start().first() {
        foreign::read(name, &mut input, reading)?;
    } else {
        return Err(ReadError::Unknown { file });
    }
    reading.replaced(input.replaced(), name);
    Ok(())
}

//! Reading chats from files of any program that is known, recognised by what is in them.

mod container;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use self::container::Container;
use crate::file_reading::{FileReading, Item, Tally};
use crate::input::{Counted, Counter};
use crate::jsonl;
use crate::options::OnProgress;
use crate::read_error::ReadError;
use crate::source::{FirstLine, Source, foreign, jan};

/// Reads chats from files, archives and folders, and hands them to `each`, which ends it all by `false`.
///
/// Nothing is written. Only one chat is in memory at a time. Dates that a chat needs are those of `zone`.
pub fn read(
    files: &[PathBuf],
    zone: &TimeZone,
    progress: &mut OnProgress<'_>,
    each: &mut dyn FnMut(Item) -> bool,
) -> Result<Tally, ReadError> {
    let mut total = 0;
    for file in files {
        total += container::size(file).map_err(|error| ReadError::input(&shown(file), error))?;
    }
    let counter = Counter::default();
    let mut reading = FileReading {
        zone,
        counter: counter.clone(),
        total,
        tally: Tally::default(),
        progress,
        each,
    };
    for file in files {
        read_path(file, &mut reading)?;
    }
    Ok(reading.tally)
}

/// A file as the user knows it: by its name.
fn shown(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn read_path(path: &Path, reading: &mut FileReading<'_>) -> Result<(), ReadError> {
    let name = shown(path);
    let opened = if path.is_dir() {
        Container::folder(path)
    } else if container::is_archive(path).map_err(|error| ReadError::input(&name, error))? {
        Container::archive(path, &reading.counter)
    } else if jan::is_part(path) {
        // Its other part is beside it.
        Container::folder(path.parent().unwrap_or(Path::new(".")))
    } else {
        let file = File::open(path).map_err(|error| ReadError::input(&name, error))?;
        return read_stream(&name, Counted::of(file, &reading.counter), reading);
    };
    let mut container = opened.map_err(|error| ReadError::input(&name, error))?;
    let chosen = container.chosen();
    if chosen.is_empty() {
        return Err(ReadError::Unknown { file: name });
    }
    for entry in chosen {
        let inside = format!("{} in {name}", entry.name());
        match entry {
            container::Entry::File(file) => {
                let input = container.open(&file, &reading.counter);
                let input = input.map_err(|error| ReadError::input(&inside, error))?;
                read_stream(&inside, input, reading)?;
            }
            container::Entry::JanThread { thread, messages } => {
                let open = |container: &mut Container, file: &str| {
                    let input = container.open(file, &reading.counter);
                    let mut text = Vec::new();
                    let read =
                        input.and_then(|mut input| io::Read::read_to_end(&mut input, &mut text));
                    read.map(|_| text)
                        .map_err(|error| ReadError::input(&inside, error))
                };
                let thread = open(&mut container, &thread)?;
                let messages = match messages {
                    Some(messages) => open(&mut container, &messages)?,
                    None => Vec::new(),
                };
                reading.counter.begin_chat();
                let chat = jan::chat(&inside, &thread, &messages, reading.zone)?;
                reading.foreign(Source::Jan, chat)?;
            }
        }
    }
    Ok(())
}

/// One file, whose first bytes say what it is.
fn read_stream<'a>(
    name: &str,
    input: Counted<'a>,
    reading: &mut FileReading<'_>,
) -> Result<(), ReadError> {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let begin = input
        .fill_buf()
        .map_err(|error| ReadError::input(name, error))?;
    let begin = begin
        .strip_prefix(b"\xef\xbb\xbf")
        .map_or((begin, 0), |rest| (rest, 3));
    let (begin, mark) = begin;
    let unknown = || ReadError::Unknown {
        file: name.to_owned(),
    };
    let first_line = begin.split(|byte| *byte == b'\n').next().unwrap_or(begin);
    let first = serde_json::from_slice::<FirstLine>(first_line).unwrap_or_default();
    let is_json = matches!(begin.trim_ascii_start().first(), Some(b'{' | b'['));
    let is_empty = begin.is_empty();
    input.consume(mark);
    if first.format.as_deref() == Some(jsonl::NAME) {
        reading.source(Source::Goldcrest);
        return jsonl::read(name, &mut input, reading);
    }
    if is_empty {
        return Err(ReadError::Empty {
            file: name.to_owned(),
        });
    }
    if !is_json {
        return Err(unknown());
    }
    foreign::read(name, input, reading)
}

//! Reads chats from files in a child, which sends the records that it finds.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chat::Failure;
use chat_files::{Item, ItemPart, ItemParts, OnProgress, ReadError, Tally};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use system::{frames, limits};

use super::{Task, Worker, WorkerFault};

/// CPU seconds of a child: a base, and for each MiB of the files.
const LEAST_SECONDS: u64 = 60;
const SECONDS_PER_MIB: u64 = 1;

/// Interval between two progress reports, with which everything found is sent.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum bytes of the frames of one chat, which is in memory here as a whole.
const LARGEST_CHAT: usize = 512 << 20;

/// A message from the child.
#[derive(Serialize, Deserialize)]
enum ReadFrame {
    /// Progress, in bytes of the files.
    At(u64, u64),
    Part(ItemPart),
    End(Tally),
    Failed(ReadError),
}

/// Reads files in a child process, and passes their items to `add`; `None` if `progress` cancelled it: the child has
/// then ended, too.
pub fn read(
    files: &[PathBuf],
    progress: &mut OnProgress<'_>,
    add: &mut dyn FnMut(Item) -> Result<(), Failure>,
) -> Result<Option<Tally>, Failure> {
    let mut name = files.first().map_or_else(String::new, |file| shown(file));
    let task = Task::Read {
        files: files.iter().map(OsString::from).collect(),
    };
    let read =
        Worker::start(&task).and_then(|mut worker| receive(&mut worker, &mut name, progress, add));
    match read {
        Ok(Received::All(tally)) => Ok(Some(*tally)),
        Ok(Received::Cancelled) | Err(WorkerFault::Interrupted) => Ok(None),
        Ok(Received::Refused(failure)) => Err(failure),
        Ok(Received::Failed(error)) => {
            let quoted = error.without_quotation();
            tracing::warn!(error = quoted, "files cannot be imported");
            Err(not_read(&error.to_string()))
        }
        Err(fault) => {
            tracing::warn!(%fault, "files cannot be imported");
            Err(not_read(&format!("{name} cannot be read: {fault}.")))
        }
    }
}

fn not_read(sentence: &str) -> Failure {
    Failure::other(format!("{sentence} Nothing was imported."))
}

fn shown(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

/// End of a reading whose child did not fail.
enum Received {
    All(Box<Tally>),
    Failed(ReadError),
    /// `add` refused an item.
    Refused(Failure),
    Cancelled,
}

fn receive(
    worker: &mut Worker,
    name: &mut String,
    progress: &mut OnProgress<'_>,
    add: &mut dyn FnMut(Item) -> Result<(), Failure>,
) -> Result<Received, WorkerFault> {
    let (mut done, mut total) = (0, 0);
    let mut parts = ItemParts::default();
    let mut of_chat = 0;
    loop {
        let Some(frame) = worker.receive(&mut || progress(done, total))? else {
            return Ok(Received::Cancelled);
        };
        of_chat += frame.len();
        if of_chat > LARGEST_CHAT {
            return Err(WorkerFault::Size);
        }
        let frame = serde_json::from_slice(&frame).map_err(|_| WorkerFault::Garbled)?;
        match frame {
            ReadFrame::At(at, of) => {
                (done, total) = (at, of);
                if !progress(done, total) {
                    return Ok(Received::Cancelled);
                }
            }
            ReadFrame::Part(part) => {
                let Some(item) = parts.add(part).map_err(|_| WorkerFault::Garbled)? else {
                    continue;
                };
                of_chat = 0;
                if let Item::File(begun) = &item {
                    name.clone_from(begun);
                }
                if let Err(failure) = add(item) {
                    return Ok(Received::Refused(failure));
                }
            }
            ReadFrame::End(tally) => return Ok(Received::All(Box::new(tally))),
            ReadFrame::Failed(error) => return Ok(Received::Failed(error)),
        }
    }
}

/// Serves the child's side.
pub fn serve(files: Vec<OsString>, out: &mut dyn Write) -> io::Result<()> {
    let files: Vec<PathBuf> = files.into_iter().map(PathBuf::from).collect();
    let frame = match read_here(&files, out)? {
        Ok(tally) => ReadFrame::End(tally),
        Err(error) => ReadFrame::Failed(error),
    };
    out.write_all(&frames::of(&frame)?)
}

/// Reads, and sends the items. The outer error is that of sending.
fn read_here(files: &[PathBuf], out: &mut dyn Write) -> io::Result<Result<Tally, ReadError>> {
    let bytes = match chat_files::size(files) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Err(error)),
    };
    limits::set_seconds(LEAST_SECONDS + SECONDS_PER_MIB * (bytes >> 20))?;
    let mut sent = Ok(());
    let mut next = Instant::now();
    let out = std::cell::RefCell::new(out);
    let send = |frame: &ReadFrame| -> io::Result<()> {
        let frame = frames::of(frame)?;
        out.borrow_mut().write_all(&frame)
    };
    let read = chat_files::read(
        files,
        &TimeZone::system(),
        // A child is cancelled only by killing it.
        &mut |done, total| {
            let now = Instant::now();
            if now < next {
                return true;
            }
            next = now + PAUSE;
            let at = send(&ReadFrame::At(done, total));
            at.and_then(|()| out.borrow_mut().flush()).is_ok()
        },
        &mut |item| {
            sent = parts_of(item).try_for_each(|part| send(&ReadFrame::Part(part)));
            sent.is_ok()
        },
    );
    sent?;
    Ok(read)
}

fn parts_of(item: Item) -> Box<dyn Iterator<Item = ItemPart>> {
    match item {
        Item::Chat(whole) => {
            let chat = ItemPart::Chat(whole.chat, whole.messages.len());
            let messages = whole.messages.into_iter().map(ItemPart::Message);
            Box::new(std::iter::once(chat).chain(messages))
        }
        Item::File(name) => Box::new(std::iter::once(ItemPart::File(name))),
        Item::Folder(folder) => Box::new(std::iter::once(ItemPart::Folder(folder))),
        Item::Preset(preset) => Box::new(std::iter::once(ItemPart::Preset(preset))),
    }
}

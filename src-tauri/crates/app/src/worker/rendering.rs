//! Renders chats as a document in a child, which receives them one at a time.

use std::io::{self, Write};
use std::sync::mpsc::Receiver;

use chat::Failure;
use chat_files::{
    Document, DocumentKind, Item, ItemPart, ItemParts, Misplaced, Render, WriteError, WriteOptions,
};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use store::WholeChat;
use system::frames::{self, Framed};
use system::limits;

use super::{Task, Worker, WorkerFault};

/// CPU seconds of a child for one chat: a base, and for each MiB of it; answers take about 5 per MiB, and adversarial
/// ones 30.
const LEAST_SECONDS: u64 = 20;
const SECONDS_PER_MIB: u64 = 60;
/// Maximum size of a rendered chat: bytes, and a multiple of its records.
const LEAST_OUTPUT: usize = 64 << 20;
const MOST_GROWTH: usize = 64;
/// Maximum bytes of a printed chat: the window must hold them.
const LARGEST_PRINTED: usize = 64 << 20;

/// A request to the child. It answers the titles, each complete chat and the end with pieces of the document and an
/// empty frame.
#[derive(Serialize, Deserialize)]
enum RenderFrame {
    Titles(Vec<String>),
    Part(Box<ItemPart>),
    End,
}

/// A document that a child process renders.
pub struct Rendering {
    kind: DocumentKind,
    thinking: bool,
    worker: Option<Worker>,
}

impl Rendering {
    /// Makes an empty document.
    pub fn new(kind: DocumentKind, thinking: bool) -> Self {
        Self {
            kind,
            thinking,
            worker: None,
        }
    }

    /// Sends frames, and copies the rendered output.
    fn render(
        &mut self,
        request: impl Iterator<Item = RenderFrame>,
        out: &mut dyn Write,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Interruption> {
        let worker = match &mut self.worker {
            Some(worker) => worker,
            none => none.insert(Worker::start(&Task::Render {
                kind: self.kind,
                thinking: self.thinking,
            })?),
        };
        let mut sent = 0;
        for frame in request {
            sent += worker.send(&frame)?;
        }
        let mut left = LEAST_OUTPUT.saturating_add(sent.saturating_mul(MOST_GROWTH));
        loop {
            let Some(piece) = worker.receive(go_on)? else {
                return Err(Interruption::Cancelled);
            };
            if piece.is_empty() {
                return Ok(());
            }
            left = left.checked_sub(piece.len()).ok_or(WorkerFault::Size)?;
            out.write_all(&piece).map_err(Interruption::Output)?;
        }
    }

    /// Drops the child after a fault, as it is useless then.
    fn ended(&mut self, interruption: Interruption, what: &str) -> WriteError {
        self.worker = None;
        match interruption {
            Interruption::Cancelled | Interruption::Fault(WorkerFault::Interrupted) => {
                WriteError::Cancelled
            }
            Interruption::Output(error) => WriteError::Output(error),
            Interruption::Fault(fault) => {
                tracing::warn!(%fault, "a chat could not be rendered");
                WriteError::Rendering(format!("{what} cannot be rendered: {fault}."))
            }
        }
    }
}

/// Reasons for which a request was not answered.
enum Interruption {
    Cancelled,
    Output(io::Error),
    Fault(WorkerFault),
}

impl From<WorkerFault> for Interruption {
    fn from(fault: WorkerFault) -> Self {
        Self::Fault(fault)
    }
}

impl Render for Rendering {
    fn begin(&mut self, out: &mut dyn Write, titles: &[String]) -> Result<(), WriteError> {
        let titles = std::iter::once(RenderFrame::Titles(titles.to_vec()));
        let rendered = self.render(titles, out, &mut || true);
        rendered.map_err(|interruption| self.ended(interruption, "The list of the chats"))
    }

    fn chat(
        &mut self,
        out: &mut dyn Write,
        whole: &WholeChat,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), WriteError> {
        let parts = ItemPart::of_chat(whole).map(|part| RenderFrame::Part(Box::new(part)));
        self.render(parts, out, go_on).map_err(|interruption| {
            let name = format!("The chat “{}”", whole.chat.title);
            self.ended(interruption, &name)
        })
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<(), WriteError> {
        let end = std::iter::once(RenderFrame::End);
        let rendered = self.render(end, out, &mut || true);
        rendered.map_err(|interruption| self.ended(interruption, "The end of the document"))
    }
}

/// Renders a chat as HTML for the page that prints it.
pub fn printed(whole: &WholeChat, thinking: bool) -> Result<String, Failure> {
    let mut out = Vec::new();
    let too_long = || {
        Failure::other("This chat is too long to be printed. Export it as HTML, and print that.")
    };
    let mut limited = Limited {
        out: &mut out,
        left: LARGEST_PRINTED,
    };
    let rendered =
        Rendering::new(DocumentKind::Print, thinking).chat(&mut limited, whole, &mut || true);
    rendered.map_err(|error| match error {
        WriteError::Output(_) => too_long(),
        error => Failure::other(error.to_string()),
    })?;
    String::from_utf8(out).map_err(|error| Failure::other(error.to_string()))
}

struct Limited<'a> {
    out: &'a mut Vec<u8>,
    left: usize,
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(bytes.len());
        self.left = left.ok_or(io::ErrorKind::FileTooLarge)?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Serves the child's side.
pub fn serve(
    kind: DocumentKind,
    thinking: bool,
    requests: &Receiver<Vec<u8>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let options = WriteOptions {
        thinking,
        zone: TimeZone::system(),
    };
    let mut document = Document::new(kind, options);
    let mut parts = ItemParts::default();
    let mut bytes = 0;
    for request in requests {
        bytes += request.len() as u64;
        limits::set_seconds(LEAST_SECONDS + SECONDS_PER_MIB * (bytes >> 20))?;
        let request = serde_json::from_slice(&request)?;
        let mut pieces = io::BufWriter::with_capacity(1 << 16, Framed { out: &mut *out });
        let rendered = match request {
            RenderFrame::Titles(titles) => document.begin(&mut pieces, &titles),
            RenderFrame::End => document.end(&mut pieces),
            RenderFrame::Part(part) => match parts.add(*part).map_err(io::Error::other)? {
                None => continue,
                Some(Item::Chat(whole)) => document.chat(&mut pieces, &whole, &mut || true),
                Some(_) => return Err(io::Error::other(Misplaced)),
            },
        };
        rendered.map_err(io::Error::other)?;
        pieces.flush()?;
        drop(pieces);
        frames::write(out, b"")?;
        out.flush()?;
        bytes = 0;
    }
    Ok(())
}

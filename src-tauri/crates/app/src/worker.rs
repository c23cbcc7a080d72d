//! Child processes of this program that parse untrusted content, with limits: files that are imported, and chats that
//! are rendered as a document. The app itself parses none of it. It takes records from the child that reads, sends
//! records to the child that renders, and survives whatever happens to them.
//!
//! Both directions have frames (`system::frames`). The first that a child reads is its [`Task`]; before its own first
//! one it writes `READY`. It ends when its stdin does, whatever it is doing, and so with its parent. It limits its
//! own resources (`worker/child.rs`), and its parent kills it if it sends nothing for [`TIMEOUT`], or is no longer
//! needed.

mod child;
mod reading;
mod rendering;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use chat_files::DocumentKind;
use serde::{Deserialize, Serialize};
use system::child::{Call, Child, ChildError, ChildFault, StreamingChild};
use system::frames;

pub use child::serve;
pub use reading::read;
pub use rendering::{Rendering, printed};

/// Maximum silence of a child. Its own limit of CPU time comes first when it computes; this one is for files that do
/// not arrive, as from a network that is gone.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Bytes that a child may allocate, beside those of the program.
const MEMORY: u64 = 1 << 30;

/// The work of a child.
#[derive(Serialize, Deserialize)]
enum Task {
    /// Reads chats from files, archives and folders.
    Read { files: Vec<OsString> },
    /// Renders chats, which follow.
    Render { kind: DocumentKind, thinking: bool },
}

/// The reason for which a child did not finish.
#[derive(Debug, thiserror::Error)]
enum WorkerFault {
    #[error("it needs more memory than it may take ({} GB)", MEMORY >> 30)]
    Memory,
    #[error("it takes too long")]
    Time,
    #[error("it is nested too deeply")]
    Depth,
    #[error("it becomes too large")]
    Size,
    #[error("its process could not be started: {0}")]
    NotRun(io::Error),
    #[error("its process was ended")]
    Interrupted,
    #[error("its process failed ({0})")]
    Crashed(std::process::ExitStatus),
    #[error("its process sent unreadable data")]
    Garbled,
}

/// A child at work. It is killed when this is dropped.
struct Worker(StreamingChild);

impl Worker {
    fn start(task: &Task) -> Result<Self, WorkerFault> {
        Self::start_in(&program().map_err(WorkerFault::NotRun)?, task)
    }

    fn start_in(program: &Child, task: &Task) -> Result<Self, WorkerFault> {
        let call = Call {
            #[cfg(test)]
            variable: Some((tests::VARIABLE, "1")),
            ..Call::default()
        };
        let mut worker = Self(program.stream(call).map_err(fault)?);
        worker.send(task)?;
        let ready = worker.0.receive_ready(TIMEOUT, &mut || true);
        ready.map_err(fault)?;
        Ok(worker)
    }

    /// Sends a frame; returns its bytes.
    fn send(&mut self, frame: &impl Serialize) -> Result<usize, WorkerFault> {
        let frame = frames::of(frame).map_err(|_| WorkerFault::Size)?;
        self.0.send(&frame).map_err(fault)?;
        Ok(frame.len())
    }

    /// Returns the next frame; `None` if `go_on` returned false.
    fn receive(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Vec<u8>>, WorkerFault> {
        match self.0.receive_frame(TIMEOUT, go_on) {
            // Ctrl+C in a terminal ends a child, too.
            Err(_) if !go_on() => Ok(None),
            received => received.map_err(fault),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill();
    }
}

#[cfg(not(test))]
fn program() -> io::Result<Child> {
    program_of("worker")
}

/// Returns the app's program with a subcommand.
pub fn program_of(subcommand: &str) -> io::Result<Child> {
    let program = program_with(vec![subcommand.into()])?;
    // The tests of the shell are a program of their own, one folder below the app.
    let tests = program.program.parent();
    let tests = tests.filter(|folder| cfg!(debug_assertions) && folder.ends_with("deps"));
    let app = tests.map(|tests| tests.with_file_name("goldcrest"));
    Ok(Child {
        program: app.unwrap_or(program.program),
        ..program
    })
}

/// The program of the tests is not the app's: there a test does the work.
#[cfg(test)]
use tests::program;

fn program_with(leading: Vec<OsString>) -> io::Result<Child> {
    Ok(Child {
        program: std::env::current_exe()?,
        leading,
        timeout: TIMEOUT,
        output_limit: 0,
    })
}

/// Interprets a child's end. Its stderr may quote a chat, and is not logged.
fn fault(error: ChildError) -> WorkerFault {
    if error.is_out_of_time() {
        return WorkerFault::Time;
    }
    if error.is_out_of_memory() {
        return WorkerFault::Memory;
    }
    if error.is_too_deep() {
        return WorkerFault::Depth;
    }
    match error.fault {
        ChildFault::NotRun(error) => WorkerFault::NotRun(error),
        ChildFault::TimedOut => WorkerFault::Time,
        ChildFault::Interrupted => WorkerFault::Interrupted,
        ChildFault::TooMuchOutput => WorkerFault::Garbled,
        ChildFault::Crashed(status) => WorkerFault::Crashed(status),
    }
}

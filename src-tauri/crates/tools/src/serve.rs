//! The child's part: computes within limits.

use std::io::{self, BufWriter, Write};
use std::sync::mpsc::Receiver;
use std::thread;

use jiff::tz::TimeZone;
use system::frames::{self, READY};
use system::limits;

use crate::calculator::calculate;
use crate::process::{Computation, MEMORY};
use crate::python;

/// Stack of the computing thread. fend takes 50 kB for each level of an expression if it is not optimised.
const STACK: usize = 64 << 20;
/// CPU seconds of a child. The tools have limits of their own that are lower, and say what happened.
const SECONDS: u64 = 15;

/// Does the work that stdin describes: the main function of a child.
///
/// # Errors
/// Fails if the limits cannot be set, or the pipes not be used.
pub fn serve() -> io::Result<()> {
    limits::set_stack()?;
    limits::set_seconds(SECONDS)?;
    let frames = frames::of_stdin()?;
    let computation = frames.recv().map_err(io::Error::other)?;
    let computation: Computation = serde_json::from_slice(&computation)?;
    let working = thread::Builder::new().stack_size(STACK).spawn(move || {
        // The stack is allocated now, and does not count. The time zone is in a file.
        limits::set_memory(MEMORY as u64)?;
        let _zone = TimeZone::system();
        // A kernel without seccomp is no reason to compute nothing.
        #[cfg(target_os = "linux")]
        let _ = system::confine::confine(&[]);
        let mut out = BufWriter::new(io::stdout());
        out.write_all(&[READY])?;
        out.flush()?;
        perform(computation, &frames, &mut out)?;
        out.flush()
    })?;
    let worked = working.join();
    worked.map_err(|_| io::Error::other("the tool panicked"))?
}

fn perform(
    computation: Computation,
    frames: &Receiver<Vec<u8>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match computation {
        Computation::Calculate { expression } => {
            out.write_all(&frames::of(&calculate(&expression))?)
        }
        Computation::Python { code, functions } => python::serve(code, &functions, frames, out),
    }
}

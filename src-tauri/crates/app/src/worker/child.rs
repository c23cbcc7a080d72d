//! The child's part: performs a task within limits.

use std::io::{self, BufWriter, Write};
use std::thread;

use system::frames::{self, READY};
use system::limits;

use super::{MEMORY, Task, reading, rendering};

/// Stack of the working thread, which does not depend on the system's default for the main thread.
const STACK: usize = 8 << 20;

/// Performs the task on stdin. The end of stdin ends this process, whatever it is doing.
pub fn serve() -> io::Result<()> {
    limits::set_memory(MEMORY)?;
    limits::set_stack()?;
    let frames = frames::of_stdin()?;
    let task = frames.recv().map_err(io::Error::other)?;
    let task: Task = serde_json::from_slice(&task)?;
    let working = thread::Builder::new().stack_size(STACK).spawn(move || {
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout());
        out.write_all(&[READY])?;
        out.flush()?;
        match task {
            Task::Read { files } => reading::serve(files, &mut out)?,
            Task::Render { kind, thinking } => {
                rendering::serve(kind, thinking, &frames, &mut out)?;
            }
        }
        out.flush()
    })?;
    let worked = working.join();
    worked.map_err(|_| io::Error::other("the worker panicked"))?
}

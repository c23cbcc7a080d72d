//! One download: a child process.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{self, ChildStdin};
use std::sync::{Mutex, PoisonError};
use std::thread;

use system::companion;

use crate::event::DownloadEvent;
use crate::request::{DownloadRequest, PAUSE};

/// Length limit of a line of the child; a longer one is not an event.
const LONGEST_LINE: u64 = 1 << 16;

/// Returns the path of `goldcrest-fetch` beside the running program.
///
/// # Errors
/// Fails if there is none.
pub fn program() -> io::Result<PathBuf> {
    companion::path("goldcrest-fetch", "downloads models")
}

/// A running download. Dropping it pauses it; what was written stays for a resume.
#[derive(Debug)]
pub struct Download {
    /// `None` after a pause.
    stdin: Mutex<Option<ChildStdin>>,
}

impl Download {
    /// Starts the program, and reports its events on a separate thread. The last report is `Done`, `Paused` or
    /// `Failed`, however the child ends.
    ///
    /// # Errors
    /// Fails if the program cannot be started, or a path in the request is not UTF-8.
    pub fn start(
        program: &Path,
        request: &DownloadRequest,
        on_event: impl Fn(DownloadEvent) + Send + 'static,
    ) -> io::Result<Self> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        let mut child = companion::command(program).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::Error::other("the child has no standard streams"));
        };
        thread::spawn(move || report(child, stdout, &on_event));
        // If the child ended before it has read the line, its last event shows it.
        let _ = stdin.write_all(line.as_bytes());
        Ok(Self {
            stdin: Mutex::new(Some(stdin)),
        })
    }

    /// Pauses it; `Paused` follows. What was written stays for a resume.
    pub fn pause(&self) {
        let stdin = self
            .stdin
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut stdin) = stdin {
            let _ = writeln!(stdin, "{PAUSE}");
        }
    }
}

fn report(mut child: process::Child, stdout: impl Read, on_event: &impl Fn(DownloadEvent)) {
    let mut was_last = false;
    companion::read_lines(stdout, LONGEST_LINE, |line| {
        // Other lines are skipped: the child's last event decides.
        if let Ok(event) = serde_json::from_slice::<DownloadEvent>(line)
            && !was_last
        {
            was_last = event.is_last();
            on_event(event);
        }
        true
    });
    let status = child.wait();
    if !was_last {
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        on_event(DownloadEvent::Failed {
            message: format!(
                "The download stopped unexpectedly ({how}). What was downloaded is kept: resume it."
            ),
            can_resume: true,
        });
    }
}

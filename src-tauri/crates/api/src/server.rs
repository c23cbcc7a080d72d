//! The program, as a child process of the one that has the model.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde::Serialize;
use system::companion;

use crate::line::{ApiConfig, FromServer, ToServer};

/// Length limit of a line, in bytes: a body of a client at most, each character of which may be escaped.
const LONGEST_LINE: u64 = 128 << 20;

/// Returns the path of `goldcrest-serve` beside the running program.
///
/// # Errors
/// Fails if there is no such file.
pub fn program() -> io::Result<PathBuf> {
    companion::path("goldcrest-serve", "serves the local API")
}

/// The running program. Dropping it ends the program.
pub struct ApiServer(ApiSender);

/// Sends lines to the program. Clones send to the same one.
#[derive(Clone)]
pub struct ApiSender(Sender<Option<Vec<u8>>>);

impl ApiServer {
    /// Starts the program. Its lines are passed to `on_line` on a thread of their own; `None` is the end.
    ///
    /// # Errors
    /// Fails if the program or a thread cannot be started.
    pub fn start(
        program: &Path,
        config: &ApiConfig,
        mut on_line: impl FnMut(&ApiSender, Option<FromServer>) + Send + 'static,
    ) -> io::Result<ApiServer> {
        let mut command = companion::command(program);
        // It needs no variable, and some have passwords. Windows cannot open sockets without its own.
        if cfg!(unix) {
            command.env_clear();
        }
        let mut child = command.spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::Error::other("the child has no standard streams"));
        };
        let (lines, to_write) = channel();
        let sender = ApiSender(lines);
        sender.write(config);
        thread::Builder::new()
            .name("api lines".to_owned())
            .spawn(move || write(stdin, &to_write))?;
        let answers = sender.clone();
        thread::Builder::new()
            .name("api".to_owned())
            .spawn(move || read(child, stdout, |line| on_line(&answers, line)))?;
        Ok(ApiServer(sender))
    }

    /// Has other clients ask from now on. The port stays.
    pub fn configure(&self, config: ApiConfig) {
        self.0.send(&ToServer::Configure(config));
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.0.0.send(None);
    }
}

impl ApiSender {
    /// Sends a line. Does not wait.
    pub fn send(&self, line: &ToServer) {
        self.write(line);
    }

    fn write(&self, line: &impl Serialize) {
        let Ok(mut line) = serde_json::to_vec(line) else {
            return;
        };
        line.push(b'\n');
        // An error means that the program has ended, which its reader reports.
        let _ = self.0.send(Some(line));
    }
}

/// Writes lines until the end, and closes the pipe.
fn write(mut stdin: impl Write, lines: &Receiver<Option<Vec<u8>>>) {
    while let Ok(Some(line)) = lines.recv() {
        if stdin.write_all(&line).is_err() {
            return;
        }
    }
}

fn read(mut child: Child, stdout: ChildStdout, mut on_line: impl FnMut(Option<FromServer>)) {
    companion::read_lines(stdout, LONGEST_LINE, |line| {
        let read = serde_json::from_slice(line)
            .inspect_err(|error| tracing::error!(%error, "goldcrest-serve wrote a foreign line"));
        read.map(|line| on_line(Some(line))).is_ok()
    });
    // It has ended, or what it writes cannot be trusted.
    let _ = child.kill();
    let status = child.wait();
    tracing::info!(?status, "goldcrest-serve has ended");
    on_line(None);
}

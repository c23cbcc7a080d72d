//! Runs hidden subcommands of this program as child processes, for work that may crash, hang or exhaust memory: GPU
//! drivers, untrusted files and chats, and candle.

mod stream;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

pub use stream::StreamingChild;

/// Bytes of the tail of stderr that are kept.
const STDERR_LIMIT: usize = 4000;
/// Timeout for reading the stderr of a child that has ended.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// A program to run, and its limits.
#[derive(Debug, Clone)]
pub struct Child {
    pub program: PathBuf,
    /// Arguments before those of a call.
    pub leading: Vec<OsString>,
    pub timeout: Duration,
    /// Bytes that it may write to stdout.
    pub output_limit: usize,
}

/// Arguments of one run of a child.
#[derive(Debug, Default)]
pub struct Call<'a> {
    pub arguments: &'a [OsString],
    /// One additional environment variable.
    pub variable: Option<(&'a str, &'a str)>,
}

/// Error of a child that gave no output.
#[derive(Debug)]
pub struct ChildError {
    pub fault: ChildFault,
    /// Tail of its stderr.
    pub stderr: String,
}

#[derive(Debug)]
pub enum ChildFault {
    /// The program could not be started, or not be waited for.
    NotRun(io::Error),
    /// It exceeded its time limit and was killed.
    TimedOut,
    /// Another process ended it.
    Interrupted,
    /// It exited with an error.
    Crashed(ExitStatus),
    /// It exceeded its output limit and was killed.
    TooMuchOutput,
}

impl ChildError {
    /// Returns whether it exceeded its time limit, or its limit of CPU time.
    pub fn is_out_of_time(&self) -> bool {
        match self.fault {
            ChildFault::TimedOut => true,
            ChildFault::Crashed(status) => is_out_of_cpu_time(status),
            _ => false,
        }
    }

    /// Returns whether an allocation failed. Rust's runtime then writes this message.
    pub fn is_out_of_memory(&self) -> bool {
        self.crashed_saying("memory allocation of")
    }

    /// Returns whether its stack was too small. Rust's runtime then writes this message.
    pub fn is_too_deep(&self) -> bool {
        self.crashed_saying("overflowed its stack")
    }

    fn crashed_saying(&self, message: &str) -> bool {
        matches!(self.fault, ChildFault::Crashed(_)) && self.stderr.contains(message)
    }
}

impl Child {
    /// Runs the program once and returns what it writes to stdout.
    pub fn run(&self, call: Call<'_>) -> Result<Vec<u8>, ChildError> {
        let not_run = |error| ChildError {
            fault: ChildFault::NotRun(error),
            stderr: String::new(),
        };
        let mut child = self.spawn(&call, Stdio::null()).map_err(not_run)?;
        let stderr = stderr_of(&mut child);
        let output = self.output_of(&mut child);
        let ended = match output {
            Ok((output, deadline)) => {
                status(&mut child, deadline).and_then(|status| match status {
                    status if was_interrupted(status) => Err(ChildFault::Interrupted),
                    status if !status.success() => Err(ChildFault::Crashed(status)),
                    _ => Ok(output),
                })
            }
            Err(fault) => {
                end(&mut child);
                Err(fault)
            }
        };
        ended.map_err(|fault| ChildError {
            fault,
            stderr: stderr.recv_timeout(STDERR_TIMEOUT).unwrap_or_default(),
        })
    }

    fn spawn(&self, call: &Call<'_>, stdin: Stdio) -> io::Result<process::Child> {
        Command::new(&self.program)
            .args(&self.leading)
            .args(call.arguments)
            .envs(call.variable)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Returns everything that it writes, and the deadline for its end.
    fn output_of(&self, child: &mut process::Child) -> Result<(Vec<u8>, Instant), ChildFault> {
        let (sender, output) = channel();
        let (limit, deadline) = (self.output_limit, Instant::now() + self.timeout);
        if let Some(stdout) = child.stdout.take() {
            // An error means that the receiver is gone.
            thread::spawn(move || sender.send(read(stdout, limit)));
        }
        let output = output
            .recv_timeout(self.timeout)
            .map_err(|_| ChildFault::TimedOut)?;
        if output.len() > limit {
            return Err(ChildFault::TooMuchOutput);
        }
        Ok((output, deadline))
    }
}

/// Reads until the end, or one byte past the limit: the pipe then stays full until the child is killed. After a read
/// error, what came before it counts as the output.
fn read(stdout: impl Read, limit: usize) -> Vec<u8> {
    let mut output = Vec::new();
    let more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let _ = stdout.take(more).read_to_end(&mut output);
    output
}

/// Returns the tail of a child's stderr once it has ended.
fn stderr_of(child: &mut process::Child) -> Receiver<String> {
    let (sender, stderr) = channel();
    if let Some(mut from) = child.stderr.take() {
        thread::spawn(move || {
            let (mut tail, mut part) = (Vec::new(), [0; STDERR_LIMIT]);
            while let Ok(read @ 1..) = from.read(&mut part) {
                tail.extend_from_slice(&part[..read]);
                tail.drain(..tail.len().saturating_sub(STDERR_LIMIT));
            }
            let tail = String::from_utf8_lossy(&tail).into_owned();
            // An error means that the receiver is gone.
            let _ = sender.send(tail);
        });
    }
    stderr
}

/// Returns the exit status of a child whose output is complete.
fn status(child: &mut process::Child, deadline: Instant) -> Result<ExitStatus, ChildFault> {
    const PAUSE: Duration = Duration::from_millis(2);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(PAUSE),
            Ok(None) => {
                end(child);
                return Err(ChildFault::TimedOut);
            }
            Err(error) => return Err(ChildFault::NotRun(error)),
        }
    }
}

/// Kills a child. If it has exited by itself meanwhile, that is as good.
fn end(child: &mut process::Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns whether a process was ended from outside, as Ctrl+C in a terminal ends everything that was started there.
#[cfg(unix)]
fn was_interrupted(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const HANGUP_INTERRUPT_TERMINATE: [i32; 3] = [1, 2, 15];
    status
        .signal()
        .is_some_and(|signal| HANGUP_INTERRUPT_TERMINATE.contains(&signal))
}

#[cfg(not(unix))]
fn was_interrupted(_: ExitStatus) -> bool {
    false
}

#[cfg(unix)]
fn is_out_of_cpu_time(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(rustix::process::Signal::XCPU.as_raw())
}

#[cfg(not(unix))]
fn is_out_of_cpu_time(_: ExitStatus) -> bool {
    false
}

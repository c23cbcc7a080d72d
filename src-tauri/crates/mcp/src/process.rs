//! The process of a server, with those that it started.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep};

use crate::launch::Launch;

/// Time in which a process may end by itself once its stdin is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(300);
/// Time after the signal that asks it to end, before the one that ends it.
#[cfg(unix)]
const TERM_TIMEOUT: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(5);

/// A running process and its group. Dropping it kills them; [`ServerProcess::end`] also waits for it.
pub struct ServerProcess {
    child: Box<dyn ChildWrapper>,
    /// Files that it needs.
    _launch: Launch,
}

/// The ends of its pipes.
pub struct Pipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

impl ServerProcess {
    /// Starts it. Must be called on the thread that lives as long as the servers: bubblewrap ends them with that thread.
    ///
    /// # Errors
    /// Fails if the system does not start it.
    pub fn spawn(launch: Launch) -> io::Result<(ServerProcess, Pipes)> {
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.args)
            .env_clear()
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        let mut command = CommandWrap::from(command);
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        let mut child = command.spawn()?;
        let pipes = (
            child.stdin().take(),
            child.stdout().take(),
            child.stderr().take(),
        );
        let process = ServerProcess {
            child,
            _launch: launch,
        };
        match pipes {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((
                process,
                Pipes {
                    stdin,
                    stdout,
                    stderr,
                },
            )),
            _ => Err(io::Error::other("it has no pipes")),
        }
    }

    /// Ends the process and its group, after its stdin was closed: waits a moment, asks, and kills.
    pub async fn end(mut self) -> Option<ExitStatus> {
        if !self.exits_within(CLOSE_TIMEOUT).await {
            self.ask_to_end().await;
        }
        // Others of the group may be left. The group exists until its first process, which has the number, was waited for.
        let _ = self.child.start_kill();
        self.child.wait().await.ok()
    }

    #[cfg(unix)]
    async fn ask_to_end(&mut self) {
        let term = rustix::process::Signal::TERM;
        // An error means that it has ended.
        let _ = self.child.signal(term.as_raw());
        self.exits_within(TERM_TIMEOUT).await;
    }

    /// Does nothing: this system has no such signal.
    #[cfg(not(unix))]
    async fn ask_to_end(&mut self) {}

    async fn exits_within(&mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while !self.has_exited() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(PAUSE).await;
        }
        true
    }

    /// Returns whether the process has exited, without giving its number back to the system.
    #[cfg(unix)]
    fn has_exited(&mut self) -> bool {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        let Some(id) = id.and_then(Pid::from_raw) else {
            return true;
        };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(id), options), Ok(None))
    }

    #[cfg(not(unix))]
    fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // After `end` there is no group of this number any more.
        if self.child.id().is_some() {
            let _ = self.child.start_kill();
        }
    }
}

/// Returns how a process ended, as the end of a sentence that begins with "It ended".
pub fn ending(status: Option<ExitStatus>) -> String {
    #[cfg(unix)]
    if let Some(signal) = status.and_then(|it| std::os::unix::process::ExitStatusExt::signal(&it)) {
        return format!("by signal {signal}");
    }
    match status.and_then(|it| it.code()) {
        Some(code) => format!("with exit code {code}"),
        None => "without an exit code".to_owned(),
    }
}

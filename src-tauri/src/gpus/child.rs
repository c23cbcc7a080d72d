//! Asks a child process, because a driver that crashes or hangs takes its process with it.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;

/// Bytes of a child's complaints that are kept.
const COMPLAINTS: usize = 4000;

/// The program that looks at GPUs, and for how long it is waited.
pub struct Child {
    pub program: PathBuf,
    /// What it is told before what it is asked.
    pub leading: Vec<OsString>,
    pub patience: Duration,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAnswer {
    /// The end of a sentence.
    pub reason: String,
    /// What it said to stderr.
    pub complaints: String,
    /// It ended by itself, and not well.
    crashed: bool,
    /// It did not end.
    hung: bool,
}

impl NoAnswer {
    /// Whether the driver may be why.
    pub fn blames_the_driver(&self) -> bool {
        self.crashed || self.hung
    }
}

/// What keeps Vulkan's loader from putting other programs' layers (overlays, recorders) above a driver, and its value.
pub const WITHOUT_LAYERS: (&str, &str) = ("VK_LOADER_LAYERS_DISABLE", "~implicit~");

impl Child {
    /// Runs the subcommand and reads what it prints. Where it crashes it is run once more without layers, to tell
    /// whose fault it is.
    pub fn ask<T: DeserializeOwned>(&self, arguments: &[OsString]) -> Result<T, NoAnswer> {
        self.run(arguments, None).map_err(|no_answer| {
            let crashed = no_answer.crashed;
            if crashed && self.run::<T>(arguments, Some(WITHOUT_LAYERS)).is_ok() {
                let (variable, value) = WITHOUT_LAYERS;
                let reason = format!(
                    "another program's Vulkan layer makes it crash; with {variable}={value} in Goldcrest's environment \
                     it works"
                );
                NoAnswer {
                    reason,
                    ..no_answer
                }
            } else {
                no_answer
            }
        })
    }

    /// Runs the subcommand once, with another variable in its environment.
    pub fn run<T: DeserializeOwned>(
        &self,
        arguments: &[OsString],
        variable: Option<(&str, &str)>,
    ) -> Result<T, NoAnswer> {
        let failed = |reason: String| NoAnswer {
            reason,
            complaints: String::new(),
            crashed: false,
            hung: false,
        };
        let mut child = Command::new(&self.program)
            .args(&self.leading)
            .args(arguments)
            .envs(variable)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("it cannot be looked at ({error})")))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let complaints = thread::spawn(move || read(stderr));
        let (sender, answer) = channel();
        thread::spawn(move || sender.send(read(stdout)));
        let answer = answer.recv_timeout(self.patience);
        if answer.is_err() {
            // It may be gone by itself meanwhile.
            let _ = child.kill();
        }
        let status = child.wait();
        let complaints = complaints.join().unwrap_or_default();
        let (mut crashed, hung) = (false, answer.is_err());
        let reason = match (answer, status) {
            (Err(_), _) => format!("its driver hangs ({} s)", self.patience.as_secs()),
            (_, Err(error)) => format!("it cannot be looked at ({error})"),
            (Ok(_), Ok(status)) if was_ended(status) => "its check was broken off".to_owned(),
            (Ok(_), Ok(status)) if !status.success() => {
                crashed = true;
                format!("its driver crashes ({status})")
            }
            (Ok(text), Ok(_)) => match serde_json::from_str(&text) {
                Ok(answer) => return Ok(answer),
                Err(error) => format!("its check cannot be read ({error})"),
            },
        };
        Err(NoAnswer {
            reason,
            complaints,
            crashed,
            hung,
        })
    }
}

/// Whether somebody has ended a process, as Ctrl+C in a terminal ends all that was started there.
#[cfg(unix)]
fn was_ended(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const HANGUP_INTERRUPT_TERMINATE: [i32; 3] = [1, 2, 15];
    status
        .signal()
        .is_some_and(|signal| HANGUP_INTERRUPT_TERMINATE.contains(&signal))
}

#[cfg(not(unix))]
fn was_ended(_: ExitStatus) -> bool {
    false
}

/// All that comes, as far as it is kept.
fn read(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        // What came until an error is all that there is.
        let _ = from.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last of what a child said.
pub fn last_words(complaints: &str) -> &str {
    let from = complaints.len().saturating_sub(COMPLAINTS);
    let from = (from..complaints.len()).find(|&at| complaints.is_char_boundary(at));
    &complaints[from.unwrap_or(0)..]
}

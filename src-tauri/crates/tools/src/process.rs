//! A process of this program that computes for a tool, with limits.
//!
//! Both directions have frames of JSON. The first that the child reads is its [`Computation`]; before its own first one it
//! writes `READY`. It limits its own time, memory and stack, and ends when its stdin does. Its parent kills it at the
//! deadline, and when the result is no longer wanted.

use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use system::child::{Call, Child, ChildError, ChildFault, StreamingChild};
use system::frames;

use crate::tool::{ToolError, ToolRun};

/// Bytes that a child may allocate, beside those of the program.
pub const MEMORY: usize = 256 << 20;

/// The work of a child.
#[derive(Serialize, Deserialize)]
pub enum Computation {
    /// Evaluates an expression.
    Calculate { expression: String },
    /// Runs a program in Python, which may call these functions.
    Python {
        code: String,
        functions: Vec<String>,
    },
}

/// A child at work. It is killed when this is dropped.
pub struct ToolProcess(StreamingChild);

impl ToolProcess {
    /// Starts a child at some work.
    pub fn start(
        program: &Child,
        computation: &Computation,
        run: &ToolRun<'_>,
    ) -> Result<ToolProcess, ToolError> {
        run.check()?;
        let started = program.stream(Call::default());
        let mut process = ToolProcess(started.map_err(|error| fault(&error))?);
        process.send(computation)?;
        let left = run.deadline.saturating_duration_since(Instant::now());
        let ready = process.0.receive_ready(left, &mut || run.check().is_ok());
        wanted(run, ready)?;
        Ok(process)
    }

    /// Sends a frame.
    pub fn send(&mut self, frame: &impl Serialize) -> Result<(), ToolError> {
        let frame = frames::of(frame).map_err(|_| failed("A value is too large."))?;
        self.0.send(&frame).map_err(|error| fault(&error))
    }

    /// Returns the next frame.
    pub fn receive<T: DeserializeOwned>(&mut self, run: &ToolRun<'_>) -> Result<T, ToolError> {
        let left = run.deadline.saturating_duration_since(Instant::now());
        let received = self.0.receive_frame(left, &mut || run.check().is_ok());
        let frame = wanted(run, received)?.unwrap_or_default();
        serde_json::from_slice(&frame).map_err(|_| failed("Its process sent unreadable data."))
    }
}

impl Drop for ToolProcess {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Returns what was received, or the reason for which the run ended meanwhile: then the child may have ended, too.
fn wanted<T>(run: &ToolRun<'_>, received: Result<T, ChildError>) -> Result<T, ToolError> {
    run.check()?;
    received.map_err(|error| fault(&error))
}

/// Interprets a child's end. Its stderr may quote a chat, and is not shown.
fn fault(error: &ChildError) -> ToolError {
    if error.is_out_of_time() {
        return ToolError::TimedOut;
    }
    if error.is_out_of_memory() {
        return failed(&format!(
            "It needs more memory than it may take ({} MB).",
            MEMORY >> 20
        ));
    }
    if error.is_too_deep() {
        return failed("It is nested too deeply.");
    }
    match &error.fault {
        ChildFault::NotRun(error) => failed(&format!("Its process could not be started: {error}.")),
        // Ctrl+C in a terminal ends a child, too.
        ChildFault::Interrupted => ToolError::Cancelled,
        _ => failed("Its process ended unexpectedly."),
    }
}

fn failed(sentence: &str) -> ToolError {
    ToolError::Failed(sentence.to_owned())
}

#[cfg(test)]
pub mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use std::thread;

    use super::*;
    use crate::serve::serve;
    use crate::tool::ToolOutput;

    /// Argument that makes this program work as a child.
    const SUBCOMMAND: &str = "tool-process";

    /// Returns the program of a child: these tests, of which one does the work.
    pub fn program() -> Child {
        let test = "process::tests::a_child_works";
        Child {
            program: std::env::current_exe().expect("a program"),
            leading: ["--exact", test, "--nocapture", SUBCOMMAND]
                .map(Into::into)
                .into(),
            timeout: Duration::ZERO,
            output_limit: 0,
        }
    }

    #[test]
    fn a_child_works() {
        if std::env::args().any(|argument| argument == SUBCOMMAND) {
            serve().expect("it works");
        }
    }

    /// Runs with a time limit.
    pub fn within<T>(time: Duration, run: impl FnOnce(&ToolRun<'_>) -> T) -> T {
        run(&ToolRun {
            deadline: Instant::now() + time,
            cancel: &AtomicBool::new(false),
            functions: &[],
            chat: None,
        })
    }

    /// Checks that a run that would take long ends within 100 ms once it is cancelled, at one of a few attempts: other
    /// tests keep the processors busy.
    pub fn ended(run: impl Fn(&ToolRun<'_>) -> Result<ToolOutput, ToolError>) {
        let took = (0..5).map(|_| time_to_end(&run));
        let took: Vec<Duration> = took.collect();
        let in_time = took.iter().any(|took| *took < Duration::from_millis(100));
        assert!(in_time, "{took:?}");
    }

    fn time_to_end(run: impl Fn(&ToolRun<'_>) -> Result<ToolOutput, ToolError>) -> Duration {
        let cancel = AtomicBool::new(false);
        let limits = ToolRun {
            deadline: Instant::now() + Duration::from_secs(60),
            cancel: &cancel,
            functions: &[],
            chat: None,
        };
        thread::scope(|scope| {
            let cancelled = scope.spawn(|| {
                thread::sleep(Duration::from_millis(300));
                cancel.store(true, Ordering::Relaxed);
                Instant::now()
            });
            assert_eq!(run(&limits), Err(ToolError::Cancelled));
            Instant::now() - cancelled.join().expect("it sleeps")
        })
    }

    #[test]
    fn a_program_that_is_missing_or_ends_is_an_error() {
        let start = |program: PathBuf| {
            let program = Child {
                program,
                ..program_of_true()
            };
            let computation = Computation::Calculate {
                expression: "1".to_owned(),
            };
            within(Duration::from_secs(10), |run| {
                let started = ToolProcess::start(&program, &computation, run);
                started.map(drop).expect_err("no process").to_string()
            })
        };
        let missing = start("no/such/program".into());
        assert!(
            missing.starts_with("Its process could not be started: "),
            "{missing}"
        );
        if cfg!(unix) {
            assert_eq!(start("/bin/true".into()), "Its process ended unexpectedly.");
        }
    }

    fn program_of_true() -> Child {
        Child {
            leading: Vec::new(),
            ..program()
        }
    }
}

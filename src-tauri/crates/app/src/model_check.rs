//! "Check this model" in the model's card: `goldcrest verify` in a child process, and its progress.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use chat::{ModelStatus, Settings};
use host::{bundled_model, environment};
use serde::{Deserialize, Serialize};
use system::child::{Call, Child, ChildError, ChildFault, StreamingChild};

use crate::verify::Agreement;

/// The flag with which `goldcrest verify` prints a [`CheckLine`] for each step.
pub const STEPS: &str = "--steps";

/// Time limit of a step: candle loads a large model in one.
const STEP_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Maximum bytes of a line.
const LINE_LIMIT: usize = 1 << 20;

/// Progress of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum ModelCheck {
    /// It is running.
    Running {
        /// Current step.
        step: ModelCheckStep,
        /// Tokens of the text that this step has read.
        done: u32,
        /// Tokens of the text.
        total: u32,
    },
    /// It is complete.
    Done {
        /// Its report.
        report: CheckReport,
    },
    /// It failed.
    Failed {
        /// Reason, in a sentence.
        message: String,
    },
    /// The user stopped it.
    Stopped,
}

/// Steps of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub enum ModelCheckStep {
    /// candle loads the model.
    Loading,
    /// candle evaluates the text.
    Candle,
    /// The engine evaluates the text in exact arithmetic.
    Exact,
    /// The engine evaluates the text as the user runs the model.
    Engine,
}

/// Report of a check, as the card shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// Verdict on the results.
    pub verdict: Agreement,
    /// The device on which the engine ran.
    pub device_name: String,
    /// Tokens of the text.
    pub tokens: u32,
    /// Distance of the engine, as the user runs it, from the exact result.
    pub engine: CheckDistance,
    /// Distance of candle from the exact result.
    pub candle: CheckDistance,
}

/// Distance of logits from the exact ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct CheckDistance {
    /// Relative error; none if it is NaN.
    pub relative_error: Option<f64>,
    /// Mean KL divergence in nats; none if it is NaN.
    pub mean_kl: Option<f64>,
    /// Share of the positions whose likeliest token is the same, from 0 to 1.
    pub top1: Option<f64>,
}

/// A line that `goldcrest verify --steps` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckLine {
    /// Progress of a step.
    Step {
        /// Current step.
        step: ModelCheckStep,
        /// Tokens that it has read.
        done: u32,
        /// Tokens of the text.
        total: u32,
    },
    /// The last line.
    Report(CheckReport),
}

/// Subject of a check: a model's file, run with the user's settings.
#[derive(Debug, Clone)]
pub struct CheckSubject {
    /// The model's file.
    pub file: PathBuf,
    /// `auto`, `cpu`, `gpu` or `gpu:ID`; `None` for that of the environment.
    pub device: Option<String>,
    /// CPU threads; `None` for one per physical core.
    pub threads: Option<u32>,
    /// Storage type of keys and values, as the command line takes it.
    pub kv: &'static str,
}

impl CheckSubject {
    /// Returns the open model, as it is run; `None` if there is none.
    pub fn of_chat(status: &ModelStatus, settings: &Settings) -> Option<Self> {
        let file = match &status.ready()?.file {
            Some(file) => PathBuf::from(file),
            None => bundled_model::file()?,
        };
        Some(Self::of_file(file, settings))
    }

    /// Returns a file, as it would be run.
    pub fn of_file(file: PathBuf, settings: &Settings) -> Self {
        Self {
            file,
            // The child reads the same environment.
            device: environment::device()
                .is_none()
                .then(|| settings.device.clone()),
            threads: environment::threads().ok().flatten().or(settings.threads),
            kv: settings.kv_type.name(),
        }
    }

    fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![STEPS.into()];
        if let Some(device) = &self.device {
            arguments.extend(["--device".into(), device.into()]);
        }
        arguments.extend(["--kv".into(), self.kv.into()]);
        if let Some(threads) = self.threads {
            arguments.extend(["--threads".into(), threads.to_string().into()]);
        }
        arguments.extend(["--".into(), self.file.clone().into()]);
        arguments
    }
}

/// Runs at most one check at a time.
#[derive(Debug, Clone, Default)]
pub struct ModelChecker(Arc<Mutex<Option<Arc<AtomicBool>>>>);

impl ModelChecker {
    /// Starts a check, unless one is running. `on_change` is called on a separate thread.
    pub fn start(&self, subject: CheckSubject, on_change: impl Fn(ModelCheck) + Send + 'static) {
        let program = std::env::current_exe();
        let child = program.map(|program| Child {
            program,
            leading: vec!["verify".into()],
            timeout: STEP_TIMEOUT,
            output_limit: 0,
        });
        self.start_in(child, subject, on_change);
    }

    fn start_in(
        &self,
        child: io::Result<Child>,
        subject: CheckSubject,
        on_change: impl Fn(ModelCheck) + Send + 'static,
    ) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() {
            return;
        }
        let cancel = Arc::new(AtomicBool::new(false));
        *running = Some(Arc::clone(&cancel));
        drop(running);
        let checker = self.clone();
        thread::spawn(move || {
            on_change(ModelCheck::Running {
                step: ModelCheckStep::Loading,
                done: 0,
                total: 0,
            });
            let end = check(child, &subject, &cancel, &on_change);
            *checker.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
            on_change(end);
        });
    }

    /// Stops the running check, if any.
    pub fn stop(&self) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cancel) = &*running {
            cancel.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs a check to its end, and returns it.
fn check(
    child: io::Result<Child>,
    subject: &CheckSubject,
    cancel: &AtomicBool,
    on_change: &dyn Fn(ModelCheck),
) -> ModelCheck {
    let arguments = subject.arguments();
    let call = Call {
        arguments: &arguments,
        ..Call::default()
    };
    let stream = child.map_err(|error| ChildError {
        fault: ChildFault::NotRun(error),
        stderr: String::new(),
    });
    let mut stream = match stream.and_then(|child| child.stream(call)) {
        Ok(stream) => stream,
        Err(error) => return failed(&error),
    };
    loop {
        let line = match line(&mut stream, cancel) {
            Ok(Some(line)) => line,
            Ok(None) => return ModelCheck::Stopped,
            Err(_) if cancel.load(Ordering::Relaxed) => return ModelCheck::Stopped,
            Err(error) => return failed(&error),
        };
        match serde_json::from_slice(&line) {
            Ok(CheckLine::Step { step, done, total }) => {
                on_change(ModelCheck::Running { step, done, total });
            }
            Ok(CheckLine::Report(report)) => return ModelCheck::Done { report },
            Err(error) => {
                let message = format!("The check cannot be read: {error}.");
                return ModelCheck::Failed { message };
            }
        }
    }
}

/// Returns the next line; `None` if `cancel` was set.
fn line(stream: &mut StreamingChild, cancel: &AtomicBool) -> Result<Option<Vec<u8>>, ChildError> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LINE_LIMIT {
        if !stream.receive(&mut byte, STEP_TIMEOUT, cancel)? {
            return Ok(None);
        }
        if byte == *b"\n" {
            break;
        }
        line.push(byte[0]);
    }
    Ok(Some(line))
}

fn failed(error: &ChildError) -> ModelCheck {
    tracing::warn!(fault = ?error.fault, stderr = error.stderr, "the model could not be checked");
    let says = error.stderr.trim().lines().last().unwrap_or_default();
    // The command's own errors begin with its name.
    let says = says.strip_prefix("goldcrest: ").unwrap_or(says);
    let message = match &error.fault {
        ChildFault::NotRun(error) => format!("The check could not be started: {error}."),
        ChildFault::TimedOut => "The check took too long and was stopped.".to_owned(),
        _ if says.is_empty() => "The check ended unexpectedly.".to_owned(),
        _ => format!(
            "The model could not be checked: {}.",
            says.trim_end_matches('.')
        ),
    };
    ModelCheck::Failed { message }
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Starts a check whose child is this line of shell, and returns its events.
    fn checked(script: &str) -> (ModelChecker, Receiver<ModelCheck>) {
        let child = Child {
            program: "/bin/sh".into(),
            leading: vec!["-c".into(), script.into(), "child".into()],
            timeout: STEP_TIMEOUT,
            output_limit: 0,
        };
        let subject = CheckSubject {
            file: "/models/mine.gguf".into(),
            device: Some("cpu".into()),
            threads: Some(3),
            kv: "f16",
        };
        let (sender, changes) = channel();
        let checker = ModelChecker::default();
        checker.start_in(Ok(child), subject, move |check| {
            let _ = sender.send(check);
        });
        (checker, changes)
    }

    const REPORT: &str = r#"{"report":{"verdict":"agree","deviceName":"CPU","tokens":4,"engine":{"relativeError":0.01,"meanKl":0.001,"top1":1.0},"candle":{"relativeError":null,"meanKl":null,"top1":0.5}}}"#;

    #[test]
    fn the_steps_of_a_check_are_emitted_and_its_report_ends_it() {
        let step = r#"{"step":{"step":"exact","done":2,"total":4}}"#;
        let (_, changes) = checked(&format!("echo '{step}'; echo '{REPORT}'; exit 1"));
        let changes: Vec<_> = changes.iter().collect();
        assert_eq!(changes.len(), 3);
        assert!(matches!(
            changes[1],
            ModelCheck::Running {
                step: ModelCheckStep::Exact,
                done: 2,
                total: 4
            }
        ));
        let ModelCheck::Done { report } = &changes[2] else {
            panic!("{changes:?}");
        };
        assert_eq!(report.verdict, Agreement::Agree);
        assert!(report.candle.relative_error.is_none());
    }

    #[test]
    fn the_child_gets_the_file_and_the_settings() {
        let (_, changes) = checked("echo \"goldcrest: got $*\" >&2; exit 2");
        let Some(ModelCheck::Failed { message }) = changes.iter().last() else {
            panic!("it fails");
        };
        assert_eq!(
            message,
            "The model could not be checked: got --steps --device cpu --kv f16 --threads 3 -- /models/mine.gguf."
        );
    }

    #[test]
    fn a_check_is_stopped_and_another_can_be_started() {
        let (checker, changes) = checked("exec sleep 600");
        assert!(matches!(changes.recv(), Ok(ModelCheck::Running { .. })));
        checker.stop();
        assert_eq!(changes.recv(), Ok(ModelCheck::Stopped));
        assert!(checker.0.lock().expect("no panic").is_none());
    }

    #[test]
    fn what_is_no_line_of_a_check_is_an_error() {
        let (_, changes) = checked("echo nonsense");
        let last = changes.iter().last();
        assert!(
            matches!(last, Some(ModelCheck::Failed { message }) if message.contains("cannot be read"))
        );
    }
}

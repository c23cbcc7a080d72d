//! Probes GPUs in a child process, because a driver that crashes or hangs takes its process with it.

use std::ffi::OsString;

use serde::de::DeserializeOwned;
use system::child::{Call, Child, ChildFault};

use crate::reason::{Fault, WITHOUT_LAYERS};

/// Error of a probe.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeError {
    /// The fault.
    pub fault: Fault,
    /// The tail of its stderr.
    pub stderr: String,
}

impl ProbeError {
    /// Returns whether the driver may be the cause.
    pub fn blames_the_driver(&self) -> bool {
        matches!(
            self.fault,
            Fault::Crashed(_) | Fault::TimedOut(_) | Fault::Layer
        )
    }
}

/// Runs the subcommand and parses its output. After a crash it runs once more without layers, to find out whether a
/// layer or the driver is the cause.
///
/// # Errors
/// Fails if the child fails or its output is invalid.
pub fn probe<T: DeserializeOwned>(child: &Child, arguments: &[OsString]) -> Result<T, ProbeError> {
    probe_once(child, arguments, None).map_err(|error| {
        let crashed = matches!(error.fault, Fault::Crashed(_));
        if crashed && probe_once::<T>(child, arguments, Some(WITHOUT_LAYERS)).is_ok() {
            return ProbeError {
                fault: Fault::Layer,
                ..error
            };
        }
        error
    })
}

/// Runs the subcommand once, with an additional environment variable.
///
/// # Errors
/// Fails if the child fails or its output is invalid.
pub fn probe_once<T: DeserializeOwned>(
    child: &Child,
    arguments: &[OsString],
    variable: Option<(&str, &str)>,
) -> Result<T, ProbeError> {
    let call = Call {
        arguments,
        variable,
    };
    let output = child.run(call).map_err(|error| ProbeError {
        fault: match error.fault {
            ChildFault::NotRun(error) => Fault::NotStarted(error.to_string()),
            ChildFault::TimedOut => Fault::TimedOut(child.timeout.as_secs()),
            ChildFault::Interrupted => Fault::Interrupted,
            ChildFault::Crashed(status) => Fault::Crashed(status.to_string()),
            ChildFault::TooMuchOutput => Fault::Unreadable("it is too long".to_owned()),
        },
        stderr: error.stderr,
    })?;
    serde_json::from_slice(&output).map_err(|error| ProbeError {
        fault: Fault::Unreadable(error.to_string()),
        stderr: String::new(),
    })
}

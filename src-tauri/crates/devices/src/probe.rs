//! Asks a child process about GPUs, because a driver that crashes or hangs takes its process with it.

use std::ffi::OsString;

use serde::de::DeserializeOwned;
use system::child::{Call, Child, ChildFault};

use crate::reason::{Fault, WITHOUT_LAYERS};

/// Why a child gave no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeError {
    /// What happened.
    pub fault: Fault,
    /// The end of what it wrote to stderr.
    pub stderr: String,
}

impl ProbeError {
    /// Whether the driver may be at fault.
    pub fn blames_the_driver(&self) -> bool {
        matches!(
            self.fault,
            Fault::Crashed(_) | Fault::TimedOut(_) | Fault::Layer
        )
    }
}

/// Runs the subcommand and reads what it prints. One that crashes is run once more without layers, to find out whether
/// a layer or the driver is at fault.
///
/// # Errors
/// When the child does not answer.
pub fn ask<T: DeserializeOwned>(child: &Child, arguments: &[OsString]) -> Result<T, ProbeError> {
    ask_once(child, arguments, None).map_err(|error| {
        let crashed = matches!(error.fault, Fault::Crashed(_));
        if crashed && ask_once::<T>(child, arguments, Some(WITHOUT_LAYERS)).is_ok() {
            return ProbeError {
                fault: Fault::Layer,
                ..error
            };
        }
        error
    })
}

/// Runs the subcommand once, with another variable in its environment.
///
/// # Errors
/// When the child does not answer.
pub fn ask_once<T: DeserializeOwned>(
    child: &Child,
    arguments: &[OsString],
    variable: Option<(&str, &str)>,
) -> Result<T, ProbeError> {
    let call = Call {
        arguments,
        variable,
        input: None,
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

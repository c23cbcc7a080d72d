//! Asks a child process about GPUs, because a driver that crashes or hangs takes its process with it.

use std::ffi::OsString;

use serde::de::DeserializeOwned;

use crate::child::{Call, Child, ChildFault};

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

/// Runs the subcommand and reads what it prints. Where it crashes it is run once more without layers, to tell whose
/// fault it is.
pub fn ask<T: DeserializeOwned>(child: &Child, arguments: &[OsString]) -> Result<T, NoAnswer> {
    ask_once(child, arguments, None).map_err(|no_answer| {
        let crashed = no_answer.crashed;
        if crashed && ask_once::<T>(child, arguments, Some(WITHOUT_LAYERS)).is_ok() {
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
pub fn ask_once<T: DeserializeOwned>(
    child: &Child,
    arguments: &[OsString],
    variable: Option<(&str, &str)>,
) -> Result<T, NoAnswer> {
    let call = Call {
        arguments,
        variable,
        input: None,
    };
    let failed = |reason: String| NoAnswer {
        reason,
        complaints: String::new(),
        crashed: false,
        hung: false,
    };
    let output = child.run(call).map_err(|error| {
        let reason = match &error.fault {
            ChildFault::NotRun(error) => format!("it cannot be looked at ({error})"),
            ChildFault::TimedOut => format!("its driver hangs ({} s)", child.timeout.as_secs()),
            ChildFault::Interrupted => "its check was broken off".to_owned(),
            ChildFault::Crashed(status) => format!("its driver crashes ({status})"),
            ChildFault::TooMuchOutput => "its check cannot be read (it is too long)".to_owned(),
        };
        NoAnswer {
            complaints: error.stderr,
            crashed: matches!(error.fault, ChildFault::Crashed(_)),
            hung: matches!(error.fault, ChildFault::TimedOut),
            ..failed(reason)
        }
    })?;
    serde_json::from_slice(&output)
        .map_err(|error| failed(format!("its check cannot be read ({error})")))
}

//! Variables of the environment. A flag has precedence over them, and they over the settings.
//!
//! An invalid value ends a command with an error. The window starts all the same and shows the reason: it ignores a
//! number, opens the last model in place of a wrong file, and opens no model on a wrong device.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::OnceLock;

use devices::{DeviceRequest, UnknownDevice, device_from_env};
use serde::Serialize;

/// Path of the model's file.
pub const MODEL: &str = "GOLDCREST_MODEL";
/// Path of the file in place of the small model that comes with the app.
pub const BUNDLED_MODEL: &str = "GOLDCREST_BUNDLED_MODEL";
/// CPU threads.
pub const THREADS: &str = "GOLDCREST_THREADS";
/// Length of the context in tokens.
pub const CONTEXT: &str = "GOLDCREST_CONTEXT";

/// Flags that the chat was started with.
static FLAGS: OnceLock<ChatFlags> = OnceLock::new();

/// Flags of the chat, in the window or in the terminal, with precedence over the environment. A start that finds an open
/// window does not change it.
#[derive(Debug, Clone, Default)]
pub struct ChatFlags {
    /// Device, in the terminal.
    pub device: Option<DeviceRequest>,
    /// CPU threads.
    pub threads: Option<u32>,
    /// Length of the context in tokens.
    pub context: Option<u32>,
}

impl ChatFlags {
    /// Applies them until the app ends.
    pub fn obey(self) {
        let _ = FLAGS.set(self);
    }

    fn obeyed() -> ChatFlags {
        FLAGS.get().cloned().unwrap_or_default()
    }
}

/// Value that overrides a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct Override {
    /// Flag or variable.
    pub by: &'static str,
    /// Its value.
    pub value: String,
}

/// Settings that the window cannot change in this session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
pub struct Overrides {
    pub device: Option<Override>,
    pub threads: Option<Override>,
    pub context: Option<Override>,
}

impl Overrides {
    /// Returns the overrides of this session. An invalid value overrides nothing.
    pub fn of_session() -> Overrides {
        let flags = ChatFlags::obeyed();
        let number = |flag: Option<u32>, name, value: Result<Option<u32>, _>, variable| {
            let by = if flag.is_some() { name } else { variable };
            let value = value.ok().flatten()?.to_string();
            Some(Override { by, value })
        };
        let device = device().and_then(|device| device.into_string().ok());
        Overrides {
            device: device.map(|value| Override {
                by: devices::VARIABLE,
                value,
            }),
            threads: number(flags.threads, "--threads", threads(), THREADS),
            context: number(flags.context, "--context", context(), CONTEXT),
        }
    }
}

/// A variable has an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {problem}")]
pub struct BadVariable {
    variable: &'static str,
    problem: String,
}

impl BadVariable {
    /// Returns a note for the window, which ignores the variable.
    pub fn ignored(&self) -> String {
        format!("{} is ignored: {}.", self.variable, self.problem)
    }
}

/// Returns the model's file.
pub fn model() -> Option<PathBuf> {
    let file = set(MODEL)?;
    std::path::absolute(file).ok()
}

/// Returns the file in place of the small model that comes with the app.
pub fn bundled_model() -> Option<PathBuf> {
    set(BUNDLED_MODEL).map(PathBuf::from)
}

/// Returns the device of the flags, else of the environment, else `otherwise`.
///
/// # Errors
/// Fails if the variable is not a device.
pub fn requested_device(otherwise: DeviceRequest) -> Result<DeviceRequest, UnknownDevice> {
    match ChatFlags::obeyed().device {
        Some(device) => Ok(device),
        None => device_from_env(otherwise),
    }
}

/// Returns the device, as it was written.
pub fn device() -> Option<OsString> {
    set(devices::VARIABLE)
}

/// Returns the CPU threads.
///
/// # Errors
/// Fails if the variable is not a number of threads.
pub fn threads() -> Result<Option<u32>, BadVariable> {
    match ChatFlags::obeyed().threads {
        Some(threads) => Ok(Some(threads)),
        None => number(THREADS, set(THREADS), 1..=chat::max_threads()),
    }
}

/// Returns the length of the context in tokens.
///
/// # Errors
/// Fails if the variable is not a valid length of a context.
pub fn context() -> Result<Option<u32>, BadVariable> {
    match ChatFlags::obeyed().context {
        Some(context) => Ok(Some(context)),
        None => number(CONTEXT, set(CONTEXT), chat::CONTEXT_LENGTHS),
    }
}

/// Returns the value of a variable that is not empty.
fn set(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

fn number(
    variable: &'static str,
    value: Option<OsString>,
    range: RangeInclusive<u32>,
) -> Result<Option<u32>, BadVariable> {
    let Some(value) = value else {
        return Ok(None);
    };
    let value = value.to_string_lossy();
    match value.trim().parse() {
        Ok(number) if range.contains(&number) => Ok(Some(number)),
        _ => Err(BadVariable {
            variable,
            problem: format!(
                "`{value}` is not a number from {} to {}",
                range.start(),
                range.end()
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_within_its_range_or_refused_with_the_variables_name() {
        let read = |value: &str| number(THREADS, Some(value.into()), 1..=8);
        assert_eq!(number(THREADS, None, 1..=8), Ok(None));
        assert_eq!((read("1"), read(" 8\n")), (Ok(Some(1)), Ok(Some(8))));
        for value in ["0", "9", "-1", "two", "1.5", "4294967297"] {
            let error = read(value).expect_err("out of range");
            assert_eq!(
                error.to_string(),
                format!("GOLDCREST_THREADS: `{value}` is not a number from 1 to 8")
            );
            assert_eq!(
                error.ignored(),
                format!("GOLDCREST_THREADS is ignored: `{value}` is not a number from 1 to 8.")
            );
        }
    }
}

//! Which device is asked for.

use engine::{DeviceRequest, UnknownDevice};

/// Asks for a device whatever the settings say.
pub const VARIABLE: &str = "GOLDCREST_DEVICE";

/// What the environment asks for, or else `otherwise`.
pub fn requested(otherwise: DeviceRequest) -> Result<DeviceRequest, UnknownDevice> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => text.parse(),
        _ => Ok(otherwise),
    }
}

/// Lets the processor play a GPU: for tests and for doubt.
pub const SOFTWARE_GPU: &str = "GOLDCREST_ALLOW_SOFTWARE_GPU";

/// Whether the environment allows it.
pub fn software_gpu() -> bool {
    std::env::var_os(SOFTWARE_GPU).is_some_and(|value| value == "1")
}

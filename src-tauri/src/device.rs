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

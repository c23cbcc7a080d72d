//! The device requested by `GOLDCREST_DEVICE`.

use inference::{DeviceRequest, UnknownDevice};

/// The environment variable that overrides the device of the settings.
pub const VARIABLE: &str = "GOLDCREST_DEVICE";

/// Returns the device of the environment, else `otherwise`.
///
/// # Errors
/// Fails if the variable is not a device.
pub fn device_from_env(otherwise: DeviceRequest) -> Result<DeviceRequest, UnknownDevice> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => text.parse(),
        _ => Ok(otherwise),
    }
}

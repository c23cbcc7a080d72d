//! The device requested by settings, command line or `GOLDCREST_DEVICE`.

use std::fmt;
use std::str::FromStr;

use crate::gpu_info::Gpu;

/// The requested device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceRequest {
    /// A GPU that passes its check and is faster, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU through Vulkan or Metal, by its id or the first that may be used.
    Gpu(Option<String>),
}

/// Error of parsing a device.
#[derive(Debug, thiserror::Error)]
pub enum UnknownDevice {
    /// A name that other programs use for a GPU.
    #[error("`{0}` is not a device here: an NVIDIA or Apple GPU is reached as `gpu` or `gpu:ID`")]
    OtherApi(String),
    /// Not a device.
    #[error("`{0}` is not a device: auto, cpu, gpu and gpu:ID are")]
    Unknown(String),
}

impl FromStr for DeviceRequest {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        let name = text.trim().to_ascii_lowercase();
        match name.as_str() {
            "" | "auto" => return Ok(DeviceRequest::Auto),
            "cpu" => return Ok(DeviceRequest::Cpu),
            "gpu" => return Ok(DeviceRequest::Gpu(None)),
            _ => {}
        }
        if let Some(id) = name.strip_prefix("gpu:").filter(|id| !id.is_empty()) {
            return Ok(DeviceRequest::Gpu(Some(id.to_owned())));
        }
        Err(match name.split(':').next() {
            Some("cuda" | "metal" | "vulkan" | "rocm") => UnknownDevice::OtherApi(text.to_owned()),
            _ => UnknownDevice::Unknown(text.to_owned()),
        })
    }
}

/// The environment variable that overrides the device of the settings.
pub const VARIABLE: &str = "GOLDCREST_DEVICE";

impl DeviceRequest {
    /// The device of the environment, else `otherwise`.
    ///
    /// # Errors
    /// When the variable is not a device.
    pub fn of_environment(otherwise: DeviceRequest) -> Result<DeviceRequest, UnknownDevice> {
        match std::env::var(VARIABLE) {
            Ok(text) if !text.is_empty() => text.parse(),
            _ => Ok(otherwise),
        }
    }

    /// Whether the request allows this GPU.
    pub(crate) fn includes(&self, gpu: &Gpu) -> bool {
        match self {
            DeviceRequest::Gpu(Some(id)) => gpu.is_called(id),
            _ => true,
        }
    }
}

impl fmt::Display for DeviceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceRequest::Auto => f.write_str("auto"),
            DeviceRequest::Cpu => f.write_str("cpu"),
            DeviceRequest::Gpu(None) => f.write_str("gpu"),
            DeviceRequest::Gpu(Some(id)) => write!(f, "gpu:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_parse_as_they_print() {
        for text in ["auto", "cpu", "gpu", "gpu:0000:01:00.0"] {
            let request: DeviceRequest = text.parse().expect("a device");
            assert_eq!(request.to_string(), text);
        }
        assert_eq!(" CPU\n".parse().ok(), Some(DeviceRequest::Cpu));
        let error = |text: &str| text.parse::<DeviceRequest>().expect_err("no device");
        for text in ["cuda", "cuda:0", "Metal"] {
            assert!(matches!(error(text), UnknownDevice::OtherApi(_)), "{text}");
        }
        for text in ["gpu:", "tpu"] {
            assert!(matches!(error(text), UnknownDevice::Unknown(_)), "{text}");
        }
    }
}

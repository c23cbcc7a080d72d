//! The device that settings, command line or environment request, and the progress of opening a model on it.

use std::fmt;
use std::str::FromStr;

/// The requested device. It is written as `auto`, `cpu`, `gpu` or `gpu:ID`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceRequest {
    /// A GPU that passes its check and is faster, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU through Vulkan or Metal: the one with this id, or the first usable one.
    Gpu(Option<String>),
}

/// Progress of opening a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Opening {
    /// A GPU is checked before it is used.
    Checking,
    /// Fraction loaded, from 0 to 1.
    Loading(f32),
}

/// Error of parsing a device.
#[derive(Debug, thiserror::Error)]
pub enum UnknownDevice {
    /// A name that other programs use for a GPU.
    #[error("“{0}” is not a device here: an NVIDIA or Apple GPU is reached as gpu or gpu:ID")]
    OtherApi(String),
    /// Not a device.
    #[error("“{0}” is not a device: auto, cpu, gpu and gpu:ID are")]
    Unknown(String),
}

/// The longest id of a GPU, in characters; a UUID has 36.
const MAX_ID: usize = 64;

impl FromStr for DeviceRequest {
    type Err = UnknownDevice;

    /// Ignores case and surrounding white space.
    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        let name = text.trim().to_ascii_lowercase();
        match name.as_str() {
            "auto" => return Ok(DeviceRequest::Auto),
            "cpu" => return Ok(DeviceRequest::Cpu),
            "gpu" => return Ok(DeviceRequest::Gpu(None)),
            _ => {}
        }
        if let Some(id) = name.strip_prefix("gpu:").filter(|id| is_id(id)) {
            return Ok(DeviceRequest::Gpu(Some(id.to_owned())));
        }
        let shown = name.chars().take(MAX_ID).collect();
        Err(match name.split(':').next() {
            Some("cuda" | "metal" | "vulkan" | "rocm") => UnknownDevice::OtherApi(shown),
            _ => UnknownDevice::Unknown(shown),
        })
    }
}

fn is_id(id: &str) -> bool {
    (1..=MAX_ID).contains(&id.len()) && id.chars().all(|c| c.is_ascii_graphic() || c == ' ')
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
        let long = format!("gpu:{}", "x".repeat(MAX_ID + 1));
        for text in ["", "gpu:", "gpu:\n0\u{1b}", "tpu", &long] {
            assert!(matches!(error(text), UnknownDevice::Unknown(_)), "{text}");
        }
        assert!(error(&long).to_string().chars().count() < 2 * MAX_ID);
    }
}

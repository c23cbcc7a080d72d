//! A GPU as its driver describes it.

use inference::DeviceRequest;
use serde::{Deserialize, Serialize};

/// A GPU as its driver describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its name.
    pub name: String,
    /// The id of `--device gpu:ID`: its UUID, if the driver has one.
    pub id: String,
    /// Its PCI address, also accepted as an id.
    #[serde(default)]
    pub bus: String,
    /// The driver and its version.
    pub driver: String,
    /// `Vulkan` or `Metal`.
    pub api: String,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: String,
    /// Reason for which it is unsupported.
    pub refused: Option<String>,
}

impl From<gpu::GpuInfo> for Gpu {
    fn from(info: gpu::GpuInfo) -> Self {
        Self {
            name: info.name,
            id: info.id,
            bus: info.bus,
            driver: info.driver,
            api: info.api.to_owned(),
            kind: info.kind.name().to_owned(),
            refused: info.refused,
        }
    }
}

impl Gpu {
    /// Returns whether `request` allows it.
    pub(crate) fn is_allowed_by(&self, request: &DeviceRequest) -> bool {
        match request {
            DeviceRequest::Gpu(Some(id)) => {
                self.id == *id || (!self.bus.is_empty() && self.bus == *id)
            }
            _ => true,
        }
    }
}

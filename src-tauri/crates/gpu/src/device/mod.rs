//! The GPUs of this machine, and which of them may be used.

pub(crate) mod adapter;
#[cfg(not(target_vendor = "apple"))]
mod uuid;

#[cfg(target_vendor = "apple")]
mod uuid {
    /// Metal has none that outlives a start.
    pub(super) fn of(_: &wgpu::Adapter) -> Option<String> {
        None
    }
}

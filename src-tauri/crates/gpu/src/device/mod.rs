//! The GPUs of this machine, and the rules for using them.

pub(crate) mod adapter;
pub(crate) mod limits;
#[cfg(not(target_vendor = "apple"))]
mod uuid;

#[cfg(target_vendor = "apple")]
mod uuid {
    /// `None`: Metal's identifiers change at every start.
    pub(super) fn of(_: &wgpu::Adapter) -> Option<String> {
        None
    }
}

//! Running plans on a device.

#[cfg(test)]
pub(crate) mod counting;
pub(crate) mod executor;
pub(crate) mod wgpu_executor;

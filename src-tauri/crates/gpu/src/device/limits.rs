//! Limits of a device.

/// Limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Largest binding of a buffer, in bytes.
    pub binding: u64,
    /// Shared memory of a workgroup, in bytes.
    pub shared: u32,
    /// Invocations of a workgroup.
    pub invocations: u32,
    /// Its cooperative matrices; `None` without any that the kernels can use.
    pub matrices: Option<CoopMatrices>,
}

/// Square cooperative matrices: f16 with sums in f32, each held by a subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoopMatrices {
    /// Rows and columns: 8 or 16.
    pub edge: usize,
    /// Invocations of the largest subgroup.
    pub subgroup: usize,
    /// True if they load from memory of `vec2<f16>`; Metal's load from single values only.
    pub paired: bool,
}

/// Subgroups that share a tile of cooperative matrices.
pub(crate) const COOP_SUBGROUPS: usize = 4;
/// Shared memory of a workgroup of `mat_mul_coop.wgsl`, in bytes.
pub(crate) const COOP_WORKGROUP_BYTES: u32 = 18 << 10;

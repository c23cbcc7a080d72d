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
    /// True for a card with memory of its own, and for software, which runs a card's kernels in tests.
    pub discrete: bool,
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

/// Pairs of rows, and tokens, of a tile of cooperative matrices.
pub(crate) const COOP_ROW_PAIRS: usize = 64;
pub(crate) const COOP_TOKENS: usize = 128;
/// Subgroups that multiply a tile: along its rows, and along its tokens.
pub(crate) const COOP_SUBGROUPS: [usize; 2] = [2, 4];
/// Shared memory of a workgroup of `mat_mul_coop.wgsl`, in bytes: 128 rows and as many tokens in lines of 80 bytes, and
/// 16 tokens of results.
pub(crate) const COOP_WORKGROUP_BYTES: u32 = 28 << 10;

impl CoopMatrices {
    /// Invocations of a workgroup: enough subgroups to multiply, and one invocation for each row and token.
    pub(crate) fn threads(self) -> usize {
        let [rows, tokens] = COOP_SUBGROUPS;
        (rows * tokens * self.subgroup).max(2 * COOP_ROW_PAIRS + COOP_TOKENS)
    }
}

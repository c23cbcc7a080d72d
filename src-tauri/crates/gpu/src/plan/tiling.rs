//! The block sizes of the kernels, in one table.

/// Invocations of a workgroup. Cooperative matrices have their own number.
pub(crate) const THREADS: usize = 128;

/// Largest number of tokens of a matrix–vector kernel, which reads every row once for all of them; more tokens are
/// multiplied in tiles.
pub(crate) const MAT_VEC_MAX_TOKENS: usize = 8;
/// Pairs of rows that a workgroup of the matrix–vector kernel computes.
pub(crate) const MAT_VEC_ROW_PAIRS: usize = 8;
/// Pairs of rows of a tile. The SwiGLU epilogue needs as many of every kernel: it quantises whole groups of 32.
pub(crate) const TILE_ROW_PAIRS: usize = 32;
/// Tokens of a tile, and positions of the KV cache that attention takes at a time.
pub(crate) const TILE_TOKENS: usize = 64;
/// Rows and tokens that one of the [`COOP_SUBGROUPS`](crate::device::limits::COOP_SUBGROUPS) multiplies.
pub(crate) const COOP_SUBGROUP_TILE: usize = 32;
/// Longest row of activations that a workgroup holds in shared memory, if a kernel has a fused prologue.
pub(crate) const STAGED_MAX_LEN: usize = 3072;

/// Query heads that one workgroup of attention computes, at most.
pub(crate) const ATTENTION_MAX_HEADS: usize = 8;
/// Tokens of one workgroup of attention if there are more than [`MAT_VEC_MAX_TOKENS`].
pub(crate) const ATTENTION_TOKENS: usize = 4;
/// Chunks of the KV cache that are attended to in parallel (split-k), at most.
pub(crate) const MAX_CHUNKS: usize = 32;
/// Largest number of chunks that the output projection merges in its prologue; a separate kernel merges more.
pub(crate) const FUSED_MERGE_MAX_CHUNKS: usize = 4;

/// Parts of the vocabulary that the sampler reduces in parallel.
pub(crate) const VOCAB_PARTS: usize = 64;

/// Minimum number of tokens of a pass, if a prompt has more.
pub(crate) const MIN_PASS_TOKENS: usize = 64;
/// Tokens of a pass, at most: the capacity of the buffers of activations.
pub(crate) const MAX_PASS_TOKENS: usize = 512;

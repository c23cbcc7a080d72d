//! The block sizes of the kernels; those of cooperative matrices are in `device/limits.rs`. Those that differ by device
//! were measured on an H100.

use crate::device::limits::DeviceLimits;

/// Invocations of a workgroup, unless a kernel has its own number.
pub(crate) const THREADS: usize = 128;
/// Invocations of a workgroup of the matrix–vector kernel for one token that ends in SwiGLU, and of attention for one
/// token.
pub(crate) const TOKEN_THREADS: usize = 256;
/// Invocations of the other matrix–vector kernels for one token, if the device has as many: more subgroups load more
/// weights at the same time.
pub(crate) const TOKEN_MAX_THREADS: usize = 512;

/// Largest number of tokens of a matrix–vector kernel, which reads every row once for all of them; more tokens are
/// multiplied in tiles.
pub(crate) const MAT_VEC_MAX_TOKENS: usize = 8;
/// Pairs of rows that a workgroup of the matrix–vector kernel computes.
pub(crate) const MAT_VEC_ROW_PAIRS: usize = 8;
/// The same for long rows, each of which is more work.
pub(crate) const MAT_VEC_LONG_ROW_PAIRS: usize = 4;
/// Columns from which a row is long.
pub(crate) const LONG_ROW: usize = 4096;
/// The same for matrices of many rows, the output head: the prologue is repeated less often.
pub(crate) const MAT_VEC_MANY_ROW_PAIRS: usize = 16;
/// Rows from which a matrix has many.
pub(crate) const MANY_ROWS: usize = 32_768;
/// Pairs of rows of a tile. The SwiGLU epilogue needs as many of every kernel: it quantises whole groups of 32.
pub(crate) const TILE_ROW_PAIRS: usize = 32;
/// Tokens of a tile, and positions of the KV cache that attention takes at a time.
pub(crate) const TILE_TOKENS: usize = 64;
/// Longest row of activations that a workgroup holds in shared memory, if a kernel has a fused prologue.
pub(crate) const STAGED_MAX_LEN: usize = 3072;

/// Query heads that one workgroup of attention computes, at most.
pub(crate) const ATTENTION_MAX_HEADS: usize = 8;
/// Rows, tokens times heads, of one workgroup of attention if there are more tokens than [`MAT_VEC_MAX_TOKENS`]: their
/// sums fit in registers.
pub(crate) const ATTENTION_ROWS: usize = 8;
/// Chunks of the KV cache that are attended to in parallel (split-k), at most.
pub(crate) const MAX_CHUNKS: usize = 32;
/// Largest number of chunks that the output projection merges in its prologue on a device that shares its memory; a
/// separate kernel merges more. Every workgroup of the projection reads all chunks, which costs a card less than a
/// dispatch.
pub(crate) const FUSED_MERGE_MAX_CHUNKS: usize = 4;

/// Parts of the vocabulary that the sampler reduces in parallel.
pub(crate) const VOCAB_PARTS: usize = 64;

/// Minimum number of tokens of a pass, if a prompt has more.
pub(crate) const MIN_PASS_TOKENS: usize = 64;
/// Tokens of a pass, at most: the capacity of the buffers of activations.
pub(crate) const fn max_pass_tokens(limits: &DeviceLimits) -> usize {
    if limits.discrete { 1024 } else { 512 }
}

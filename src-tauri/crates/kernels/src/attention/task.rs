//! What attention computes, and one task of it.

use std::ops::Range;

use super::kv::KvLayer;

/// What there is to attend with.
#[derive(Clone, Copy)]
pub(crate) struct Attention<'a> {
    /// `[m][heads][head_dim]`.
    pub q: &'a [f32],
    pub m: usize,
    pub heads: usize,
    pub kv: &'a KvLayer,
    pub past: usize,
    /// All arithmetic in f32.
    pub exact: bool,
}

/// One task: rows are `[query][shared head]`.
pub(crate) struct AttentionTask {
    pub kv_head: usize,
    pub queries: Range<usize>,
    pub positions: Range<usize>,
}

/// Where the results of a task's row go.
pub(super) fn output_offset(a: &Attention, task: &AttentionTask, row: usize) -> usize {
    let shared = a.heads / a.kv.kv_heads();
    let query = task.queries.start + row / shared;
    (query * a.heads + task.kv_head * shared + row % shared) * a.kv.head_dim()
}

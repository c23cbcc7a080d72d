//! The operands of attention, and one task of it.

use std::ops::Range;

use super::kv::KvLayer;

/// The operands of causal attention.
#[derive(Clone, Copy)]
pub(crate) struct Attention<'a> {
    /// `[m][heads][head_dim]`.
    pub q: &'a [f32],
    pub m: usize,
    pub heads: usize,
    pub kv: &'a KvLayer,
    pub past: usize,
    /// True if all arithmetic is in f32.
    pub exact: bool,
}

/// A key head, a query block and a range of positions; its rows are `[query][shared head]`.
pub(crate) struct AttentionTask {
    pub kv_head: usize,
    pub queries: Range<usize>,
    pub positions: Range<usize>,
}

/// The index in queries and results of a task's row.
pub(super) fn output_offset(a: &Attention, task: &AttentionTask, row: usize) -> usize {
    let shared = a.heads / a.kv.kv_heads();
    let query = task.queries.start + row / shared;
    (query * a.heads + task.kv_head * shared + row % shared) * a.kv.head_dim()
}

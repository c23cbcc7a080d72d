//! The scratch of attention.

use super::kv::KV_TILE;
use super::task::{Attention, AttentionTask, output_offset};
use crate::blocking::KV_BLOCK;
#[cfg(target_arch = "x86_64")]
use crate::blocking::KV_BLOCK_AMX;
#[cfg(target_arch = "x86_64")]
use crate::isa::amx::PAIR;
use crate::memory::buffer::AlignedBuffer;
use crate::memory::reserve::{OutOfMemory, reserve};

/// A worker's scratch for one task.
#[derive(Default)]
pub(crate) struct AttentionScratch {
    /// Scaled queries, `[row][head_dim]`.
    pub q: Vec<f32>,
    /// `[tile][head_dim][16]`.
    pub keys: Vec<f32>,
    /// `[position][value_dim]`.
    pub values: Vec<f32>,
    /// Scores, then weights, `[row][KV_BLOCK]`.
    pub scores: AlignedBuffer<f32>,
    /// Weighted values, `[row][value_dim]`.
    pub sums: AlignedBuffer<f32>,
    /// Per row: the running maximum of the scores, and the denominator of the softmax.
    pub row_max: Vec<f32>,
    pub row_sum: Vec<f32>,
    pub(super) int16: Int16Scratch,
    #[cfg(target_arch = "x86_64")]
    pub(super) amx: AmxScratch,
}

impl AttentionScratch {
    /// Allocates room for `rows` rows, with AMX's tiles if `on_amx`.
    pub fn reserve(
        &mut self,
        rows: usize,
        dim: usize,
        value_dim: usize,
        on_amx: bool,
    ) -> Result<(), OutOfMemory> {
        #[cfg(target_arch = "x86_64")]
        if on_amx {
            self.amx.reserve(rows, dim, value_dim)?;
            reserve(&mut self.keys, KV_BLOCK_AMX * dim)?;
            reserve(&mut self.values, KV_BLOCK_AMX * value_dim)?;
        }
        #[cfg(not(target_arch = "x86_64"))]
        debug_assert!(!on_amx, "AMX is x86-64 only");
        reserve(&mut self.q, rows * dim)?;
        reserve(&mut self.keys, KV_BLOCK * dim)?;
        reserve(&mut self.values, KV_BLOCK * value_dim)?;
        let padded = whole_tiles(rows);
        self.scores.reserve(padded * KV_BLOCK)?;
        self.sums.reserve(padded * value_dim)?;
        reserve(&mut self.row_max, rows)?;
        reserve(&mut self.row_sum, rows)?;
        self.int16.reserve(rows, dim, value_dim)
    }

    /// Sizes the buffers for `rows` rows, for which `reserve` has made room, and clears the sums.
    pub fn start(&mut self, rows: usize, dim: usize, value_dim: usize) {
        self.q.resize(rows * dim, 0.0);
        self.keys.resize(KV_BLOCK * dim, 0.0);
        self.values.resize(KV_BLOCK * value_dim, 0.0);
        let padded = whole_tiles(rows);
        self.scores.resize(padded * KV_BLOCK);
        self.sums.resize(padded * value_dim);
        self.sums.fill(0.0);
        self.row_max.clear();
        self.row_max.resize(rows, f32::NEG_INFINITY);
        self.row_sum.clear();
        self.row_sum.resize(rows, 0.0);
    }

    /// Copies the task's queries, scaled by `1 / √head_dim`.
    pub fn load_queries(&mut self, a: &Attention, task: &AttentionTask) {
        let dim = a.kv.head_dim();
        let scale = 1.0 / (dim as f32).sqrt();
        for (row, q) in self.q.chunks_exact_mut(dim).enumerate() {
            let from = &a.q[output_offset(a, task, row)..][..dim];
            q.iter_mut()
                .zip(from)
                .for_each(|(to, from)| *to = from * scale);
        }
    }
}

/// `rows` rounded up to whole pairs of AMX tiles.
fn whole_tiles(rows: usize) -> usize {
    rows.next_multiple_of(2 * KV_TILE)
}

/// The scratch of all workers and the partial results; it grows to the largest call and is reused.
pub(crate) struct AttentionBuffers {
    pub workers: Vec<AttentionScratch>,
    /// Partial results of the splits: `[task][row][value_dim + 2]`.
    pub partials: Vec<f32>,
}

impl AttentionBuffers {
    pub fn new(workers: usize) -> Self {
        AttentionBuffers {
            workers: (0..workers).map(|_| AttentionScratch::default()).collect(),
            partials: Vec::new(),
        }
    }
}

/// Queries, keys, values and weights as 16-bit integers, each with its scales.
#[derive(Default)]
pub(super) struct Int16Scratch {
    /// `[row][dim]`.
    pub q: Vec<i16>,
    pub q_scale: Vec<f32>,
    /// `[tile][dim / 2][16][2]`.
    pub keys: Vec<i16>,
    pub key_scale: Vec<f32>,
    /// `[position / 2][value_dim][2]`.
    pub values: Vec<i16>,
    pub value_scale: Vec<f32>,
    /// `[row][KV_BLOCK]`.
    pub weights: Vec<i16>,
    pub weight_scale: Vec<f32>,
}

impl Int16Scratch {
    /// Allocates room for `rows` rows.
    pub fn reserve(
        &mut self,
        rows: usize,
        dim: usize,
        value_dim: usize,
    ) -> Result<(), OutOfMemory> {
        reserve(&mut self.q, rows * dim)?;
        reserve(&mut self.q_scale, rows)?;
        reserve(&mut self.keys, KV_BLOCK * dim)?;
        reserve(&mut self.key_scale, KV_BLOCK)?;
        reserve(&mut self.values, KV_BLOCK * value_dim)?;
        reserve(&mut self.value_scale, value_dim)?;
        reserve(&mut self.weights, rows * KV_BLOCK)?;
        reserve(&mut self.weight_scale, rows)
    }

    /// Sizes the buffers for `rows` rows, for which `reserve` has made room.
    pub fn start(&mut self, rows: usize, dim: usize, value_dim: usize) {
        self.q.resize(rows * dim, 0);
        self.q_scale.resize(rows, 0.0);
        self.keys.resize(KV_BLOCK * dim, 0);
        self.key_scale.resize(KV_BLOCK, 0.0);
        self.values.resize(KV_BLOCK * value_dim, 0);
        self.value_scale.resize(value_dim, 0.0);
        self.weights.resize(rows * KV_BLOCK, 0);
        self.weight_scale.resize(rows, 0.0);
    }
}

#[cfg(target_arch = "x86_64")]
/// Queries, keys, values and weights as AMX tiles of 16 × 32 bf16 each.
#[derive(Default)]
pub(super) struct AmxScratch {
    /// `[row / 32][component / 32][2]`.
    pub q: AlignedBuffer<u16>,
    /// `[position / 32][component / 32][2]`, a tile being 16 positions.
    pub keys: AlignedBuffer<u16>,
    /// `[component / 32][position / 32][2]`, a tile being 16 components.
    pub values: AlignedBuffer<u16>,
    /// Scores, then weights, of a pair of tiles of rows: `[row][KV_BLOCK_AMX]`.
    pub scores: AlignedBuffer<f32>,
    /// `[row / 32][position / 32][2]`.
    pub weights: AlignedBuffer<u16>,
}

#[cfg(target_arch = "x86_64")]
impl AmxScratch {
    /// Allocates room for `rows` rows.
    pub fn reserve(
        &mut self,
        rows: usize,
        dim: usize,
        value_dim: usize,
    ) -> Result<(), OutOfMemory> {
        self.q.reserve(rows.next_multiple_of(PAIR) * dim)?;
        self.keys.reserve(KV_BLOCK_AMX * dim)?;
        self.values.reserve(KV_BLOCK_AMX * value_dim)?;
        self.scores.reserve(PAIR * KV_BLOCK_AMX)?;
        self.weights.reserve(PAIR * KV_BLOCK_AMX)
    }
}

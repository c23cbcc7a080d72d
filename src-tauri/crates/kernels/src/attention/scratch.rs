//! A worker's memory for attention, grown to the largest task.

use super::kv::TILE;
use super::task::{Attention, Piece, place};
use crate::blocking::SLAB;
#[cfg(target_arch = "x86_64")]
use crate::blocking::TILE_SLAB;
#[cfg(target_arch = "x86_64")]
use crate::isa::amx::PAIR;
use crate::memory::buffer::Buffer;
use crate::memory::reserve::{OutOfMemory, reserve};

/// A worker's memory for a piece.
#[derive(Default)]
pub(crate) struct Desk {
    /// Scaled queries, `[row][head_dim]`.
    pub q: Vec<f32>,
    /// `[tile][head_dim][16]`.
    pub keys: Vec<f32>,
    /// `[position][value_dim]`.
    pub values: Vec<f32>,
    /// Scores, then weights, `[row][SLAB]`.
    pub scores: Buffer<f32>,
    /// Weighted values, `[row][value_dim]`.
    pub sums: Buffer<f32>,
    /// Per row: the largest score, and the sum of weights relative to it.
    pub most: Vec<f32>,
    pub total: Vec<f32>,
    pub(super) words: Words,
    #[cfg(target_arch = "x86_64")]
    pub(super) tiled: Tiled,
}

impl Desk {
    /// Makes room for `rows` rows, in tiles of a matrix unit or not.
    pub fn reserve(
        &mut self,
        rows: usize,
        dim: usize,
        value_dim: usize,
        in_tiles: bool,
    ) -> Result<(), OutOfMemory> {
        #[cfg(target_arch = "x86_64")]
        if in_tiles {
            self.tiled.reserve(rows, dim, value_dim)?;
            reserve(&mut self.keys, TILE_SLAB * dim)?;
            reserve(&mut self.values, TILE_SLAB * value_dim)?;
        }
        #[cfg(not(target_arch = "x86_64"))]
        debug_assert!(!in_tiles, "there is no such unit");
        reserve(&mut self.q, rows * dim)?;
        reserve(&mut self.keys, SLAB * dim)?;
        reserve(&mut self.values, SLAB * value_dim)?;
        let room = whole_tiles(rows);
        self.scores.reserve(room * SLAB)?;
        self.sums.reserve(room * value_dim)?;
        reserve(&mut self.most, rows)?;
        reserve(&mut self.total, rows)?;
        self.words.reserve(rows, dim, value_dim)
    }

    /// Starts `rows` rows, for which there is room.
    pub fn start(&mut self, rows: usize, dim: usize, value_dim: usize) {
        self.q.resize(rows * dim, 0.0);
        self.keys.resize(SLAB * dim, 0.0);
        self.values.resize(SLAB * value_dim, 0.0);
        let room = whole_tiles(rows);
        self.scores.resize(room * SLAB);
        self.sums.resize(room * value_dim);
        self.sums.fill(0.0);
        self.most.clear();
        self.most.resize(rows, f32::NEG_INFINITY);
        self.total.clear();
        self.total.resize(rows, 0.0);
    }

    /// Takes the piece's queries, scaled.
    pub fn place_queries(&mut self, a: &Attention, piece: &Piece) {
        let dim = a.kv.head_dim();
        let scale = 1.0 / (dim as f32).sqrt();
        for (row, q) in self.q.chunks_exact_mut(dim).enumerate() {
            let from = &a.q[place(a, piece, row)..][..dim];
            q.iter_mut()
                .zip(from)
                .for_each(|(to, from)| *to = from * scale);
        }
    }
}

/// A matrix unit fills whole pairs of tiles of rows.
fn whole_tiles(rows: usize) -> usize {
    rows.next_multiple_of(2 * TILE)
}

/// Memory for attention, made once and grown to the largest.
pub(crate) struct Desks {
    pub of_workers: Vec<Desk>,
    /// Results of pieces that share queries: `[piece][row][value_dim + 2]`.
    pub partial: Vec<f32>,
}

impl Desks {
    pub fn new(workers: usize) -> Self {
        Desks {
            of_workers: (0..workers).map(|_| Desk::default()).collect(),
            partial: Vec::new(),
        }
    }
}

/// The integers of a desk, and what 1 stands for in each.
#[derive(Default)]
pub(super) struct Words {
    /// `[row][dim]`.
    pub q: Vec<i16>,
    pub q_unit: Vec<f32>,
    /// `[tile][dim / 2][16][2]`.
    pub keys: Vec<i16>,
    pub key_unit: Vec<f32>,
    /// `[position / 2][value_dim][2]`.
    pub values: Vec<i16>,
    pub value_unit: Vec<f32>,
    /// `[row][SLAB]`.
    pub weights: Vec<i16>,
    pub weight_unit: Vec<f32>,
}

impl Words {
    /// Makes room for `rows` rows.
    pub fn reserve(
        &mut self,
        rows: usize,
        dim: usize,
        value_dim: usize,
    ) -> Result<(), OutOfMemory> {
        reserve(&mut self.q, rows * dim)?;
        reserve(&mut self.q_unit, rows)?;
        reserve(&mut self.keys, SLAB * dim)?;
        reserve(&mut self.key_unit, SLAB)?;
        reserve(&mut self.values, SLAB * value_dim)?;
        reserve(&mut self.value_unit, value_dim)?;
        reserve(&mut self.weights, rows * SLAB)?;
        reserve(&mut self.weight_unit, rows)
    }

    /// Starts `rows` rows, for which there is room.
    pub fn start(&mut self, rows: usize, dim: usize, value_dim: usize) {
        self.q.resize(rows * dim, 0);
        self.q_unit.resize(rows, 0.0);
        self.keys.resize(SLAB * dim, 0);
        self.key_unit.resize(SLAB, 0.0);
        self.values.resize(SLAB * value_dim, 0);
        self.value_unit.resize(value_dim, 0.0);
        self.weights.resize(rows * SLAB, 0);
        self.weight_unit.resize(rows, 0.0);
    }
}

#[cfg(target_arch = "x86_64")]
/// A desk's tiles, 16 × 32 numbers each.
#[derive(Default)]
pub(super) struct Tiled {
    /// `[row / 32][component / 32][2]`.
    pub q: Buffer<u16>,
    /// `[position / 32][component / 32][2]`, a tile being 16 positions.
    pub keys: Buffer<u16>,
    /// `[component / 32][position / 32][2]`, a tile being 16 components.
    pub values: Buffer<u16>,
    /// Scores, then weights, of some rows: `[row][TILE_SLAB]`.
    pub scores: Buffer<f32>,
    /// `[row / 32][position / 32][2]`.
    pub weights: Buffer<u16>,
}

#[cfg(target_arch = "x86_64")]
impl Tiled {
    /// Makes room for `rows` rows.
    pub fn reserve(
        &mut self,
        rows: usize,
        dim: usize,
        value_dim: usize,
    ) -> Result<(), OutOfMemory> {
        self.q.reserve(rows.next_multiple_of(PAIR) * dim)?;
        self.keys.reserve(TILE_SLAB * dim)?;
        self.values.reserve(TILE_SLAB * value_dim)?;
        self.scores.reserve(PAIR * TILE_SLAB)?;
        self.weights.reserve(PAIR * TILE_SLAB)
    }
}

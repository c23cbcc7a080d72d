//! The KV cache of one layer.

use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;
use inference::KvType;

use crate::blocking::KV_SEGMENT;
use crate::isa::LANES;
use crate::memory::reserve::OutOfMemory;
use crate::memory::reserve::reserve;

/// Positions in a tile. The keys of a tile are interleaved, so that one vector holds the same component of all its
/// positions and scores need no horizontal sums.
pub(crate) const KV_TILE: usize = LANES;

/// Values that share a scale in [`KvType::Q8_0`].
pub(crate) const KV_SCALE_GROUP: usize = 32;

/// One layer's keys and values, position after position.
///
/// A position takes `kv_heads × head_dim` keys and as many values. Within a tile of 16 positions
/// of one head, keys are stored as `[head_dim][16]` and values as `[16][head_dim]`.
#[derive(Debug)]
pub struct KvLayer {
    ty: KvType,
    kv_heads: usize,
    head_dim: usize,
    len: usize,
    tiles: Vec<KvSegment>,
}

/// The storage of `KV_SEGMENT` positions.
#[derive(Debug)]
struct KvSegment {
    keys: KvCells,
    values: KvCells,
}

#[derive(Debug)]
enum KvCells {
    F32(Box<[f32]>),
    F16(Box<[f16]>),
    Q8(Box<[i8]>, Box<[f16]>),
}

/// The keys or the values of one tile of one head, with their scales if they have any.
#[derive(Clone, Copy)]
pub(crate) enum KvTile<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Q8(&'a [i8], &'a [f16]),
}

/// `count` cells with `value` in them.
fn filled<T: Clone>(count: usize, value: T) -> Result<Box<[T]>, OutOfMemory> {
    let mut cells = Vec::new();
    reserve(&mut cells, count)?;
    cells.resize(count, value);
    Ok(cells.into())
}

/// Offsets of one position: component `i` is at `at + i · stride`, and the scale of group `g` at `scale_at + g · stride`
/// of the scales.
struct CellOffsets {
    at: usize,
    scale_at: usize,
    stride: usize,
}

impl KvCells {
    /// `cells` values that need `scales` scales if they are quantised.
    fn new(ty: KvType, cells: usize, scales: usize) -> Result<Self, OutOfMemory> {
        Ok(match ty {
            KvType::F32 => KvCells::F32(filled(cells, 0.0)?),
            KvType::F16 => KvCells::F16(filled(cells, f16::ZERO)?),
            KvType::Q8_0 => KvCells::Q8(filled(cells, 0)?, filled(scales, f16::ZERO)?),
        })
    }

    /// Stores one position's components `x`; `halves` is room for as many.
    fn write(&mut self, x: &[f32], offsets: &CellOffsets, halves: &mut [f16]) {
        let CellOffsets {
            at,
            scale_at,
            stride,
        } = *offsets;
        match self {
            KvCells::F32(cells) => {
                for (cell, v) in cells[at..].iter_mut().step_by(stride).zip(x) {
                    *cell = *v;
                }
            }
            KvCells::F16(cells) => {
                halves.convert_from_f32_slice(x);
                for (cell, v) in cells[at..].iter_mut().step_by(stride).zip(halves) {
                    *cell = *v;
                }
            }
            KvCells::Q8(cells, scales) => {
                let mut cells = cells[at..].iter_mut().step_by(stride);
                let scales = scales[scale_at..].iter_mut().step_by(stride);
                for (x, to) in x.chunks(KV_SCALE_GROUP).zip(scales) {
                    let largest = x.iter().fold(0.0_f32, |a, v| a.max(v.abs()));
                    let scale = f16::from_f32(largest / 127.0);
                    *to = scale;
                    let inverse = if scale == f16::ZERO {
                        0.0
                    } else {
                        1.0 / scale.to_f32()
                    };
                    // `x` goes first: `zip` must not take a cell when the group has ended.
                    for (v, cell) in x.iter().zip(cells.by_ref()) {
                        *cell = (v * inverse).round() as i8;
                    }
                }
            }
        }
    }

    /// Zeroes some cells and scales.
    fn clear(&mut self, at: Range<usize>, scales_at: Range<usize>) {
        match self {
            KvCells::F32(cells) => cells[at].fill(0.0),
            KvCells::F16(cells) => cells[at].fill(f16::ZERO),
            KvCells::Q8(cells, scales) => {
                cells[at].fill(0);
                scales[scales_at].fill(f16::ZERO);
            }
        }
    }

    fn tile(&self, cells: Range<usize>, scales: Range<usize>) -> KvTile<'_> {
        match self {
            KvCells::F32(all) => KvTile::F32(&all[cells]),
            KvCells::F16(all) => KvTile::F16(&all[cells]),
            KvCells::Q8(all, all_scales) => KvTile::Q8(&all[cells], &all_scales[scales]),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            KvCells::F32(cells) => size_of_val(&**cells),
            KvCells::F16(cells) => size_of_val(&**cells),
            KvCells::Q8(cells, scales) => size_of_val(&**cells) + size_of_val(&**scales),
        }
    }
}

impl KvLayer {
    /// An empty layer.
    pub fn new(ty: KvType, kv_heads: usize, head_dim: usize) -> Self {
        KvLayer {
            ty,
            kv_heads,
            head_dim,
            len: 0,
            tiles: Vec::new(),
        }
    }

    /// Positions held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Heads of keys and of values.
    pub fn kv_heads(&self) -> usize {
        self.kv_heads
    }

    /// Components of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// How the layer is stored.
    pub fn kv_type(&self) -> KvType {
        self.ty
    }

    /// Resident size in bytes.
    pub fn bytes(&self) -> usize {
        self.tiles
            .iter()
            .map(|t| t.keys.bytes() + t.values.bytes())
            .sum()
    }

    /// Components of a stored value: whole vectors.
    pub(crate) fn value_dim(&self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    /// Scales of one head's position.
    fn groups(&self) -> usize {
        self.head_dim.div_ceil(KV_SCALE_GROUP)
    }

    /// Bytes that a layer of `positions` holds.
    pub fn bytes_for(ty: KvType, kv_heads: usize, head_dim: usize, positions: usize) -> u64 {
        let positions = positions.next_multiple_of(KV_SEGMENT) as u64;
        let cells = (head_dim + head_dim.next_multiple_of(LANES)) as u64;
        let of_a_head = match ty {
            KvType::F32 => 4 * cells,
            KvType::F16 => 2 * cells,
            KvType::Q8_0 => cells + 2 * 2 * head_dim.div_ceil(KV_SCALE_GROUP) as u64,
        };
        positions
            .saturating_mul(kv_heads as u64)
            .saturating_mul(of_a_head)
    }

    /// Allocates storage for `m` more positions.
    ///
    /// # Errors
    /// When the system has no memory left. The positions that the layer holds stay.
    pub fn reserve(&mut self, m: usize) -> Result<(), OutOfMemory> {
        let heads = self.kv_heads;
        while self.tiles.len() * KV_SEGMENT < self.len + m {
            let scales = KV_SEGMENT * heads * self.groups();
            self.tiles.push(KvSegment {
                keys: KvCells::new(self.ty, KV_SEGMENT * heads * self.head_dim, scales)?,
                values: KvCells::new(self.ty, KV_SEGMENT * heads * self.value_dim(), scales)?,
            });
        }
        Ok(())
    }

    /// Appends `m` positions; `k` and `v` are `[m][kv_heads][head_dim]`.
    ///
    /// # Panics
    /// When the lengths are not those, or there is neither room nor memory for them: see [`KvLayer::reserve`].
    pub fn append(&mut self, k: &[f32], v: &[f32], m: usize) {
        let (heads, dim, groups) = (self.kv_heads, self.head_dim, self.groups());
        assert!(
            k.len() == m * heads * dim && v.len() == k.len(),
            "keys and values of m positions"
        );
        let value_dim = self.value_dim();
        if let Err(error) = self.reserve(m) {
            panic!("{m} positions have no room: {error}");
        }
        let mut halves = vec![f16::ZERO; if self.ty == KvType::F16 { dim } else { 0 }];
        for i in 0..m {
            let position = self.len + i;
            let tiles = &mut self.tiles[position / KV_SEGMENT];
            for head in 0..heads {
                let x = (i * heads + head) * dim..(i * heads + head + 1) * dim;
                let row = head * KV_SEGMENT + position % KV_SEGMENT;
                let (tile, lane) = (row / KV_TILE * KV_TILE, row % KV_TILE);
                let (at, scale_at) = (tile * dim + lane, tile * groups + lane);
                let offsets = CellOffsets {
                    at,
                    scale_at,
                    stride: KV_TILE,
                };
                tiles.keys.write(&k[x.clone()], &offsets, &mut halves);
                let offsets = CellOffsets {
                    at: row * value_dim,
                    scale_at: row * groups,
                    stride: 1,
                };
                tiles.values.write(&v[x], &offsets, &mut halves);
            }
        }
        let before = self.len;
        self.len += m;
        if before <= self.len / KV_TILE * KV_TILE {
            self.clear_rest_of_tile();
        }
    }

    /// Removes all positions from `len` on; their storage is kept for new ones.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
            self.clear_rest_of_tile();
        }
    }

    /// Zeroes the values of the last tile behind the last position: tiles are multiplied whole, and what a removed sequence
    /// has left there may be infinite or NaN, whose product with a weight of zero is NaN.
    fn clear_rest_of_tile(&mut self) {
        let (value_dim, groups) = (self.value_dim(), self.groups());
        let rest = self.len..self.len.next_multiple_of(KV_TILE);
        let Some(tiles) = self.tiles.get_mut(self.len / KV_SEGMENT) else {
            return;
        };
        for head in 0..self.kv_heads {
            let first = head * KV_SEGMENT + rest.start % KV_SEGMENT;
            let rows = |n: usize| first * n..(first + rest.len()) * n;
            tiles.values.clear(rows(value_dim), rows(groups));
        }
    }

    /// The keys of some tiles of `head`, each `[head_dim][16]`, their scales `[groups][16]`. The tiles are within one
    /// segment, where they are contiguous.
    pub(crate) fn keys(&self, head: usize, tiles: Range<usize>) -> KvTile<'_> {
        self.tiles(head, tiles, self.head_dim, |tiles| &tiles.keys)
    }

    /// The values of some tiles of `head`, each `[16][value_dim]`, their scales `[16][groups]`.
    pub(crate) fn values(&self, head: usize, tiles: Range<usize>) -> KvTile<'_> {
        self.tiles(head, tiles, self.value_dim(), |tiles| &tiles.values)
    }

    fn tiles(
        &self,
        head: usize,
        tiles: Range<usize>,
        dim: usize,
        of: impl Fn(&KvSegment) -> &KvCells,
    ) -> KvTile<'_> {
        let first = head * KV_SEGMENT + tiles.start * KV_TILE % KV_SEGMENT;
        let rows = |n: usize| first * n..(first + tiles.len() * KV_TILE) * n;
        let cells = of(&self.tiles[tiles.start * KV_TILE / KV_SEGMENT]);
        cells.tile(rows(dim), rows(self.groups()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers, with groups of small numbers and groups of zeros.
    fn numbers(n: usize) -> Vec<f32> {
        (0..n)
            .map(|i| {
                let bits = (i as u32).wrapping_add(7).wrapping_mul(0x9e37_79b9);
                let bits = (bits ^ bits >> 15).wrapping_mul(0x85eb_ca6b);
                let size = [3.0, 0.01, 0.0, 40.0][i / KV_SCALE_GROUP % 4];
                size * ((bits >> 8) as f32 / (1 << 23) as f32 - 1.0)
            })
            .collect()
    }

    /// Rounded to nearest in plain arithmetic: the integers and the scale of a group.
    fn rounded(x: &[f32]) -> (Vec<i8>, f16) {
        let largest = x
            .iter()
            .fold(0.0_f64, |largest, &v| largest.max(f64::from(v).abs()));
        let scale = f16::from_f64(largest / 127.0);
        let nearest = |&v: &f32| match scale.to_f64() {
            0.0 => 0,
            scale => (f64::from(v) / scale).round() as i8,
        };
        (x.iter().map(nearest).collect(), scale)
    }

    #[test]
    fn eight_bits_are_the_nearest_bit_for_bit() {
        const DIM: usize = 80;
        let groups = DIM.div_ceil(KV_SCALE_GROUP);
        let (heads, m) = (2, 37);
        let (k, v) = (numbers(m * heads * DIM), numbers(2 * m * heads * DIM));
        let v = &v[m * heads * DIM..];
        let mut layer = KvLayer::new(KvType::Q8_0, heads, DIM);
        layer.append(&k, v, m);
        for position in 0..m {
            let (tile, lane) = (position / KV_TILE, position % KV_TILE);
            for head in 0..heads {
                let x = (position * heads + head) * DIM;
                let (KvTile::Q8(keys, key_scales), KvTile::Q8(values, value_scales)) = (
                    layer.keys(head, tile..tile + 1),
                    layer.values(head, tile..tile + 1),
                ) else {
                    panic!("8 bits");
                };
                for g in 0..groups {
                    let part = g * KV_SCALE_GROUP..((g + 1) * KV_SCALE_GROUP).min(DIM);
                    let (want, scale) = rounded(&k[x..x + DIM][part.clone()]);
                    assert_eq!(key_scales[g * KV_TILE + lane], scale);
                    let found: Vec<i8> = part.clone().map(|i| keys[i * KV_TILE + lane]).collect();
                    assert_eq!(found, want, "key {position} of head {head}, group {g}");
                    let (want, scale) = rounded(&v[x..x + DIM][part.clone()]);
                    assert_eq!(value_scales[lane * groups + g], scale);
                    let found = &values[lane * layer.value_dim()..][part];
                    assert_eq!(found, want, "value {position} of head {head}, group {g}");
                }
            }
        }
    }

    #[test]
    fn half_precision_is_the_nearest_half() {
        const DIM: usize = 20;
        let k = numbers(3 * DIM);
        let mut layer = KvLayer::new(KvType::F16, 1, DIM);
        layer.append(&k, &k, 3);
        let (KvTile::F16(keys), KvTile::F16(values)) = (layer.keys(0, 0..1), layer.values(0, 0..1))
        else {
            panic!("half precision");
        };
        for (at, x) in k.iter().enumerate() {
            let (position, i) = (at / DIM, at % DIM);
            assert_eq!(keys[i * KV_TILE + position], f16::from_f32(*x));
            assert_eq!(values[position * layer.value_dim() + i], f16::from_f32(*x));
        }
    }

    #[test]
    fn bytes_are_predicted() {
        for ty in [KvType::F32, KvType::F16, KvType::Q8_0] {
            for (heads, dim) in [(1, 16), (2, 20), (4, 128), (3, 80)] {
                for positions in [1, KV_SEGMENT, KV_SEGMENT + 1] {
                    let mut layer = KvLayer::new(ty, heads, dim);
                    let x = numbers(positions * heads * dim);
                    layer.append(&x, &x, positions);
                    let predicted = KvLayer::bytes_for(ty, heads, dim, positions);
                    assert_eq!(
                        layer.bytes() as u64,
                        predicted,
                        "{} {heads} × {dim}",
                        ty.name()
                    );
                }
            }
        }
    }

    #[test]
    fn a_cache_that_no_memory_holds_is_an_error() {
        let mut layer = KvLayer::new(KvType::F32, 1 << 30, 512);
        assert!(layer.reserve(1).is_err());
        assert_eq!((layer.len(), layer.bytes()), (0, 0));
    }
}

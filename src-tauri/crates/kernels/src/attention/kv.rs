//! The KV cache of one layer.

use std::ops::Range;
use std::sync::Arc;

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
///
/// Clones share their storage; a segment is copied when one of them writes to it.
#[derive(Clone, Debug)]
pub struct KvLayer {
    ty: KvType,
    kv_heads: usize,
    head_dim: usize,
    len: usize,
    tiles: Vec<Arc<KvSegment>>,
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

impl KvSegment {
    /// # Errors
    /// Fails if the system has no memory left.
    fn try_clone(&self) -> Result<KvSegment, OutOfMemory> {
        Ok(KvSegment {
            keys: self.keys.try_clone()?,
            values: self.values.try_clone()?,
        })
    }
}

/// `count` cells with `value` in them.
fn filled<T: Clone>(count: usize, value: T) -> Result<Box<[T]>, OutOfMemory> {
    let mut cells = Vec::new();
    reserve(&mut cells, count)?;
    cells.resize(count, value);
    Ok(cells.into())
}

/// A copy of these cells.
fn copied<T: Copy>(cells: &[T]) -> Result<Box<[T]>, OutOfMemory> {
    let mut copy = Vec::new();
    reserve(&mut copy, cells.len())?;
    copy.extend_from_slice(cells);
    Ok(copy.into())
}

/// The cells of little-endian `bytes`, `N` to a cell.
fn decoded<T, const N: usize>(
    bytes: &[u8],
    decode: impl Fn([u8; N]) -> T,
) -> Result<Box<[T]>, OutOfMemory> {
    let mut cells = Vec::new();
    reserve(&mut cells, bytes.len() / N)?;
    let (chunks, _) = bytes.as_chunks();
    cells.extend(chunks.iter().map(|bytes| decode(*bytes)));
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

    fn try_clone(&self) -> Result<KvCells, OutOfMemory> {
        Ok(match self {
            KvCells::F32(cells) => KvCells::F32(copied(cells)?),
            KvCells::F16(cells) => KvCells::F16(copied(cells)?),
            KvCells::Q8(cells, scales) => KvCells::Q8(copied(cells)?, copied(scales)?),
        })
    }

    /// Appends cells, then scales, in little-endian order.
    fn encode(&self, out: &mut Vec<u8>) {
        let halves = |cells: &[f16], out: &mut Vec<u8>| {
            out.extend(cells.iter().flat_map(|cell| cell.to_le_bytes()));
        };
        match self {
            KvCells::F32(cells) => out.extend(cells.iter().flat_map(|cell| cell.to_le_bytes())),
            KvCells::F16(cells) => halves(cells, out),
            KvCells::Q8(cells, scales) => {
                out.extend(cells.iter().map(|cell| cell.cast_unsigned()));
                halves(scales, out);
            }
        }
    }

    /// The cells that [`KvCells::encode`] wrote; `scales` is the number of bytes of scales at the end.
    fn decode(ty: KvType, bytes: &[u8], scales: usize) -> Result<KvCells, OutOfMemory> {
        Ok(match ty {
            KvType::F32 => KvCells::F32(decoded(bytes, f32::from_le_bytes)?),
            KvType::F16 => KvCells::F16(decoded(bytes, f16::from_le_bytes)?),
            KvType::Q8_0 => {
                let (cells, scales) = bytes.split_at(bytes.len() - scales);
                KvCells::Q8(
                    decoded(cells, |[cell]: [u8; 1]| cell.cast_signed())?,
                    decoded(scales, f16::from_le_bytes)?,
                )
            }
        })
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
    /// Positions of a segment, which are copied, shared and encoded together.
    pub const SEGMENT: usize = KV_SEGMENT;

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

    /// Returns true if the layer holds no position.
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

    /// Storage type of keys and values.
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

    /// Allocates storage for `m` more positions that no other layer shares.
    ///
    /// # Errors
    /// Fails if the system has no memory left; the layer keeps its positions.
    pub fn reserve(&mut self, m: usize) -> Result<(), OutOfMemory> {
        let first = self.len / KV_SEGMENT;
        for at in first..(self.len + m).div_ceil(KV_SEGMENT) {
            let is_held = at * KV_SEGMENT < self.len;
            match self.tiles.get_mut(at) {
                None => {
                    let segment = self.empty_segment()?;
                    self.tiles.push(Arc::new(segment));
                }
                Some(segment) => {
                    if Arc::get_mut(segment).is_some() {
                        continue;
                    }
                    let own = if is_held {
                        segment.try_clone()?
                    } else {
                        self.empty_segment()?
                    };
                    self.tiles[at] = Arc::new(own);
                    if is_held {
                        self.clear_rest_of_tile();
                    }
                }
            }
        }
        Ok(())
    }

    fn empty_segment(&self) -> Result<KvSegment, OutOfMemory> {
        let heads = self.kv_heads;
        let scales = KV_SEGMENT * heads * self.groups();
        Ok(KvSegment {
            keys: KvCells::new(self.ty, KV_SEGMENT * heads * self.head_dim, scales)?,
            values: KvCells::new(self.ty, KV_SEGMENT * heads * self.value_dim(), scales)?,
        })
    }

    /// Appends `m` positions; `k` and `v` are `[m][kv_heads][head_dim]`.
    ///
    /// # Panics
    /// Panics if the lengths do not match, or there is no room or memory for the positions: see [`KvLayer::reserve`].
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
            let Some(tiles) = Arc::get_mut(&mut self.tiles[position / KV_SEGMENT]) else {
                panic!("what is reserved is not shared");
            };
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

    /// The first `len` positions, which share their storage with this layer.
    #[must_use]
    pub fn prefix(&self, len: usize) -> KvLayer {
        let mut prefix = self.clone();
        prefix.tiles.truncate(len.div_ceil(KV_SEGMENT));
        prefix.truncate(len);
        prefix
    }

    /// Bytes of an encoded segment.
    pub fn segment_bytes(&self) -> usize {
        let (keys, values, scales) = self.segment_parts();
        keys + values + 2 * scales
    }

    /// Bytes of a segment's keys, of its values, and of the scales of either.
    fn segment_parts(&self) -> (usize, usize, usize) {
        let heads = KV_SEGMENT * self.kv_heads;
        let (cell, scales) = match self.ty {
            KvType::F32 => (4, 0),
            KvType::F16 => (2, 0),
            KvType::Q8_0 => (1, 2 * heads * self.groups()),
        };
        (
            cell * heads * self.head_dim,
            cell * heads * self.value_dim(),
            scales,
        )
    }

    /// Appends the cells of the positions from `segment · SEGMENT` on to `out`, as they are stored, in little-endian
    /// order.
    ///
    /// # Panics
    /// Panics if the layer does not hold all positions of the segment.
    pub fn encode_segment(&self, segment: usize, out: &mut Vec<u8>) {
        assert!((segment + 1) * KV_SEGMENT <= self.len, "a whole segment");
        self.tiles[segment].keys.encode(out);
        self.tiles[segment].values.encode(out);
    }

    /// Appends positions that [`KvLayer::encode_segment`] wrote.
    ///
    /// # Errors
    /// Fails if the system has no memory left; the layer is then unchanged.
    ///
    /// # Panics
    /// Panics if the layer does not hold whole segments, or `bytes` is not one encoded segment.
    pub fn append_segment(&mut self, bytes: &[u8]) -> Result<(), OutOfMemory> {
        assert!(
            self.len.is_multiple_of(KV_SEGMENT) && bytes.len() == self.segment_bytes(),
            "whole segments"
        );
        let (keys, _, scales) = self.segment_parts();
        let (keys, values) = bytes.split_at(keys + scales);
        let segment = KvSegment {
            keys: KvCells::decode(self.ty, keys, scales)?,
            values: KvCells::decode(self.ty, values, scales)?,
        };
        self.tiles.truncate(self.len / KV_SEGMENT);
        self.tiles.push(Arc::new(segment));
        self.len += KV_SEGMENT;
        Ok(())
    }

    /// Removes all positions from `len` on; their storage is kept for new ones.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
            self.clear_rest_of_tile();
        }
    }

    /// Zeroes the values behind the last position in the last tile. Tiles are multiplied whole; a removed sequence may
    /// leave infinities or NaN there, and their product with a weight of zero is NaN. A shared segment is cleared in
    /// its copy, once one is made.
    fn clear_rest_of_tile(&mut self) {
        let (value_dim, groups) = (self.value_dim(), self.groups());
        let rest = self.len..self.len.next_multiple_of(KV_TILE);
        let segment = self.tiles.get_mut(self.len / KV_SEGMENT);
        let Some(tiles) = segment.and_then(Arc::get_mut) else {
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
mod tests;

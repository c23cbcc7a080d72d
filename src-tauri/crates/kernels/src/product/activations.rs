//! Activations of a product: floats, and 8-bit integers in groups of 32.

use std::ops::Range;

use crate::isa::{Isa, LANES};
use crate::memory::buffer::AlignedBuffer;
use crate::memory::reserve::OutOfMemory;
use crate::memory::reserve::reserve;
use crate::pool::Pool;
use crate::pool::disjoint::DisjointSlice;
use crate::weights::block::BlockType;
use crate::weights::layout::{GROUP, HeaderLayout, Layout};

/// Scales and sums of a quantised group.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct ActivationScale {
    /// The scale of each half of the group.
    pub scale: [f32; 2],
    /// The sum of each half's quantised activations, in floats: the factor of a minimum or an offset.
    pub sum: [f32; 2],
    /// The sum of both.
    pub total: f32,
}

/// Number of activations that share a scale. For weights of a full byte the rounding of the activations dominates the
/// error; their scales are twice as fine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Granularity {
    /// 32, the groups of the other types.
    Group,
    /// 16.
    Half,
}

impl Granularity {
    /// The granularity for weights of a type; `None` for float weights, whose activations stay floats.
    pub fn of(ty: BlockType) -> Option<Granularity> {
        let layout = Layout::of(ty);
        match layout.header {
            HeaderLayout::None => None,
            _ if layout.bytes => Some(Granularity::Half),
            _ => Some(Granularity::Group),
        }
    }
}

/// Quantised activations, `[m][cols]`; the buffers grow to the largest product and are reused.
#[derive(Default)]
pub(crate) struct QuantisedActivations {
    bytes: Vec<i8>,
    scales: Vec<ActivationScale>,
}

impl QuantisedActivations {
    /// Quantises `x`, whole groups of 32.
    pub fn fill(
        &mut self,
        pool: &Pool,
        quantise: QuantiseActivations,
        granularity: Granularity,
        x: &[f32],
    ) -> Result<(), OutOfMemory> {
        /// Groups of a task: enough work to pay for another thread.
        const GROUPS: usize = 128;
        debug_assert!(x.len().is_multiple_of(GROUP));
        let groups = x.len() / GROUP;
        if self.scales.len() < groups {
            reserve(&mut self.bytes, x.len())?;
            reserve(&mut self.scales, groups)?;
            self.bytes.resize(x.len(), 0);
            self.scales.resize(groups, ActivationScale::default());
        }
        let bytes = DisjointSlice::new(&mut self.bytes);
        let scales = DisjointSlice::new(&mut self.scales);
        pool.parallel_for(groups.div_ceil(GROUPS), |_, task| {
            let first = task * GROUPS;
            let n = GROUPS.min(groups - first);
            // SAFETY: each group belongs to one task; the routine is that of this machine's level; the lengths are those of its
            // contract.
            unsafe {
                let x = &x[first * GROUP..(first + n) * GROUP];
                let bytes = bytes.slice(first * GROUP, n * GROUP);
                quantise(granularity, x, bytes, scales.slice(first, n));
            }
        });
        Ok(())
    }

    /// The integers at `cells`, whole groups, and their scales.
    pub fn groups(&self, cells: Range<usize>) -> (&[i8], &[ActivationScale]) {
        let groups = cells.start / GROUP..cells.end / GROUP;
        (&self.bytes[cells], &self.scales[groups])
    }
}

/// The routine of a level that quantises whole groups.
pub(crate) type QuantiseActivations =
    unsafe fn(Granularity, &[f32], &mut [i8], &mut [ActivationScale]);

/// The routine of a level that packs columns of rows as tiles of its [`TileShape`].
pub(crate) type PackActivations = unsafe fn(Granularity, &[f32], usize, Range<usize>, &mut [u16]);

/// Layout of a level's packed activations of many tokens: `[K block][block of tokens][column / 32]`, a tile each. The
/// columns of a K block are contiguous, because a row block is multiplied with all their tokens first.
#[derive(Clone, Copy)]
pub(crate) struct TileShape {
    /// Tokens of a tile (MR); memory is for whole tiles.
    pub mr: usize,
    /// Columns of a K block.
    pub kc: usize,
    /// Length of a token's group of 32 columns, in 16-bit units.
    pub group_len: usize,
}

impl TileShape {
    /// The offset of the tile of token block `block` and column group `group`, with `m` tokens of `cols` columns.
    pub fn tile(self, m: usize, cols: usize, block: usize, group: usize) -> usize {
        let first = group * GROUP / self.kc * self.kc;
        let width = (cols - first).min(self.kc) / GROUP;
        let (before, within) = (first / GROUP, group - first / GROUP);
        let padded = m.next_multiple_of(self.mr);
        (before * padded + (block * width + within) * self.mr) * self.group_len
    }
}

/// Activations as tiles.
#[derive(Default)]
pub(crate) struct TiledActivations {
    tiles: AlignedBuffer<u16>,
}

impl TiledActivations {
    /// Resizes to `m` tokens of `cols` columns, whole groups of 32.
    pub fn resize(&mut self, shape: TileShape, m: usize, cols: usize) -> Result<(), OutOfMemory> {
        let len = m.next_multiple_of(shape.mr) * cols / GROUP * shape.group_len;
        self.tiles.reserve(len)?;
        self.tiles.resize(len);
        Ok(())
    }

    /// Packs `x`, rows of `cols`, with the level's `pack`.
    pub fn fill(
        &mut self,
        pool: &Pool,
        (shape, pack): (TileShape, PackActivations),
        granularity: Granularity,
        x: &[f32],
        cols: usize,
    ) -> Result<(), OutOfMemory> {
        let m = x.len() / cols;
        self.resize(shape, m, cols)?;
        let tiles = DisjointSlice::new(&mut self.tiles);
        let (blocks, k_blocks) = (m.div_ceil(shape.mr), cols.div_ceil(shape.kc));
        pool.parallel_for(k_blocks * blocks, |_, i| {
            let (k_block, block) = (i / blocks, i % blocks);
            let columns = k_block * shape.kc..((k_block + 1) * shape.kc).min(cols);
            let row = block * shape.mr;
            let x = &x[row * cols..(row + shape.mr).min(m) * cols];
            let at = shape.tile(m, cols, block, columns.start / GROUP);
            let len = shape.mr * columns.len() / GROUP * shape.group_len;
            // SAFETY: each block of a K block belongs to one task; the routine is that of this machine's level.
            unsafe { pack(granularity, x, cols, columns, tiles.slice(at, len)) };
        });
        Ok(())
    }

    pub fn as_slice(&self) -> &[u16] {
        &self.tiles
    }

    pub fn as_mut_slice(&mut self) -> &mut [u16] {
        &mut self.tiles
    }
}

/// The integers to which the largest activation of a group may be rounded.
const TOPS: [f32; 8] = [127.0, 126.0, 125.0, 124.0, 123.0, 122.0, 121.0, 120.0];

/// Quantises whole groups, each granule with the scale of eight candidates that has the smallest squared error.
///
/// With any of [`TOPS`] the largest activation is exact; the errors of the others vary, and the best of eight scales
/// makes the error a tenth smaller than a fixed 127 does.
///
/// # Safety
/// The machine has `I`; `x` is whole groups, `bytes` as long, and `scales` one per group.
#[inline(always)]
pub(crate) unsafe fn quantise<I: Isa>(
    granularity: Granularity,
    x: &[f32],
    bytes: &mut [i8],
    scales: &mut [ActivationScale],
) {
    debug_assert!(x.len() == bytes.len() && x.len() == scales.len() * GROUP);
    for (g, scale) in scales.iter_mut().enumerate() {
        // SAFETY: every group has 32 floats and as many bytes.
        unsafe {
            let from = x.as_ptr().add(g * GROUP);
            let halves = [I::load(from), I::load(from.add(LANES))];
            *scale = quantise_group::<I>(granularity, halves, bytes.as_mut_ptr().add(g * GROUP));
        }
    }
}

/// Quantises the two halves of a group to 32 bytes.
///
/// # Safety
/// The machine has `I`; `to` is writable for 32 bytes.
#[inline(always)]
pub(crate) unsafe fn quantise_group<I: Isa>(
    granularity: Granularity,
    halves: [I::F; 2],
    to: *mut i8,
) -> ActivationScale {
    // SAFETY: a half is 16 bytes.
    unsafe {
        let scales = match granularity {
            Granularity::Group => [best_scale::<I, 2>(halves); 2],
            // No closure: it would be compiled without the level's features.
            Granularity::Half => [
                best_scale::<I, 1>([halves[0]]),
                best_scale::<I, 1>([halves[1]]),
            ],
        };
        let mut scale = ActivationScale::default();
        for h in 0..2 {
            let (inverse, of_half) = scales[h];
            let rounded = I::round(I::mul(halves[h], I::splat(inverse)));
            I::store_low_bytes(to.add(h * LANES), rounded);
            scale.scale[h] = of_half;
            scale.sum[h] = of_half * I::sum_i(rounded) as f32;
        }
        scale.total = scale.sum[0] + scale.sum[1];
        scale
    }
}

/// The inverse scale and the scale of these activations.
///
/// # Safety
/// The machine has `I`.
#[inline(always)]
unsafe fn best_scale<I: Isa, const N: usize>(x: [I::F; N]) -> (f32, f32) {
    // SAFETY: no pointers.
    unsafe {
        let mut most = I::splat(0.0);
        for x in x {
            most = I::max(most, I::abs(x));
        }
        let largest = I::largest(most);
        if largest == 0.0 {
            return (0.0, 0.0);
        }
        let (mut best, mut least) = (TOPS[0], f32::INFINITY);
        for top in TOPS {
            let mut errors = I::splat(0.0);
            for x in x {
                let x = I::mul(x, I::splat(top / largest));
                let off = I::sub(x, I::float(I::round(x)));
                errors = I::fma(off, off, errors);
            }
            let error = I::sum(errors) / (top * top);
            if error < least {
                (best, least) = (top, error);
            }
        }
        (best / largest, largest / best)
    }
}

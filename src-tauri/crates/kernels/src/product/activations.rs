//! The left side of a product: floats, and the same rounded to 8 bits in groups of 32.

use std::ops::Range;

use crate::isa::{Isa, LANES};
use crate::memory::buffer::Buffer;
use crate::memory::reserve::OutOfMemory;
use crate::memory::reserve::reserve;
use crate::pool::Pool;
use crate::pool::parts::Parts;
use crate::weights::block::BlockType;
use crate::weights::layout::{GROUP, Header, Layout};

/// What a group's integers need to become a product again.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Scale {
    /// The activation that an integer of 1 stands for, in each half of the group.
    pub unit: [f32; 2],
    /// The sum of each half's rounded activations: what a minimum or an offset multiplies.
    pub sum: [f32; 2],
    /// The sum of both.
    pub total: f32,
}

/// How many activations share a scale. Weights of a full byte are so exact that the rounding of
/// the activations is all the error there is; they get scales twice as fine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grain {
    /// 32, the groups of the other types.
    Group,
    /// 16.
    Half,
}

impl Grain {
    /// What weights of a type want; float weights take activations as they are.
    pub fn of(ty: BlockType) -> Option<Grain> {
        let layout = Layout::of(ty);
        match layout.header {
            Header::None => None,
            _ if layout.bytes => Some(Grain::Half),
            _ => Some(Grain::Group),
        }
    }
}

/// Rounded activations, `[m][cols]`; buffers grow to the largest product and stay.
#[derive(Default)]
pub(crate) struct Rounded {
    bytes: Vec<i8>,
    scales: Vec<Scale>,
}

impl Rounded {
    /// Rounds `x`, whole groups of 32.
    pub fn fill(
        &mut self,
        pool: &Pool,
        round: Round,
        grain: Grain,
        x: &[f32],
    ) -> Result<(), OutOfMemory> {
        /// Groups of a piece: enough work to be worth another thread.
        const GROUPS: usize = 128;
        debug_assert!(x.len().is_multiple_of(GROUP));
        let groups = x.len() / GROUP;
        if self.scales.len() < groups {
            reserve(&mut self.bytes, x.len())?;
            reserve(&mut self.scales, groups)?;
            self.bytes.resize(x.len(), 0);
            self.scales.resize(groups, Scale::default());
        }
        let bytes = Parts::new(&mut self.bytes);
        let scales = Parts::new(&mut self.scales);
        pool.pieces(groups.div_ceil(GROUPS), |_, piece| {
            let first = piece * GROUPS;
            let n = GROUPS.min(groups - first);
            // SAFETY: each group belongs to one piece, and this executor's routines were chosen
            // for this machine; lengths are those that `round` names.
            unsafe {
                let x = &x[first * GROUP..(first + n) * GROUP];
                let bytes = bytes.slice(first * GROUP, n * GROUP);
                round(grain, x, bytes, scales.slice(first, n));
            }
        });
        Ok(())
    }

    /// The integers at `cells`, whole groups, and their scales.
    pub fn part(&self, cells: Range<usize>) -> (&[i8], &[Scale]) {
        let groups = cells.start / GROUP..cells.end / GROUP;
        (&self.bytes[cells], &self.scales[groups])
    }
}

/// Rounds groups of activations at one level.
pub(crate) type Round = unsafe fn(Grain, &[f32], &mut [i8], &mut [Scale]);

/// Makes tiles of some columns of rows that are so long, as the level's [`TileShape`] says.
pub(crate) type Arrange = unsafe fn(Grain, &[f32], usize, Range<usize>, &mut [u16]);

/// How a level lays out the activations of many tokens: `[slab][block of tokens][column / 32]`, and a tile each time.
/// The columns of a slab lie together because a strip is multiplied with all their tokens before more.
#[derive(Clone, Copy)]
pub(crate) struct TileShape {
    /// Tokens of a tile, or of tiles that lie together.
    pub tokens: usize,
    /// There are tiles for whole multiples of so many tokens.
    pub room: usize,
    /// Columns of a slab.
    pub slab: usize,
    /// What a token's 32 columns take, in numbers of 16 bits.
    pub row: usize,
}

impl TileShape {
    /// Where the tile of block `block` and column group `group` is, among those of `m` tokens of `cols` columns.
    pub fn tile(self, m: usize, cols: usize, block: usize, group: usize) -> usize {
        let first = group * GROUP / self.slab * self.slab;
        let width = (cols - first).min(self.slab) / GROUP;
        let (before, within) = (first / GROUP, group - first / GROUP);
        let room = m.next_multiple_of(self.room);
        (before * room + (block * width + within) * self.tokens) * self.row
    }
}

/// Activations as tiles.
#[derive(Default)]
pub(crate) struct Tiled {
    tiles: Buffer<u16>,
}

impl Tiled {
    /// Makes room for `m` tokens of `cols` columns, whole groups of 32.
    pub fn resize(&mut self, shape: TileShape, m: usize, cols: usize) -> Result<(), OutOfMemory> {
        let len = m.next_multiple_of(shape.room) * cols / GROUP * shape.row;
        self.tiles.reserve(len)?;
        self.tiles.resize(len);
        Ok(())
    }

    /// Rounds `x`, rows of `cols`, with the level's `arrange`.
    pub fn fill(
        &mut self,
        pool: &Pool,
        (shape, arrange): (TileShape, Arrange),
        grain: Grain,
        x: &[f32],
        cols: usize,
    ) -> Result<(), OutOfMemory> {
        let m = x.len() / cols;
        self.resize(shape, m, cols)?;
        let tiles = Parts::new(&mut self.tiles);
        let (blocks, slabs) = (m.div_ceil(shape.tokens), cols.div_ceil(shape.slab));
        pool.pieces(slabs * blocks, |_, i| {
            let (slab, block) = (i / blocks, i % blocks);
            let columns = slab * shape.slab..((slab + 1) * shape.slab).min(cols);
            let row = block * shape.tokens;
            let x = &x[row * cols..(row + shape.tokens).min(m) * cols];
            let at = shape.tile(m, cols, block, columns.start / GROUP);
            let len = shape.tokens * columns.len() / GROUP * shape.row;
            // SAFETY: each block of a slab is one piece's own; the routine was chosen for this machine.
            unsafe { arrange(grain, x, cols, columns, tiles.slice(at, len)) };
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

/// The numbers that a group's largest activation may be rounded to.
const TOPS: [f32; 8] = [127.0, 126.0, 125.0, 124.0, 123.0, 122.0, 121.0, 120.0];

/// Rounds whole groups, each grain by the scale of a few that leaves the smallest squared error.
///
/// With any of [`TOPS`] the largest activation is exact; how the others fall on the grid differs
/// by chance, and taking the best of eight makes the error a tenth smaller than always 127 does.
///
/// # Safety
/// The machine has `I`; `x` is whole groups, `bytes` as long, and `scales` one per group.
#[inline(always)]
pub(crate) unsafe fn round<I: Isa>(
    grain: Grain,
    x: &[f32],
    bytes: &mut [i8],
    scales: &mut [Scale],
) {
    debug_assert!(x.len() == bytes.len() && x.len() == scales.len() * GROUP);
    for (g, scale) in scales.iter_mut().enumerate() {
        // SAFETY: every group has 32 floats and as many bytes.
        unsafe {
            let from = x.as_ptr().add(g * GROUP);
            let halves = [I::load(from), I::load(from.add(LANES))];
            *scale = round_group::<I>(grain, halves, bytes.as_mut_ptr().add(g * GROUP));
        }
    }
}

/// Rounds the two halves of a group to 32 bytes.
///
/// # Safety
/// The machine has `I`; `to` is good for the bytes.
#[inline(always)]
pub(crate) unsafe fn round_group<I: Isa>(grain: Grain, halves: [I::F; 2], to: *mut i8) -> Scale {
    // SAFETY: a half is 16 bytes.
    unsafe {
        let steps = match grain {
            Grain::Group => [best_step::<I, 2>(halves); 2],
            // No closure: it would be compiled without the level's features.
            Grain::Half => [
                best_step::<I, 1>([halves[0]]),
                best_step::<I, 1>([halves[1]]),
            ],
        };
        let mut scale = Scale::default();
        for h in 0..2 {
            let (inverse, unit) = steps[h];
            let rounded = I::round(I::mul(halves[h], I::splat(inverse)));
            I::store_low_bytes(to.add(h * LANES), rounded);
            scale.unit[h] = unit;
            scale.sum[h] = unit * I::sum_i(rounded) as f32;
        }
        scale.total = scale.sum[0] + scale.sum[1];
        scale
    }
}

/// The factor that takes these activations to integers, and what an integer of 1 stands for.
///
/// # Safety
/// The machine has `I`.
#[inline(always)]
unsafe fn best_step<I: Isa, const N: usize>(x: [I::F; N]) -> (f32, f32) {
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

//! Products of many tokens on the matrix unit.
//!
//! The sums of 32 tokens and 32 rows stay in tile registers for a K block. A row block's weights of a K block stay in the
//! L1 cache while the tokens of a pass stream from the L2 cache, whose bandwidth does not suffice for both; so tokens are
//! loaded with a non-temporal hint.
//!
//! Tile instructions keep the matrix unit busy and leave the vector units idle. The loop is software-pipelined: between
//! two tile instructions the vectors unpack a little of the next K block's weights and run a little of the epilogue of the
//! finished row blocks, so that out-of-order execution overlaps all three.

pub(crate) mod pack;

use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T1, _mm_prefetch};
use std::ops::Range;

use crate::blocking::{KC_AMX, KC_OUTER_AMX, MC_AMX, NC_AMX, ROW_BLOCK, ROW_BLOCK_PANELS};
use crate::isa::LANES;
use crate::isa::amx::{COLUMNS, PAIR, SumTiles, TILE_LEN, TileRegisters};
use crate::isa::amx::{multiply_add_2x2, store_and_load_sums, store_sums, zero_sums};
use crate::isa::avx512::Avx512;
use crate::product::tiles::{
    RowBlock, RowBlockGroup, ScratchSize, TileEpilogue, TileScratch, store_row,
};
use crate::weights::block::BlockType;
use crate::weights::layout::{QuantFormat, with_quant_format};
use pack::{BlockScales, SHAPE, silu_mul_to_tile, unpack, unpack_floats};

/// Length of a row block's K block as tiles, in bf16.
const WEIGHTS: usize = ROW_BLOCK * KC_AMX;
/// A worker's scratch for a row-block group. Two K blocks of bf16 take as many bytes as one of f32.
pub(crate) const SCRATCH: ScratchSize = ScratchSize {
    weights: WEIGHTS,
    sums: NC_AMX * MC_AMX * ROW_BLOCK,
};

/// Neighbouring row blocks whose results are stored together: rows of results lie pages apart, so that storing a few cache
/// lines of one row costs less than storing one line of as many rows.
const STORE_BLOCKS: usize = 4;

/// Parts in which a group is unpacked.
const QUARTERS: usize = 4;

/// Multiplies every row block of a group with its tokens, and runs the epilogues.
///
/// # Safety
/// AMX is permitted; row blocks are packed weights of their type; `x` holds as many tiles as `m` and `cols` take; epilogues
/// write inside their slices, and no other thread uses these elements.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
pub(crate) unsafe fn multiply(block_group: &RowBlockGroup, scratch: &mut TileScratch) {
    debug_assert!(block_group.m <= MC_AMX && block_group.row_blocks.len() <= NC_AMX);
    let (weights, sums) = scratch.take(SCRATCH);
    let weights = weights.cast::<u16>();
    let (mut here, mut there) = (weights, weights.wrapping_add(WEIGHTS));
    // With one outer K block, two sets of sums are live: those that accumulate, and those that are being stored.
    let slots = if block_group.cols <= KC_OUTER_AMX {
        2 * STORE_BLOCKS
    } else {
        NC_AMX
    };
    let slot = |s: usize| sums.wrapping_add(s % slots * MC_AMX * ROW_BLOCK);
    let mut scales = BlockScales::new();
    let first = KBlockIndex::default();
    let mut background = Background {
        unpacking: Some(Unpacking::new(block_group, first, here)),
        scales: &mut scales,
        stores: PendingStores::new(&[], block_group.m, sums, 1),
    };
    // SAFETY: the scratch has room for the tiles of two K blocks and for the sums of `NC_AMX` row blocks; weights, tiles
    // and epilogues are as the caller's contract says.
    unsafe {
        let _tiles = TileRegisters::new();
        background.finish_unpacking();
        zero_sums();
        let mut index = Some(first);
        while let Some(at) = index {
            index = at.next(block_group);
            background.unpacking = index.map(|next| Unpacking::new(block_group, next, there));
            let kernel = AmxMacroKernel {
                block_group,
                at,
                weights: here,
                sums: slot(at.row_block),
                next: index
                    .filter(|next| next.column > 0)
                    .map(|next| slot(next.row_block).cast_const()),
            };
            kernel.run(&mut background);
            let columns = at.outer_columns(block_group.cols);
            if at.column + KC_AMX >= columns.end {
                background.stores.finish();
                let run = match columns.end == block_group.cols {
                    true => joined_row_blocks(block_group.row_blocks, at.row_block),
                    false => &[],
                };
                let steps = block_group.m.div_ceil(PAIR) * columns.len() / COLUMNS;
                background.stores =
                    PendingStores::new(run, block_group.m, slot(at.row_block), steps);
            }
            std::mem::swap(&mut here, &mut there);
        }
        background.stores.finish();
    }
}

/// One K block of one row block.
#[derive(Clone, Copy, Default)]
struct KBlockIndex {
    row_block: usize,
    /// The first column of the K block.
    column: usize,
}

impl KBlockIndex {
    /// The order of the loops: K blocks of an outer K block, then row blocks, then outer K blocks.
    fn next(self, block_group: &RowBlockGroup) -> Option<KBlockIndex> {
        let columns = self.outer_columns(block_group.cols);
        let KBlockIndex {
            mut row_block,
            mut column,
        } = self;
        column += KC_AMX;
        if column >= columns.end {
            row_block += 1;
            column = columns.start;
        }
        if row_block == block_group.row_blocks.len() {
            row_block = 0;
            column = columns.end;
        }
        (column < block_group.cols).then_some(KBlockIndex { row_block, column })
    }

    fn outer_columns(self, cols: usize) -> Range<usize> {
        let first = self.column / KC_OUTER_AMX * KC_OUTER_AMX;
        first..(first + KC_OUTER_AMX).min(cols)
    }

    fn columns(self, cols: usize) -> Range<usize> {
        self.column..(self.column + KC_AMX).min(cols)
    }

    /// The address of its weights in the first panel of the row block.
    fn weights(self, block_group: &RowBlockGroup) -> usize {
        let row_block = &block_group.row_blocks[self.row_block];
        row_block.panels.as_ptr().addr() + row_block.panel_bytes * self.column / block_group.cols
    }
}

/// The row blocks up to `s` whose results are stored together with its own; none, if they wait for the next row block.
fn joined_row_blocks<'a>(row_blocks: &'a [RowBlock<'a>], s: usize) -> &'a [RowBlock<'a>] {
    let follows = |s: usize| match (row_blocks[s - 1].epilogue, row_blocks[s].epilogue) {
        (
            TileEpilogue::Store { y, first, .. },
            TileEpilogue::Store {
                y: z, first: next, ..
            },
        ) => std::ptr::eq(y, z) && first + ROW_BLOCK == next,
        _ => false,
    };
    let joined = |s: usize| !s.is_multiple_of(STORE_BLOCKS) && s < row_blocks.len() && follows(s);
    if joined(s + 1) {
        return &[];
    }
    let first = (0..=s).rev().find(|s| !joined(*s)).unwrap_or(s);
    &row_blocks[first..=s]
}

/// The macro-kernel: one K block of a row block times all tokens of the pass.
struct AmxMacroKernel<'a> {
    block_group: &'a RowBlockGroup<'a>,
    at: KBlockIndex,
    weights: *const u16,
    /// `[token][32]`.
    sums: *mut f32,
    /// The sums that the next K block accumulates to, or `None` where these begin at zero.
    next: Option<*const f32>,
}

impl<'a> AmxMacroKernel<'a> {
    /// Runs the micro-kernel for all tokens, with background work between its steps; leaves the next K block's first sums
    /// in the registers.
    ///
    /// # Safety
    /// Same as [`multiply`]; `weights` are unpacked, and the first sums are in the registers.
    #[inline(always)]
    unsafe fn run(&self, background: &mut Background<'a>) {
        let RowBlockGroup { m, cols, x, .. } = *self.block_group;
        let columns = self.at.columns(cols);
        let groups = columns.len() / COLUMNS;
        let pairs = m.div_ceil(PAIR);
        let mut unpacking = StepSchedule::new(background.to_unpack(), pairs * groups);
        // SAFETY: pairs of token blocks lie inside the tiles, groups inside the K block, sums inside the scratch, all by
        // the caller's contract.
        unsafe {
            let mut x = x.as_ptr().add(columns.start * pairs * PAIR);
            for this in 0..pairs {
                for group in 0..groups {
                    multiply_add_2x2(self.weights.add(group * ROW_BLOCK_PANELS * TILE_LEN), x);
                    x = x.add(2 * TILE_LEN);
                    if unpacking.is_due() {
                        background.unpack();
                    }
                    if background.stores.schedule.is_due() {
                        background.stores.next();
                    }
                }
                let pair = |pair: usize| self.sums.wrapping_add(pair * PAIR * ROW_BLOCK);
                let next = match this + 1 {
                    last if last == pairs => self.next,
                    next => (columns.start > 0).then_some(pair(next).cast_const()),
                };
                let sums = SumTiles {
                    at: pair(this),
                    stride: ROW_BLOCK,
                };
                match next {
                    Some(next) => store_and_load_sums(sums, next),
                    None => {
                        store_sums(sums);
                        zero_sums();
                    }
                }
            }
            background.finish_unpacking();
        }
    }
}

/// Spreads `tasks` evenly over `steps` (Bresenham's algorithm).
struct StepSchedule {
    tasks: usize,
    steps: usize,
    owed: usize,
}

impl StepSchedule {
    fn new(tasks: usize, steps: usize) -> StepSchedule {
        let owed = 0;
        StepSchedule { tasks, steps, owed }
    }

    /// Advances a step; returns true if a task is due after it.
    #[inline(always)]
    fn is_due(&mut self) -> bool {
        self.owed += self.tasks;
        let is_due = self.owed >= self.steps;
        if is_due {
            self.owed -= self.steps;
        }
        is_due
    }
}

/// The work of the vector units between tile instructions.
struct Background<'a> {
    unpacking: Option<Unpacking>,
    scales: &'a mut BlockScales,
    stores: PendingStores<'a>,
}

impl Background<'_> {
    fn to_unpack(&self) -> usize {
        self.unpacking.as_ref().map_or(0, |it| it.left)
    }

    /// Unpacks one quarter of a group.
    ///
    /// # Safety
    /// Same as [`Unpacking::next`].
    #[inline(always)]
    unsafe fn unpack(&mut self) {
        if let Some(unpacking) = &mut self.unpacking {
            // SAFETY: the pointer is the one for `quarter`, and the caller's contract is that of `next`.
            unsafe { (unpacking.next[unpacking.quarter])(unpacking, self.scales) };
        }
    }

    /// Unpacks what is left.
    ///
    /// # Safety
    /// Same as [`Unpacking::next`], for all quarters that are left.
    #[inline(always)]
    unsafe fn finish_unpacking(&mut self) {
        for _ in 0..self.to_unpack() {
            // SAFETY: `to_unpack` quarters are left; the rest is the caller's contract.
            unsafe { self.unpack() };
        }
    }
}

/// Sums that wait for their epilogue.
struct PendingStores<'a> {
    /// The row blocks of the sums.
    run: &'a [RowBlock<'a>],
    m: usize,
    /// The next token, and the end.
    token: usize,
    last: usize,
    /// The sums of `token` in the last row block; those of previous row blocks, and of a gate, lie one slot before each.
    sums: *const f32,
    schedule: StepSchedule,
}

impl<'a> PendingStores<'a> {
    /// The sums of `m` tokens, stored within `steps` steps.
    fn new(run: &'a [RowBlock<'a>], m: usize, sums: *const f32, steps: usize) -> Self {
        let last = match run.last().map(|row_block| row_block.epilogue) {
            None | Some(TileEpilogue::Gate) => 0,
            Some(_) => m,
        };
        PendingStores {
            run,
            m,
            token: 0,
            last,
            sums,
            schedule: StepSchedule::new(last, steps),
        }
    }

    /// Stores what is left.
    ///
    /// # Safety
    /// Same as [`PendingStores::next`], for all tokens that are left.
    #[inline(always)]
    unsafe fn finish(&mut self) {
        for _ in self.token..self.last {
            // SAFETY: tokens `token..last` are left; the rest is the caller's contract.
            unsafe { self.next() };
        }
    }

    /// The distance, in results of `width` per token, from the current results to those that this position in a pair
    /// stores next: of the next pair, or of the first pair in the next set of row blocks.
    #[inline(always)]
    fn ahead(&self, width: usize) -> usize {
        if self.token + PAIR < self.m {
            PAIR * width
        } else {
            (STORE_BLOCKS * ROW_BLOCK + self.token % PAIR * width).wrapping_sub(self.token * width)
        }
    }

    /// Runs the epilogue for one token.
    ///
    /// # Safety
    /// Same as [`multiply`]; a token is left.
    #[inline(always)]
    unsafe fn next(&mut self) {
        // SAFETY: only this worker writes a token's results of these row blocks, and its row of the tile of their column
        // group; sums are two vectors for each token, and a gate's lie one slot before those of the next row block.
        unsafe {
            for (row_block, before) in self.run.iter().zip((0..self.run.len()).rev()) {
                let sums = self.sums.wrapping_sub(before * MC_AMX * ROW_BLOCK);
                match row_block.epilogue {
                    TileEpilogue::Store {
                        y,
                        first,
                        rows,
                        width,
                        add,
                    } => {
                        let y = y.slice(self.token * width + first, rows);
                        let later = y.as_ptr().wrapping_add(self.ahead(width));
                        prefetch_results(later);
                        store_row::<Avx512>(sums, y, add);
                    }
                    TileEpilogue::SwiGlu {
                        to, group, cols, ..
                    } => {
                        let (block, row) = (self.token / PAIR, self.token % PAIR);
                        let tile = SHAPE.tile(self.m, cols, block, group);
                        let to = to.slice(tile + row * COLUMNS, COLUMNS);
                        silu_mul_to_tile(sums.wrapping_sub(MC_AMX * ROW_BLOCK), sums, to);
                    }
                    TileEpilogue::Gate => {}
                }
            }
        }
        self.sums = self.sums.wrapping_add(ROW_BLOCK);
        self.token += 1;
    }
}

/// Prefetches two cache lines for writing: rows of results lie too far apart for the hardware prefetcher.
#[inline(always)]
fn prefetch_results(y: *const f32) {
    // SAFETY: a prefetch accesses no memory and ignores invalid addresses.
    unsafe {
        _mm_prefetch::<_MM_HINT_ET0>(y.cast());
        _mm_prefetch::<_MM_HINT_ET0>(y.wrapping_add(LANES).cast());
    }
}

/// A K block while it is unpacked to tiles: `[group][panel][16 pairs of columns][16 rows][2]` bf16.
struct Unpacking {
    ty: BlockType,
    /// The columns of each panel, and the bytes of a panel.
    columns: Range<usize>,
    panel_bytes: usize,
    /// The next quarter: its panel, its first column, and its number in the group.
    panel: *const u8,
    column: usize,
    quarter: usize,
    /// The tile of its group.
    tile: *mut u16,
    /// Quarters left.
    left: usize,
    /// The distance to the weights of the next K block, which are prefetched if they are quantised.
    ahead: usize,
    /// Unpacks the next quarter, by its number in the group.
    ///
    /// # Safety
    /// Same as [`multiply`]; a quarter is left, and `tile` has room for a row block's K block.
    next: [unsafe fn(&mut Self, &mut BlockScales); QUARTERS],
}

impl Unpacking {
    fn new(block_group: &RowBlockGroup, index: KBlockIndex, to: *mut u16) -> Self {
        let row_block = &block_group.row_blocks[index.row_block];
        let columns = index.columns(block_group.cols);
        let panels = row_block.panels.len() / row_block.panel_bytes;
        let ahead = index.next(block_group).map_or(0, |later| {
            later
                .weights(block_group)
                .wrapping_sub(index.weights(block_group))
        });
        Unpacking {
            ty: row_block.ty,
            panel_bytes: row_block.panel_bytes,
            panel: row_block.panels.as_ptr(),
            column: columns.start,
            quarter: 0,
            tile: to,
            left: panels * columns.len() / COLUMNS * QUARTERS,
            columns,
            ahead,
            next: with_quant_format!(
                row_block.ty,
                F => [next::<F, 0>, next::<F, 1>, next::<F, 2>, next::<F, 3>],
                else [next_floats; QUARTERS]
            ),
        }
    }

    /// Advances to the next quarter.
    #[inline(always)]
    fn advance(&mut self) {
        self.left -= 1;
        self.quarter = (self.quarter + 1) % QUARTERS;
        if self.quarter > 0 {
            return;
        }
        self.column += COLUMNS;
        self.tile = self.tile.wrapping_add(ROW_BLOCK_PANELS * TILE_LEN);
        if self.column == self.columns.end {
            self.column = self.columns.start;
            self.panel = self.panel.wrapping_add(self.panel_bytes);
            let groups = self.columns.len() / COLUMNS;
            self.tile = self
                .tile
                .wrapping_sub((groups * ROW_BLOCK_PANELS - 1) * TILE_LEN);
        }
    }
}

/// [`Unpacking::next`] of quantised weights, quarter `Q`.
///
/// # Safety
/// Same as [`Unpacking::next`]; the weights are of type `F`.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
unsafe fn next<F: QuantFormat, const Q: usize>(it: &mut Unpacking, scales: &mut BlockScales) {
    let layout = F::LAYOUT;
    let bytes = layout.block_bytes() * COLUMNS / (layout.cols * QUARTERS);
    let done = (it.column / COLUMNS * QUARTERS + Q) * bytes;
    let later = it.panel.wrapping_add(done).wrapping_add(it.ahead);
    // SAFETY: a prefetch accesses no memory; by the caller's contract a quarter is left, so that the group lies inside the
    // panel and its tile inside the scratch.
    unsafe {
        for line in (0..bytes).step_by(64) {
            _mm_prefetch::<_MM_HINT_T1>(later.wrapping_add(line).cast());
        }
        unpack::<F, Q>(it.panel, it.column, scales, it.tile);
    }
    it.advance();
}

/// [`Unpacking::next`] of weights that are floats.
///
/// # Safety
/// Same as [`Unpacking::next`].
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
unsafe fn next_floats(it: &mut Unpacking, _: &mut BlockScales) {
    // SAFETY: by the caller's contract a quarter is left, so that the group lies inside the panel and its tile inside the
    // scratch.
    unsafe { unpack_floats(it.ty, it.panel, it.column, it.quarter, it.tile) };
    it.advance();
}

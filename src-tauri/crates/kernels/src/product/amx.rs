//! The loop of a product in tiles.
//!
//! The sums of 32 tokens and 32 rows stay in registers for a slab of 512 columns. A row_block's weights of a slab stay in the
//! L1 cache while the tokens of a kernel come by from the L2 cache, which as much bandwidth would not do for both; so
//! tokens are loaded with a hint that they are not used again soon. Longer slabs would store sums less often, but push
//! their own weights out.
//!
//! Tile instructions keep the matrix unit busy and leave the vectors idle. Meanwhile these make tiles of the weights that
//! come next, and hand on the sums of the row_blocks before: a little of each after every step, so that a core, which looks
//! some hundred instructions ahead, does all of it at once.

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

/// PackedBytes of a row_block's slab, as tiles.
const WEIGHTS: usize = ROW_BLOCK * KC_AMX;
/// What a worker needs for a block_group. The tiles of two slabs: numbers of 16 bits take half of those of 32.
pub(crate) const SCRATCH: ScratchSize = ScratchSize {
    weights: WEIGHTS,
    sums: NC_AMX * MC_AMX * ROW_BLOCK,
};

/// Strips whose stores are handed on together, where they are neighbours: rows of stores lie pages apart, so that a
/// few lines of one at a time are had more cheaply than two.
const STORE_BLOCKS: usize = 4;

/// DisjointSlice in which a group is unpacked.
const QUARTERS: usize = 4;

/// Multiplies every row_block of a block_group with its tokens.
///
/// # Safety
/// AMX is permitted; row_blocks are packed weights of their type; `x` holds as many tiles as `m` and
/// `cols` take; ends lie inside their parts, and nobody else uses these.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
pub(crate) unsafe fn multiply(block_group: &RowBlockGroup, scratch: &mut TileScratch) {
    debug_assert!(block_group.m <= MC_AMX && block_group.row_blocks.len() <= NC_AMX);
    let (weights, sums) = scratch.take(SCRATCH);
    let weights = weights.cast::<u16>();
    let (mut here, mut there) = (weights, weights.wrapping_add(WEIGHTS));
    // With one outer_columns only two runs' sums have to be kept: those that grow, and those that are handed on.
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
    // SAFETY: the scratch has room for the tiles of two slabs and for all sums; what a row_block and its end
    // need is the caller's.
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
                    true => run(block_group.row_blocks, at.row_block),
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

/// Which slab of which row_block.
#[derive(Clone, Copy, Default)]
struct KBlockIndex {
    row_block: usize,
    /// The slab's first column.
    column: usize,
}

impl KBlockIndex {
    /// After the slabs of a outer_columns come those of the next row_block, and after all row_blocks the next outer_columns.
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

    /// Where its weights begin in the row_block's first panel.
    fn weights(self, block_group: &RowBlockGroup) -> usize {
        let row_block = &block_group.row_blocks[self.row_block];
        row_block.panels.as_ptr().addr() + row_block.panel_bytes * self.column / block_group.cols
    }
}

/// The row_blocks up to `s` whose stores are handed on with its own; none, if they wait for those of the next.
fn run<'a>(row_blocks: &'a [RowBlock<'a>], s: usize) -> &'a [RowBlock<'a>] {
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

/// A row_block's slab.
struct AmxMacroKernel<'a> {
    block_group: &'a RowBlockGroup<'a>,
    at: KBlockIndex,
    weights: *const u16,
    /// `[token][32]`.
    sums: *mut f32,
    /// The sums with which the next slab goes on, unless it begins anew.
    next: Option<*const f32>,
}

impl<'a> AmxMacroKernel<'a> {
    /// Multiplies it, and does what is to be done background; leaves the next slab's first sums in the registers.
    ///
    /// # Safety
    /// As [`multiply`]; the weights are unpacked, and its own first sums are in the registers.
    #[inline(always)]
    unsafe fn run(&self, background: &mut Background<'a>) {
        let RowBlockGroup { m, cols, x, .. } = *self.block_group;
        let columns = self.at.columns(cols);
        let groups = columns.len() / COLUMNS;
        let pairs = m.div_ceil(PAIR);
        let mut unpacking = StepSchedule::new(background.to_unpack(), pairs * groups);
        // SAFETY: pairs of token blocks lie inside the tiles, groups inside the slab, sums inside the scratch.
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

/// Spreads some tasks of work over so many steps.
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

    /// Takes a step; whether a task is due after it.
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

/// What is done between tile instructions.
struct Background<'a> {
    unpacking: Option<Unpacking>,
    scales: &'a mut BlockScales,
    stores: PendingStores<'a>,
}

impl Background<'_> {
    fn to_unpack(&self) -> usize {
        self.unpacking.as_ref().map_or(0, |it| it.left)
    }

    /// # Safety
    /// As [`Unpacking::next`].
    #[inline(always)]
    unsafe fn unpack(&mut self) {
        if let Some(unpacking) = &mut self.unpacking {
            // SAFETY: passed on.
            unsafe { (unpacking.next[unpacking.quarter])(unpacking, self.scales) };
        }
    }

    /// # Safety
    /// As [`Unpacking::next`].
    #[inline(always)]
    unsafe fn finish_unpacking(&mut self) {
        for _ in 0..self.to_unpack() {
            // SAFETY: passed on.
            unsafe { self.unpack() };
        }
    }
}

/// SumTiles on their way to where they belong.
struct PendingStores<'a> {
    /// The row_blocks that they are of.
    run: &'a [RowBlock<'a>],
    m: usize,
    /// The token that comes next, and where they end.
    token: usize,
    last: usize,
    /// Of `token` and the run's last row_block; those of the row_blocks before, and of a gate, are as many slots before.
    sums: *const f32,
    schedule: StepSchedule,
}

impl<'a> PendingStores<'a> {
    /// Those of `m` tokens, within so many steps.
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

    /// # Safety
    /// As [`PendingStores::next`].
    #[inline(always)]
    unsafe fn finish(&mut self) {
        for _ in self.token..self.last {
            // SAFETY: passed on.
            unsafe { self.next() };
        }
    }

    /// How much further on stores of `width` are those that this index gets next: the token's in the next pair,
    /// or in the next run's first.
    #[inline(always)]
    fn ahead(&self, width: usize) -> usize {
        if self.token + PAIR < self.m {
            PAIR * width
        } else {
            (STORE_BLOCKS * ROW_BLOCK + self.token % PAIR * width).wrapping_sub(self.token * width)
        }
    }

    /// Hands on the sums of a token.
    ///
    /// # Safety
    /// As [`multiply`]; there is one left.
    #[inline(always)]
    unsafe fn next(&mut self) {
        // SAFETY: a token's stores of these row_blocks are this worker's alone, as is a row of the tile that is their
        // column group; sums are two vectors of each token, and a gate's lie one slot before its twin's.
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

/// Asks for two lines to be written: rows of stores lie so far apart that nothing else foresees them.
#[inline(always)]
fn prefetch_results(y: *const f32) {
    // SAFETY: a hint: what cannot be fetched is not.
    unsafe {
        _mm_prefetch::<_MM_HINT_ET0>(y.cast());
        _mm_prefetch::<_MM_HINT_ET0>(y.wrapping_add(LANES).cast());
    }
}

/// A slab on its way to tiles: `[group][panel][16 pairs of columns][16 rows][2]` bf16.
struct Unpacking {
    ty: BlockType,
    /// The columns of each panel, and the bytes from panel to panel.
    columns: Range<usize>,
    panel_bytes: usize,
    /// Where the next quarter is: in which panel, from which column on, and which of that group.
    panel: *const u8,
    column: usize,
    quarter: usize,
    /// Where its group goes.
    tile: *mut u16,
    /// Quarters still to do.
    left: usize,
    /// From weights to those that are unpacked a slab later, which are asked for meanwhile if they are quantised.
    ahead: usize,
    /// Unpack the next quarter, according to which it is.
    ///
    /// # Safety
    /// As [`multiply`]; there is one left, and `tile` has room for a row_block's slab.
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

    /// Goes on to the next quarter.
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
/// As there.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
unsafe fn next<F: QuantFormat, const Q: usize>(it: &mut Unpacking, scales: &mut BlockScales) {
    let layout = F::LAYOUT;
    let bytes = layout.block_bytes() * COLUMNS / (layout.cols * QUARTERS);
    let done = (it.column / COLUMNS * QUARTERS + Q) * bytes;
    let later = it.panel.wrapping_add(done).wrapping_add(it.ahead);
    // SAFETY: what cannot be fetched ahead is not; the group lies inside the panel, and its tile inside the room.
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
/// As there.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
unsafe fn next_floats(it: &mut Unpacking, _: &mut BlockScales) {
    // SAFETY: the group lies inside the panel, and its tile inside the room.
    unsafe { unpack_floats(it.ty, it.panel, it.column, it.quarter, it.tile) };
    it.advance();
}

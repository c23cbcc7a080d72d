//! Products of many tokens in integers, on vectors.
//!
//! A K block of a row block is unpacked to bytes in the L1 cache; then the activations of all tokens of the pass, packed in
//! the order in which the micro-kernel reads them, stream over it from the L2 cache. A micro-tile is one panel by as many
//! tokens as there are registers for sums: each vector of weights is loaded once for all of them, and an activation is
//! broadcast by the instruction that multiplies it.

use std::ops::Range;

use super::stream::add_group;
use super::tiles::{RowBlock, RowBlockGroup, ScratchSize, TileEpilogue, TileScratch, store_row};
use crate::blocking::{
    KC_INTEGERS, KC_OUTER_INTEGERS, MC_INTEGERS, NC_INTEGERS, ROW_BLOCK, ROW_BLOCK_PANELS,
};
use crate::elementwise::silu_mul_vector;
use crate::isa::{Isa, LANES};
use crate::product::activations::{ActivationScale, Granularity, TileShape, quantise_group};
use crate::weights::layout::{GROUP, Layout, QuantFormat, quants, scales, with_quant_format};

/// Bytes of a token's group: 32 activations and the four floats of [`store_group`].
const GROUP_BYTES: usize = GROUP + 4 * size_of::<f32>();

/// The tiles of `mr` tokens: `[column / 4][token][4]` bytes, then four floats as `[4][token]`.
pub(crate) const fn shape(mr: usize) -> TileShape {
    TileShape {
        mr,
        kc: KC_INTEGERS,
        group_len: GROUP_BYTES / size_of::<u16>(),
    }
}

/// Quantises `columns` of the rows of `x`, each of `cols` floats, to tiles of `MR` tokens.
///
/// # Safety
/// The machine has `I`; `x` is whole rows, `columns` are whole groups of them, and `tiles` is as many whole tiles.
#[inline(always)]
pub(crate) unsafe fn pack_activations<I: Isa, const MR: usize>(
    granularity: Granularity,
    x: &[f32],
    cols: usize,
    columns: Range<usize>,
    tiles: &mut [u16],
) {
    let groups = columns.len() / GROUP;
    debug_assert!(tiles.len() * 2 == (x.len() / cols).div_ceil(MR) * MR * groups * GROUP_BYTES);
    for (t, x) in x.chunks_exact(cols).enumerate() {
        for g in 0..groups {
            // SAFETY: the group lies in the row, and the tile in `tiles`, which begins at an even address.
            unsafe {
                let x = x.as_ptr().add(columns.start + g * GROUP);
                let tile = tiles.as_mut_ptr().cast::<u8>();
                let tile = tile.add((t / MR * groups + g) * MR * GROUP_BYTES);
                store_group::<I, MR>(
                    granularity,
                    [I::load(x), I::load(x.add(LANES))],
                    tile,
                    t % MR,
                );
            }
        }
    }
}

/// Quantises a group as token `t` of a tile. The floats that follow the bytes are scale, total and the sums of the halves,
/// or the scales of the halves and their sums.
///
/// # Safety
/// The machine has `I`, `t` is below `MR`, and `tile` is writable for a whole tile.
#[inline(always)]
unsafe fn store_group<I: Isa, const MR: usize>(
    granularity: Granularity,
    x: [I::F; 2],
    tile: *mut u8,
    t: usize,
) {
    let mut bytes = [[0_i8; 4]; GROUP / 4];
    // SAFETY: `t < MR`, so that every quad and float lies inside the tile, which the caller has for writing; the tile is
    // aligned to 16 bits only, hence the unaligned writes.
    unsafe {
        let ActivationScale { scale, sum, total } =
            quantise_group::<I>(granularity, x, bytes.as_mut_ptr().cast());
        let numbers = match granularity {
            Granularity::Group => [scale[0], total, sum[0], sum[1]],
            Granularity::Half => [scale[0], scale[1], sum[0], sum[1]],
        };
        for v in 0..GROUP / 4 {
            tile.add((v * MR + t) * 4).cast::<[i8; 4]>().write(bytes[v]);
        }
        let after = tile.add(GROUP * MR).cast::<f32>();
        for n in 0..4 {
            after.add(n * MR + t).write_unaligned(numbers[n]);
        }
    }
}

/// A K block of a row block, unpacked.
#[repr(C, align(64))]
struct UnpackedBlock {
    /// `[panel][group][8][64]`.
    weights: [[[u8; 64 * 8]; KC_INTEGERS / GROUP]; ROW_BLOCK_PANELS],
    /// `[panel][group][half][16]`.
    scale: [[[[f32; LANES]; 2]; KC_INTEGERS / GROUP]; ROW_BLOCK_PANELS],
    min: [[[[f32; LANES]; 2]; KC_INTEGERS / GROUP]; ROW_BLOCK_PANELS],
}

/// A worker's scratch for a row-block group.
pub(crate) const SCRATCH: ScratchSize = ScratchSize {
    weights: size_of::<UnpackedBlock>() / size_of::<f32>(),
    sums: NC_INTEGERS * MC_INTEGERS * ROW_BLOCK,
};

/// Multiplies every row block of a group with its tokens, in micro-tiles of `MR` tokens, and runs the epilogues.
///
/// # Safety
/// The machine has `I`; row blocks are packed weights of their type; `x` holds as many tiles as `m` and `cols` take;
/// epilogues write inside their slices, and no other thread uses these elements.
#[inline(always)]
pub(crate) unsafe fn multiply<I: Isa, const MR: usize>(
    block_group: &RowBlockGroup,
    scratch: &mut TileScratch,
) {
    let RowBlockGroup {
        m,
        cols,
        x,
        row_blocks,
    } = *block_group;
    debug_assert!(m <= MC_INTEGERS && row_blocks.len() <= NC_INTEGERS);
    let (unpacked, sums) = scratch.take(SCRATCH);
    // SAFETY: the scratch has room, aligned to a cache line, for an `UnpackedBlock`, for which any bytes are valid, and
    // for the sums of `NC_INTEGERS` row blocks; weights and tiles are as long as the caller's contract says.
    unsafe {
        let unpacked = &mut *unpacked.cast::<UnpackedBlock>();
        for outer in (0..cols).step_by(KC_OUTER_INTEGERS) {
            let end = (outer + KC_OUTER_INTEGERS).min(cols);
            for (s, row_block) in row_blocks.iter().enumerate() {
                let sums = sums.add(s * MC_INTEGERS * ROW_BLOCK);
                for first in (outer..end).step_by(KC_INTEGERS) {
                    let groups = (end - first).min(KC_INTEGERS) / GROUP;
                    unpack::<I>(row_block, first, groups, unpacked);
                    let tiles = shape(MR).tile(m, cols, 0, first / GROUP);
                    let x = x.as_ptr().add(tiles).cast();
                    let panels = row_block.panels.len() / row_block.panel_bytes;
                    let kernel = IntegerMacroKernel {
                        unpacked,
                        panels,
                        groups,
                        x,
                        m,
                        sums,
                        first_block: first == 0,
                    };
                    let layout = Layout::of(row_block.ty);
                    if layout.full_bytes() {
                        match layout.halves() {
                            1 => kernel.run::<I, MR, 1, true, 8>(),
                            _ => kernel.run::<I, MR, 2, true, 4>(),
                        }
                        continue;
                    }
                    match (
                        layout.halves(),
                        if I::SHORT { layout.short_run() } else { 8 },
                    ) {
                        (1, 4) => kernel.run::<I, MR, 1, false, 4>(),
                        (1, _) => kernel.run::<I, MR, 1, false, 8>(),
                        (_, 2) => kernel.run::<I, MR, 2, false, 2>(),
                        _ => kernel.run::<I, MR, 2, false, 4>(),
                    }
                }
                if end == cols {
                    run_epilogue::<I, MR>(
                        row_block,
                        m,
                        sums,
                        sums.wrapping_sub(MC_INTEGERS * ROW_BLOCK),
                    );
                }
            }
        }
    }
}

/// Unpacks `groups` groups of a row block from column `first` on.
///
/// # Safety
/// Same as [`multiply`]; the row block has these columns.
#[inline(always)]
unsafe fn unpack<I: Isa>(
    row_block: &RowBlock,
    first: usize,
    groups: usize,
    unpacked: &mut UnpackedBlock,
) {
    for (p, panel) in row_block
        .panels
        .chunks_exact(row_block.panel_bytes)
        .enumerate()
    {
        // SAFETY: `panel` is one panel of the row block, packed as its type, and has the caller's columns.
        unsafe {
            with_quant_format!(
                row_block.ty,
                F => unpack_panel::<I, F>(panel.as_ptr(), first, groups, p, unpacked),
                else debug_assert!(false, "float weights meet floats")
            );
        }
    }
}

/// Unpacks panel `p`, like [`unpack`].
///
/// # Safety
/// The machine has `I`; `panel` is a packed panel of `F` with `groups` groups from column `first` on.
#[inline(always)]
unsafe fn unpack_panel<I: Isa, F: QuantFormat>(
    panel: *const u8,
    first: usize,
    groups: usize,
    p: usize,
    unpacked: &mut UnpackedBlock,
) {
    let layout = F::LAYOUT;
    let (mut scale, mut min) = ([0.0_f32; 256], [0.0_f32; 256]);
    // The prefetch distance is one K block.
    let ahead = KC_INTEGERS / layout.cols * layout.block_bytes();
    // SAFETY: blocks and groups stay inside the panel, and `groups` is at most the K block that `unpacked` holds. A
    // prefetch accesses no memory.
    unsafe {
        let per_block = layout.cols / GROUP;
        for g in 0..groups {
            let block = panel.add((first + g * GROUP) / layout.cols * layout.block_bytes());
            let inner = g % per_block;
            if inner == 0 {
                for line in (0..layout.block_bytes()).step_by(64) {
                    I::prefetch(block.wrapping_add(ahead + line));
                }
                scales::<I, F>(block, scale.as_mut_ptr(), min.as_mut_ptr());
            }
            let w = quants::<I, F>(block, inner);
            let to = unpacked.weights[p][g].as_mut_ptr();
            for (v, w) in w.into_iter().enumerate() {
                I::store_w(to.add(v * 64), w);
            }
            for h in 0..layout.halves() {
                let from = layout.scale_of(inner, h) * LANES;
                I::store(
                    unpacked.scale[p][g][h].as_mut_ptr(),
                    I::load(scale.as_ptr().add(from)),
                );
                I::store(
                    unpacked.min[p][g][h].as_mut_ptr(),
                    I::load(min.as_ptr().add(from)),
                );
            }
        }
    }
}

/// The macro-kernel: one unpacked K block times all tokens of the pass.
struct IntegerMacroKernel<'a> {
    unpacked: &'a UnpackedBlock,
    panels: usize,
    groups: usize,
    /// The activations of the K block, as tiles.
    x: *const u8,
    m: usize,
    /// `[token][32]`.
    sums: *mut f32,
    /// True for the first K block, whose sums begin at zero.
    first_block: bool,
}

impl IntegerMacroKernel<'_> {
    /// Runs the micro-kernel for all tokens and panels. A group has `HALVES` scales; `BYTES` weights take a full byte;
    /// the products of `RUN` quads are added up before they are widened.
    ///
    /// # Safety
    /// Same as [`multiply`], for its tiles, sums and unpacked weights.
    #[inline(always)]
    unsafe fn run<
        I: Isa,
        const MR: usize,
        const HALVES: usize,
        const BYTES: bool,
        const RUN: usize,
    >(
        &self,
    ) {
        for token in (0..self.m).step_by(MR) {
            for p in 0..self.panels {
                let mut at = MicroTileIndex {
                    p,
                    token,
                    within: 0,
                };
                let left = (self.m - token).min(MR);
                // SAFETY: the micro-tiles are the powers of two that add up to `left`, so that `within` plus the width of
                // each stays at or below `left`, and all tokens exist.
                unsafe {
                    if left == MR {
                        self.micro_tile::<I, MR, HALVES, BYTES, RUN, MR>(at);
                        continue;
                    }
                    if left & 8 != 0 {
                        self.micro_tile::<I, MR, HALVES, BYTES, RUN, 8>(at);
                        at.within += 8;
                    }
                    if left & 4 != 0 {
                        self.micro_tile::<I, MR, HALVES, BYTES, RUN, 4>(at);
                        at.within += 4;
                    }
                    if left & 2 != 0 {
                        self.micro_tile::<I, MR, HALVES, BYTES, RUN, 2>(at);
                        at.within += 2;
                    }
                    if left & 1 != 0 {
                        self.micro_tile::<I, MR, HALVES, BYTES, RUN, 1>(at);
                    }
                }
            }
        }
    }

    /// The micro-kernel: one panel times `N` tokens of a tile of `MR`, with all sums in registers.
    ///
    /// # Safety
    /// Same as [`multiply`]; `at.token + at.within + N` is at most `m`.
    #[inline(always)]
    unsafe fn micro_tile<
        I: Isa,
        const MR: usize,
        const HALVES: usize,
        const BYTES: bool,
        const RUN: usize,
        const N: usize,
    >(
        &self,
        at: MicroTileIndex,
    ) {
        // SAFETY: panel, groups and tokens lie inside the unpacked K block, the tiles and the sums by the caller's
        // contract; the floats of a tile are aligned to 16 bits only, hence the unaligned reads.
        unsafe {
            let sums_at = self
                .sums
                .add((at.token + at.within) * ROW_BLOCK + at.p * LANES);
            let mut sums = [I::splat(0.0); N];
            if !self.first_block {
                for t in 0..N {
                    sums[t] = I::load(sums_at.add(t * ROW_BLOCK));
                }
            }
            let tiles = self.x.add(at.token * self.groups * GROUP_BYTES);
            for g in 0..self.groups {
                let tile = tiles.add(g * MR * GROUP_BYTES);
                let bytes = tile.add(at.within * 4);
                let numbers = tile.add(GROUP * MR).cast::<f32>().add(at.within);
                let weights = self.unpacked.weights[at.p][g].as_ptr();
                for h in 0..HALVES {
                    let mut acc = [I::zero_i(); N];
                    let quads = GROUP / 4 / HALVES;
                    for run in (h * quads..(h + 1) * quads).step_by(RUN) {
                        let mut part = [I::zero_i(); N];
                        for v in run..run + RUN {
                            let w = I::load_w(weights.add(v * 64));
                            for t in 0..N {
                                let quad = I::splat_quad(bytes.add((v * MR + t) * 4).cast());
                                part[t] = if BYTES {
                                    I::dot_bytes(part[t], w, quad)
                                } else {
                                    I::dot_short(part[t], w, quad)
                                };
                            }
                        }
                        for t in 0..N {
                            acc[t] = match BYTES {
                                true => part[t],
                                false => I::add_short(acc[t], part[t]),
                            };
                        }
                    }
                    let scale = I::load(self.unpacked.scale[at.p][g][h].as_ptr());
                    let min = I::load(self.unpacked.min[at.p][g][h].as_ptr());
                    let (unit, sum) = (
                        if BYTES { h } else { 0 },
                        if HALVES == 1 { 1 } else { 2 + h },
                    );
                    for t in 0..N {
                        let unit = numbers.add(unit * MR + t).read_unaligned();
                        let sum = numbers.add(sum * MR + t).read_unaligned();
                        sums[t] = add_group::<I>(sums[t], acc[t], scale, min, (unit, sum));
                    }
                }
            }
            for t in 0..N {
                I::store(sums_at.add(t * ROW_BLOCK), sums[t]);
            }
        }
    }
}

/// A panel, and the first token of a micro-tile in a tile.
#[derive(Clone, Copy)]
struct MicroTileIndex {
    p: usize,
    /// The first token of the tile.
    token: usize,
    within: usize,
}

/// Runs the epilogue of a row block: stores the sums of `m` tokens, adds them, or passes them through SwiGLU.
///
/// # Safety
/// Same as [`multiply`]; `gate` is the sums of the previous row block.
#[inline(always)]
unsafe fn run_epilogue<I: Isa, const MR: usize>(
    row_block: &RowBlock,
    m: usize,
    sums: *const f32,
    gate: *const f32,
) {
    for t in 0..m {
        // SAFETY: only this worker writes a token's results of this row block, and its part of the tile of their column
        // group; sums are two vectors for each token.
        unsafe {
            let (sums, gate) = (sums.add(t * ROW_BLOCK), gate.wrapping_add(t * ROW_BLOCK));
            match row_block.epilogue {
                TileEpilogue::Gate => return,
                TileEpilogue::Store {
                    y,
                    first,
                    rows,
                    width,
                    add,
                } => {
                    store_row::<I>(sums, y.slice(t * width + first, rows), add);
                }
                TileEpilogue::SwiGlu {
                    to,
                    granularity,
                    group,
                    cols,
                } => {
                    let tile = shape(MR).tile(m, cols, t / MR, group);
                    let tile = to.slice(tile, MR * GROUP_BYTES / size_of::<u16>());
                    let low = silu_mul_vector::<I>(I::load(gate), I::load(sums));
                    let high =
                        silu_mul_vector::<I>(I::load(gate.add(LANES)), I::load(sums.add(LANES)));
                    store_group::<I, MR>(
                        granularity,
                        [low, high],
                        tile.as_mut_ptr().cast(),
                        t % MR,
                    );
                }
            }
        }
    }
}

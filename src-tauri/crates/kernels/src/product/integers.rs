//! Products of many tokens in integers, on vectors.
//!
//! A stage of columns of a strip is unpacked to bytes in the L1 cache; then every token's activations, which lie in
//! the order in which the loop reads them, pass it from the L2 cache. A tile is one panel by as many tokens as there
//! are registers for sums: each vector of weights is loaded once for all of them, and an activation comes with the
//! instruction that multiplies it.

use std::ops::Range;

use super::stream::add_group;
use super::tiles::{Bunch, Desk, End, Room, Strip, deliver};
use crate::blocking::{STRIP, STRIP_PANELS};
use crate::elementwise::silu_mul_vector;
use crate::isa::{Isa, LANES};
use crate::product::activations::{Grain, Scale, TileShape, round_group};
use crate::weights::layout::{Format, GROUP, Layout, quants, scales, with_format};

/// Tokens of a pass: with the columns of a slab they are 400 KiB, for an L2 cache of half a megabyte or more.
pub(crate) const TOKENS: usize = 264;
/// The most strips of a bunch: few, so that a slow core can leave the others many.
pub(crate) const BUNCH: usize = 4;
/// Columns of a slab.
const SLAB: usize = 1024;
/// Columns unpacked at a time.
const STAGE: usize = 512;
/// Bytes of a token's group: 32 activations and the four numbers of [`place`].
const ROW: usize = GROUP + 4 * size_of::<f32>();

/// What tiles of `tokens` tokens look like: `[column / 4][token][4]` bytes, then four numbers as `[4][token]`.
pub(crate) const fn shape(tokens: usize) -> TileShape {
    TileShape {
        tokens,
        room: tokens,
        slab: STAGE,
        row: ROW / size_of::<u16>(),
    }
}

/// Rounds some columns of rows of `cols` numbers to tiles of `T` tokens.
///
/// # Safety
/// The machine has `I`; `x` is whole rows, `columns` whole groups of them, and `tiles` as many whole tiles.
#[inline(always)]
pub(crate) unsafe fn arrange<I: Isa, const T: usize>(
    grain: Grain,
    x: &[f32],
    cols: usize,
    columns: Range<usize>,
    tiles: &mut [u16],
) {
    let groups = columns.len() / GROUP;
    debug_assert!(tiles.len() * 2 == (x.len() / cols).div_ceil(T) * T * groups * ROW);
    for (t, x) in x.chunks_exact(cols).enumerate() {
        for g in 0..groups {
            // SAFETY: the group lies in the row, and the tile in `tiles`, which begins at an even address.
            unsafe {
                let x = x.as_ptr().add(columns.start + g * GROUP);
                let tile = tiles.as_mut_ptr().cast::<u8>();
                let tile = tile.add((t / T * groups + g) * T * ROW);
                place::<I, T>(grain, [I::load(x), I::load(x.add(LANES))], tile, t % T);
            }
        }
    }
}

/// Rounds a group to a tile's token `t`. The numbers with it are the unit and the sum of the group, or the units of
/// its halves, and then the sums of its halves.
///
/// # Safety
/// The machine has `I`, `t` is below `T`, and `tile` is a whole tile.
#[inline(always)]
unsafe fn place<I: Isa, const T: usize>(grain: Grain, x: [I::F; 2], tile: *mut u8, t: usize) {
    let mut bytes = [[0_i8; 4]; GROUP / 4];
    // SAFETY: by contract; tiles are aligned to 16 bits only.
    unsafe {
        let Scale { unit, sum, total } = round_group::<I>(grain, x, bytes.as_mut_ptr().cast());
        let numbers = match grain {
            Grain::Group => [unit[0], total, sum[0], sum[1]],
            Grain::Half => [unit[0], unit[1], sum[0], sum[1]],
        };
        for v in 0..GROUP / 4 {
            tile.add((v * T + t) * 4).cast::<[i8; 4]>().write(bytes[v]);
        }
        let after = tile.add(GROUP * T).cast::<f32>();
        for n in 0..4 {
            after.add(n * T + t).write_unaligned(numbers[n]);
        }
    }
}

/// A stage of a strip, unpacked.
#[repr(C, align(64))]
struct Stage {
    /// `[panel][group][8][64]`.
    weights: [[[u8; 64 * 8]; STAGE / GROUP]; STRIP_PANELS],
    /// `[panel][group][half][16]`.
    scale: [[[[f32; LANES]; 2]; STAGE / GROUP]; STRIP_PANELS],
    min: [[[[f32; LANES]; 2]; STAGE / GROUP]; STRIP_PANELS],
}

/// What a worker needs for a bunch.
pub(crate) const ROOM: Room = Room {
    weights: size_of::<Stage>() / size_of::<f32>(),
    sums: BUNCH * TOKENS * STRIP,
};

/// Multiplies every strip of a bunch with its tokens, in tiles of `T`.
///
/// # Safety
/// The machine has `I`; strips are packed weights of their type; `x` holds as many tiles as `m` and `cols` take; ends
/// lie inside their parts, and nobody else uses these.
#[inline(always)]
pub(crate) unsafe fn multiply<I: Isa, const T: usize>(bunch: &Bunch, desk: &mut Desk) {
    let Bunch { m, cols, x, strips } = *bunch;
    debug_assert!(m <= TOKENS && strips.len() <= BUNCH);
    let (stage, sums) = desk.take(ROOM);
    // SAFETY: the desk has room, aligned to a cache line, for a stage, whose numbers may be any bytes, and for all
    // sums; stages and tiles are what the caller promises.
    unsafe {
        let stage = &mut *stage.cast::<Stage>();
        for slab in (0..cols).step_by(SLAB) {
            let end = (slab + SLAB).min(cols);
            for (s, strip) in strips.iter().enumerate() {
                let sums = sums.add(s * TOKENS * STRIP);
                for first in (slab..end).step_by(STAGE) {
                    let groups = (end - first).min(STAGE) / GROUP;
                    unpack::<I>(strip, first, groups, stage);
                    let tiles = shape(T).tile(m, cols, 0, first / GROUP);
                    let x = x.as_ptr().add(tiles).cast();
                    let panels = strip.panels.len() / strip.panel_bytes;
                    let pass = Pass {
                        stage,
                        panels,
                        groups,
                        x,
                        m,
                        sums,
                        fresh: first == 0,
                    };
                    let layout = Layout::of(strip.ty);
                    if layout.bytes {
                        pass.run::<I, T, 2, true, 4>();
                        continue;
                    }
                    match (
                        layout.halves(),
                        if I::SHORT { layout.short_run() } else { 8 },
                    ) {
                        (1, 4) => pass.run::<I, T, 1, false, 4>(),
                        (1, _) => pass.run::<I, T, 1, false, 8>(),
                        (_, 2) => pass.run::<I, T, 2, false, 2>(),
                        _ => pass.run::<I, T, 2, false, 4>(),
                    }
                }
                if end == cols {
                    hand_on::<I, T>(strip, m, sums, sums.wrapping_sub(TOKENS * STRIP));
                }
            }
        }
    }
}

/// Unpacks `groups` groups of a strip from column `first` on.
///
/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn unpack<I: Isa>(strip: &Strip, first: usize, groups: usize, stage: &mut Stage) {
    for (p, panel) in strip.panels.chunks_exact(strip.panel_bytes).enumerate() {
        // SAFETY: passed on.
        unsafe {
            with_format!(
                strip.ty,
                F => unpack_panel::<I, F>(panel.as_ptr(), first, groups, p, stage),
                else debug_assert!(false, "float weights meet floats")
            );
        }
    }
}

/// As [`unpack`], of panel `p`.
///
/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn unpack_panel<I: Isa, F: Format>(
    panel: *const u8,
    first: usize,
    groups: usize,
    p: usize,
    stage: &mut Stage,
) {
    let layout = F::LAYOUT;
    let (mut scale, mut min) = ([0.0_f32; 256], [0.0_f32; 256]);
    // What is asked for is as far ahead as a stage is long.
    let ahead = STAGE / layout.cols * layout.block_bytes();
    // SAFETY: blocks and groups stay inside the panel, and inside the stage. Reading ahead touches nothing.
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
            let to = stage.weights[p][g].as_mut_ptr();
            for (v, w) in w.into_iter().enumerate() {
                I::store_w(to.add(v * 64), w);
            }
            for h in 0..layout.halves() {
                let from = layout.scale_of(inner, h) * LANES;
                I::store(
                    stage.scale[p][g][h].as_mut_ptr(),
                    I::load(scale.as_ptr().add(from)),
                );
                I::store(
                    stage.min[p][g][h].as_mut_ptr(),
                    I::load(min.as_ptr().add(from)),
                );
            }
        }
    }
}

/// A stage that all tokens pass.
struct Pass<'a> {
    stage: &'a Stage,
    panels: usize,
    groups: usize,
    /// Its tiles of the tokens.
    x: *const u8,
    m: usize,
    /// `[token][32]`.
    sums: *mut f32,
    /// These are the first columns, so that no sums are there yet.
    fresh: bool,
}

impl Pass<'_> {
    /// Multiplies it. Scales go with groups or with their `HALVES`; `BYTES` are weights of a full byte; the products
    /// of a `RUN` of quads are added up in whatever way is fastest.
    ///
    /// # Safety
    /// As [`multiply`].
    #[inline(always)]
    unsafe fn run<
        I: Isa,
        const T: usize,
        const HALVES: usize,
        const BYTES: bool,
        const RUN: usize,
    >(
        &self,
    ) {
        for token in (0..self.m).step_by(T) {
            for p in 0..self.panels {
                let mut at = At {
                    p,
                    token,
                    within: 0,
                };
                let left = (self.m - token).min(T);
                // SAFETY: passed on; tiles of the powers of two that make up what is left stay below it.
                unsafe {
                    if left == T {
                        self.tile::<I, T, HALVES, BYTES, RUN, T>(at);
                        continue;
                    }
                    if left & 8 != 0 {
                        self.tile::<I, T, HALVES, BYTES, RUN, 8>(at);
                        at.within += 8;
                    }
                    if left & 4 != 0 {
                        self.tile::<I, T, HALVES, BYTES, RUN, 4>(at);
                        at.within += 4;
                    }
                    if left & 2 != 0 {
                        self.tile::<I, T, HALVES, BYTES, RUN, 2>(at);
                        at.within += 2;
                    }
                    if left & 1 != 0 {
                        self.tile::<I, T, HALVES, BYTES, RUN, 1>(at);
                    }
                }
            }
        }
    }

    /// One panel times `N` tokens of a tile of `T`, all in registers.
    ///
    /// # Safety
    /// As [`multiply`]; the tokens are there.
    #[inline(always)]
    unsafe fn tile<
        I: Isa,
        const T: usize,
        const HALVES: usize,
        const BYTES: bool,
        const RUN: usize,
        const N: usize,
    >(
        &self,
        at: At,
    ) {
        // SAFETY: by contract.
        unsafe {
            let sums_at = self.sums.add((at.token + at.within) * STRIP + at.p * LANES);
            let mut sums = [I::splat(0.0); N];
            if !self.fresh {
                for t in 0..N {
                    sums[t] = I::load(sums_at.add(t * STRIP));
                }
            }
            let tiles = self.x.add(at.token * self.groups * ROW);
            for g in 0..self.groups {
                let tile = tiles.add(g * T * ROW);
                let bytes = tile.add(at.within * 4);
                let numbers = tile.add(GROUP * T).cast::<f32>().add(at.within);
                let weights = self.stage.weights[at.p][g].as_ptr();
                for h in 0..HALVES {
                    let mut acc = [I::zero_i(); N];
                    let quads = GROUP / 4 / HALVES;
                    for run in (h * quads..(h + 1) * quads).step_by(RUN) {
                        let mut part = [I::zero_i(); N];
                        for v in run..run + RUN {
                            let w = I::load_w(weights.add(v * 64));
                            for t in 0..N {
                                let quad = I::splat_quad(bytes.add((v * T + t) * 4).cast());
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
                    let scale = I::load(self.stage.scale[at.p][g][h].as_ptr());
                    let min = I::load(self.stage.min[at.p][g][h].as_ptr());
                    let (unit, sum) = (
                        if BYTES { h } else { 0 },
                        if HALVES == 1 { 1 } else { 2 + h },
                    );
                    for t in 0..N {
                        let unit = numbers.add(unit * T + t).read_unaligned();
                        let sum = numbers.add(sum * T + t).read_unaligned();
                        sums[t] = add_group::<I>(sums[t], acc[t], scale, min, (unit, sum));
                    }
                }
            }
            for t in 0..N {
                I::store(sums_at.add(t * STRIP), sums[t]);
            }
        }
    }
}

/// Which panel, and which tokens of which tile.
#[derive(Clone, Copy)]
struct At {
    p: usize,
    /// The tile's first.
    token: usize,
    within: usize,
}

/// Hands the sums of a strip on to where they belong.
///
/// # Safety
/// As [`multiply`]; `gate` is the sums of the strip before.
#[inline(always)]
unsafe fn hand_on<I: Isa, const T: usize>(
    strip: &Strip,
    m: usize,
    sums: *const f32,
    gate: *const f32,
) {
    for t in 0..m {
        // SAFETY: a token's results of this strip are this worker's alone, as is its part of the tile that is
        // their column group; sums are two vectors of each token.
        unsafe {
            let (sums, gate) = (sums.add(t * STRIP), gate.wrapping_add(t * STRIP));
            match strip.end {
                End::Gate => return,
                End::Rows {
                    y,
                    first,
                    rows,
                    width,
                    add,
                } => {
                    deliver::<I>(sums, y.slice(t * width + first, rows), add);
                }
                End::Up {
                    to,
                    grain,
                    group,
                    cols,
                } => {
                    let tile = shape(T).tile(m, cols, t / T, group);
                    let tile = to.slice(tile, T * ROW / size_of::<u16>());
                    let low = silu_mul_vector::<I>(I::load(gate), I::load(sums));
                    let high =
                        silu_mul_vector::<I>(I::load(gate.add(LANES)), I::load(sums.add(LANES)));
                    place::<I, T>(grain, [low, high], tile.as_mut_ptr().cast(), t % T);
                }
            }
        }
    }
}

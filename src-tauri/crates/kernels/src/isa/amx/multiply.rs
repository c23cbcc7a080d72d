//! The loop of a product in tiles.
//!
//! Tile instructions keep the matrix unit busy and leave the vectors idle. Meanwhile these make tiles of the
//! weights of the next strip, and hand on the sums of the tokens before: a little of each after every step,
//! so that a core, which looks some hundred instructions ahead, does all of it at once.

use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};

use super::{COLUMNS, PAIR, SHAPE, TILE, TOKENS, Tiles};
use super::{Scales, Sums, silu_mul_to_row, unpack, unpack_floats};
use super::{add_products_of_four, load_sums, store_sums, zero_sums};
use crate::isa::{Avx512, Isa, LANES};
use crate::layout::with_format;
use crate::product::tiles::{Bunch, Desk, End, Strip, deliver};
use crate::product::{STRIP, STRIP_PANELS};

/// Tokens of a pass. With the columns of a slab they are 1 MiB as tiles, which stays in an L2 cache of
/// 2 MiB while the strips of a bunch pass by.
pub(crate) const PASS: usize = 256;
/// The most strips of a bunch.
pub(crate) const BUNCH: usize = 16;
/// Weights of a strip's slab, as tiles.
const WEIGHTS: usize = STRIP * SLAB;
const SLAB: usize = SHAPE.slab;

/// Strips whose results are handed on together, where they are neighbours: rows of results lie pages apart, so that a
/// few lines of one at a time are had more cheaply than two.
const RUN: usize = 4;

/// Parts in which a group is unpacked.
const QUARTERS: usize = 4;

/// How far ahead of the unpacking memory is asked for, in bytes.
const AHEAD: usize = 4096;

/// Multiplies every strip of a bunch with its tokens.
///
/// # Safety
/// AMX is permitted; strips are packed weights of their type; `x` holds as many tiles as `m` and
/// `cols` take; ends lie inside their parts, and nobody else uses these.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
pub(crate) unsafe fn multiply(bunch: &Bunch, desk: &mut Desk) {
    debug_assert!(bunch.m <= PASS && bunch.strips.len() <= BUNCH);
    // The tiles of two strips: numbers of 16 bits take half of those of 32.
    let (weights, sums) = desk.room(WEIGHTS, BUNCH * PASS * STRIP);
    let weights = weights.cast::<u16>();
    let (strips, slabs) = (bunch.strips, bunch.cols.div_ceil(SLAB));
    let unpacking = |i: usize| {
        let to = weights.wrapping_add(i % 2 * WEIGHTS);
        let (slab, s) = (i / strips.len(), i % strips.len());
        (slab < slabs).then(|| Unpacking::new(&strips[s], slab * SLAB, bunch.cols, to))
    };
    // With one slab only a run's sums, and a gate's, have to outlive their strip.
    let slots = if slabs == 1 { RUN } else { BUNCH };
    let slot = |s: usize| sums.wrapping_add(s % slots * PASS * STRIP);
    let mut aside = Aside {
        unpacking: unpacking(0),
        results: Results {
            run: &[],
            m: bunch.m,
            token: 0,
            last: 0,
            sums,
        },
    };
    // SAFETY: the desk has room for the tiles of two strips and for all sums; what a strip and its end
    // need is the caller's.
    unsafe {
        let _tiles = Tiles::new();
        aside.finish_unpacking();
        for i in 0..slabs * strips.len() {
            let (slab, s) = (i / strips.len(), i % strips.len());
            aside.unpacking = unpacking(i + 1);
            let pass = Pass {
                bunch,
                slab,
                run: if slab + 1 == slabs {
                    run(strips, s)
                } else {
                    &[]
                },
                weights: weights.wrapping_add(i % 2 * WEIGHTS),
                sums: slot(s),
            };
            pass.run(&mut aside);
        }
        aside.results.finish();
    }
}

/// The strips up to `s` whose results are handed on with its own; none, if they wait for those of the next.
fn run<'a>(strips: &'a [Strip<'a>], s: usize) -> &'a [Strip<'a>] {
    let follows = |s: usize| match (strips[s - 1].end, strips[s].end) {
        (
            End::Rows { y, first, .. },
            End::Rows {
                y: z, first: next, ..
            },
        ) => std::ptr::eq(y, z) && first + STRIP == next,
        _ => false,
    };
    let joined = |s: usize| !s.is_multiple_of(RUN) && s < strips.len() && follows(s);
    if joined(s + 1) {
        return &[];
    }
    let first = (0..=s).rev().find(|s| !joined(*s)).unwrap_or(s);
    &strips[first..=s]
}

/// A strip's slab.
struct Pass<'a> {
    bunch: &'a Bunch<'a>,
    slab: usize,
    /// The strips whose sums are complete with this one's.
    run: &'a [Strip<'a>],
    weights: *const u16,
    /// `[token][32]`.
    sums: *mut f32,
}

impl<'a> Pass<'a> {
    /// Multiplies it, and does what is to be done aside.
    ///
    /// # Safety
    /// As [`multiply`]; the weights are unpacked.
    #[inline(always)]
    unsafe fn run(&self, aside: &mut Aside<'a>) {
        let Bunch { m, cols, x, .. } = *self.bunch;
        let first = self.slab * SLAB;
        let width = (cols - first).min(SLAB);
        let groups = width / COLUMNS;
        let pairs = m.div_ceil(PAIR);
        let mut unpacking = Pace::new(aside.to_unpack(), pairs * groups);
        // SAFETY: pairs of token blocks lie inside the tiles, groups inside the slab, sums inside the desk.
        unsafe {
            let x = x.as_ptr().add(first * pairs * PAIR);
            for pair in 0..pairs {
                let mut results = Pace::new(aside.results.left(), groups);
                let sums = Sums {
                    at: self.sums.add(pair * PAIR * STRIP),
                    stride: STRIP,
                };
                if self.slab == 0 {
                    zero_sums();
                } else {
                    load_sums(sums);
                }
                let blocks = x.add(pair * PAIR * width);
                for group in 0..groups {
                    add_products_of_four(
                        self.weights.add(group * STRIP_PANELS * TILE),
                        blocks.add(group * TILE),
                        blocks.add((groups + group) * TILE),
                    );
                    if unpacking.is_due() {
                        aside.unpack();
                    }
                    if results.is_due() {
                        aside.results.next();
                    }
                }
                aside.results.finish();
                store_sums(sums);
                aside.results = Results::new(self.run, m, pair * PAIR, sums.at);
            }
            aside.finish_unpacking();
        }
    }
}

/// Spreads some pieces of work over so many steps.
struct Pace {
    pieces: usize,
    steps: usize,
    owed: usize,
}

impl Pace {
    fn new(pieces: usize, steps: usize) -> Pace {
        let owed = 0;
        Pace {
            pieces,
            steps,
            owed,
        }
    }

    /// Takes a step; whether a piece is due after it.
    #[inline(always)]
    fn is_due(&mut self) -> bool {
        self.owed += self.pieces;
        let is_due = self.owed >= self.steps;
        if is_due {
            self.owed -= self.steps;
        }
        is_due
    }
}

/// What is done between tile instructions.
struct Aside<'a> {
    unpacking: Option<Unpacking<'a>>,
    results: Results<'a>,
}

impl Aside<'_> {
    fn to_unpack(&self) -> usize {
        self.unpacking.as_ref().map_or(0, Unpacking::left)
    }

    /// # Safety
    /// As [`Unpacking::next`].
    #[inline(always)]
    unsafe fn unpack(&mut self) {
        if let Some(unpacking) = &mut self.unpacking {
            // SAFETY: passed on.
            unsafe { (unpacking.next)(unpacking) };
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

/// Sums of a pair of token blocks, on their way to where they belong.
struct Results<'a> {
    /// The strips that they are of.
    run: &'a [Strip<'a>],
    /// Tokens of all pairs.
    m: usize,
    token: usize,
    last: usize,
    /// Of `token` and the run's last strip; those of the strips before, and of a gate, are as many slots before.
    sums: *const f32,
}

impl<'a> Results<'a> {
    /// Those of a pair from `token` on.
    #[inline(always)]
    fn new(run: &'a [Strip<'a>], m: usize, token: usize, sums: *const f32) -> Self {
        let last = match run.last().map(|strip| strip.end) {
            None | Some(End::Gate) => token,
            Some(_) => (token + PAIR).min(m),
        };
        Results {
            run,
            m,
            token,
            last,
            sums,
        }
    }

    fn left(&self) -> usize {
        self.last - self.token
    }

    /// # Safety
    /// As [`Results::next`].
    #[inline(always)]
    unsafe fn finish(&mut self) {
        for _ in self.token..self.last {
            // SAFETY: passed on.
            unsafe { self.next() };
        }
    }

    /// How much further on results of `width` are those that this place gets next: the token's in the next pair,
    /// or in the next run's first.
    #[inline(always)]
    fn ahead(&self, width: usize) -> usize {
        if self.token + PAIR < self.m {
            PAIR * width
        } else {
            (RUN * STRIP + self.token % PAIR * width).wrapping_sub(self.token * width)
        }
    }

    /// Hands on the sums of a token.
    ///
    /// # Safety
    /// As [`multiply`]; there is one left.
    #[inline(always)]
    unsafe fn next(&mut self) {
        // SAFETY: a token's results of these strips are this worker's alone, as is a row of the tile that is their
        // column group; sums are two vectors of each token, and a gate's lie one slot before its twin's.
        unsafe {
            for (strip, before) in self.run.iter().zip((0..self.run.len()).rev()) {
                let sums = self.sums.wrapping_sub(before * PASS * STRIP);
                match strip.end {
                    End::Rows {
                        y,
                        first,
                        rows,
                        width,
                        add,
                    } => {
                        let y = y.slice(self.token * width + first, rows);
                        let later = y.as_ptr().wrapping_add(self.ahead(width));
                        prefetch_results(later);
                        deliver::<Avx512>(sums, y, add);
                    }
                    End::Up {
                        to, group, cols, ..
                    } => {
                        let (block, row) = (self.token / TOKENS, self.token % TOKENS);
                        let tile = SHAPE.tile(self.m, cols, block, group);
                        let to = to.slice(tile + row * COLUMNS, COLUMNS);
                        silu_mul_to_row(sums.wrapping_sub(PASS * STRIP), sums, to);
                    }
                    End::Gate => {}
                }
            }
        }
        self.sums = self.sums.wrapping_add(STRIP);
        self.token += 1;
    }
}

/// Asks for two lines to be written: rows of results lie so far apart that nothing else foresees them.
#[inline(always)]
fn prefetch_results(y: *const f32) {
    // SAFETY: a hint: what cannot be fetched is not.
    unsafe {
        _mm_prefetch::<_MM_HINT_ET0>(y.cast());
        _mm_prefetch::<_MM_HINT_ET0>(y.wrapping_add(LANES).cast());
    }
}

/// A strip's slab on its way to tiles: `[group][panel][16 pairs of columns][16 rows][2]` bf16.
struct Unpacking<'a> {
    strip: &'a Strip<'a>,
    first: usize,
    groups: usize,
    to: *mut u16,
    /// Quarters of groups that are done, panel after panel.
    done: usize,
    scales: Scales,
    /// Bytes of a quarter, on average.
    bytes: usize,
    /// What is asked for, some time before it is unpacked.
    ahead: *const u8,
    /// Unpacks the next quarter.
    ///
    /// # Safety
    /// As [`multiply`]; there is one left, and `to` has room for a strip's slab.
    next: unsafe fn(&mut Self),
}

impl<'a> Unpacking<'a> {
    fn new(strip: &'a Strip<'a>, first: usize, cols: usize, to: *mut u16) -> Self {
        let bytes = strip.panel_bytes * COLUMNS / (cols * QUARTERS);
        let start = first / COLUMNS * QUARTERS * bytes;
        Unpacking {
            bytes,
            ahead: strip.panels.as_ptr().wrapping_add(start + AHEAD),
            strip,
            first,
            groups: (cols - first).min(SLAB) / COLUMNS,
            to,
            done: 0,
            scales: Scales::new(),
            next: with_format!(strip.ty, F => next::<F>, else next_floats),
        }
    }

    /// Quarters still to do.
    fn left(&self) -> usize {
        let panels = self.strip.panels.len() / self.strip.panel_bytes;
        panels * self.groups * QUARTERS - self.done
    }

    /// The panel, the column and the quarter of the group there that come next, and where their tile is.
    ///
    /// # Safety
    /// As [`multiply`].
    #[inline(always)]
    unsafe fn advance(&mut self) -> (*const u8, usize, usize, *mut u16) {
        let (group, quarter) = (self.done / QUARTERS, self.done % QUARTERS);
        let (panel, group) = (group / self.groups, group % self.groups);
        self.done += 1;
        self.ahead = self.ahead.wrapping_add(self.bytes);
        // SAFETY: hints; what cannot be fetched is not.
        unsafe {
            for line in (0..self.bytes).step_by(64) {
                Avx512::prefetch(self.ahead.wrapping_add(line));
            }
        }
        // SAFETY: the group lies inside the panel, and its tile inside `to`.
        unsafe {
            let from = self
                .strip
                .panels
                .as_ptr()
                .add(panel * self.strip.panel_bytes);
            let tile = self.to.add((group * STRIP_PANELS + panel) * TILE);
            (from, self.first + group * COLUMNS, quarter, tile)
        }
    }
}

/// [`Unpacking::next`] of quantised weights.
///
/// # Safety
/// As there.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
unsafe fn next<F: crate::layout::Format>(it: &mut Unpacking) {
    // SAFETY: passed on.
    unsafe {
        let (panel, column, quarter, tile) = it.advance();
        match quarter {
            0 => unpack::<F, 0>(panel, column, &mut it.scales, tile),
            1 => unpack::<F, 1>(panel, column, &mut it.scales, tile),
            2 => unpack::<F, 2>(panel, column, &mut it.scales, tile),
            _ => unpack::<F, 3>(panel, column, &mut it.scales, tile),
        }
    }
}

/// [`Unpacking::next`] of weights that are floats.
///
/// # Safety
/// As there.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
unsafe fn next_floats(it: &mut Unpacking) {
    // SAFETY: passed on.
    unsafe {
        let (panel, column, quarter, tile) = it.advance();
        unpack_floats(it.strip.ty, panel, column, quarter, tile);
    }
}

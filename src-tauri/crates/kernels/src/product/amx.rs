//! The loop of a product in tiles.
//!
//! The sums of 32 tokens and 32 rows stay in registers for a slab of 512 columns. A strip's weights of a slab stay in the
//! L1 cache while the tokens of a pass come by from the L2 cache, which as much bandwidth would not do for both; so
//! tokens are loaded with a hint that they are not used again soon. Longer slabs would store sums less often, but push
//! their own weights out.
//!
//! Tile instructions keep the matrix unit busy and leave the vectors idle. Meanwhile these make tiles of the weights that
//! come next, and hand on the sums of the strips before: a little of each after every step, so that a core, which looks
//! some hundred instructions ahead, does all of it at once.

pub(crate) mod pack;

use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T1, _mm_prefetch};
use std::ops::Range;

use crate::blocking::{STRIP, STRIP_PANELS};
use crate::isa::LANES;
use crate::isa::amx::{COLUMNS, PAIR, Sums, TILE, Tiles};
use crate::isa::amx::{add_products_of_four, store_and_load_sums, store_sums, zero_sums};
use crate::isa::avx512::Avx512;
use crate::product::tiles::{Bunch, Desk, End, Room, Strip, deliver};
use crate::weights::block::BlockType;
use crate::weights::layout::{Format, with_format};
use pack::{SHAPE, Scales, silu_mul_to_row, unpack, unpack_floats};

/// Tokens of a pass. With the columns of a stretch they are 1 MiB as tiles, which stays in an L2 cache of
/// 2 MiB while the strips of a bunch pass by.
pub(crate) const PASS: usize = 256;
/// The most strips of a bunch.
pub(crate) const BUNCH: usize = 16;
/// Columns of which all strips of a bunch are multiplied before more.
const STRETCH: usize = 2048;
/// Columns of which a strip is multiplied with all tokens before more.
const SLAB: usize = SHAPE.slab;
/// Weights of a strip's slab, as tiles.
const WEIGHTS: usize = STRIP * SLAB;
/// What a worker needs for a bunch. The tiles of two slabs: numbers of 16 bits take half of those of 32.
pub(crate) const ROOM: Room = Room {
    weights: WEIGHTS,
    sums: BUNCH * PASS * STRIP,
};

/// Strips whose results are handed on together, where they are neighbours: rows of results lie pages apart, so that a
/// few lines of one at a time are had more cheaply than two.
const RUN: usize = 4;

/// Parts in which a group is unpacked.
const QUARTERS: usize = 4;

/// Multiplies every strip of a bunch with its tokens.
///
/// # Safety
/// AMX is permitted; strips are packed weights of their type; `x` holds as many tiles as `m` and
/// `cols` take; ends lie inside their parts, and nobody else uses these.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
pub(crate) unsafe fn multiply(bunch: &Bunch, desk: &mut Desk) {
    debug_assert!(bunch.m <= PASS && bunch.strips.len() <= BUNCH);
    let (weights, sums) = desk.take(ROOM);
    let weights = weights.cast::<u16>();
    let (mut here, mut there) = (weights, weights.wrapping_add(WEIGHTS));
    // With one stretch only two runs' sums have to be kept: those that grow, and those that are handed on.
    let slots = if bunch.cols <= STRETCH {
        2 * RUN
    } else {
        BUNCH
    };
    let slot = |s: usize| sums.wrapping_add(s % slots * PASS * STRIP);
    let mut scales = Scales::new();
    let first = Place::default();
    let mut aside = Aside {
        unpacking: Some(Unpacking::new(bunch, first, here)),
        scales: &mut scales,
        results: Results::new(&[], bunch.m, sums, 1),
    };
    // SAFETY: the desk has room for the tiles of two slabs and for all sums; what a strip and its end
    // need is the caller's.
    unsafe {
        let _tiles = Tiles::new();
        aside.finish_unpacking();
        zero_sums();
        let mut place = Some(first);
        while let Some(at) = place {
            place = at.next(bunch);
            aside.unpacking = place.map(|next| Unpacking::new(bunch, next, there));
            let pass = Pass {
                bunch,
                at,
                weights: here,
                sums: slot(at.strip),
                next: place
                    .filter(|next| next.column > 0)
                    .map(|next| slot(next.strip).cast_const()),
            };
            pass.run(&mut aside);
            let columns = at.stretch(bunch.cols);
            if at.column + SLAB >= columns.end {
                aside.results.finish();
                let run = match columns.end == bunch.cols {
                    true => run(bunch.strips, at.strip),
                    false => &[],
                };
                let steps = bunch.m.div_ceil(PAIR) * columns.len() / COLUMNS;
                aside.results = Results::new(run, bunch.m, slot(at.strip), steps);
            }
            std::mem::swap(&mut here, &mut there);
        }
        aside.results.finish();
    }
}

/// Which slab of which strip.
#[derive(Clone, Copy, Default)]
struct Place {
    strip: usize,
    /// The slab's first column.
    column: usize,
}

impl Place {
    /// After the slabs of a stretch come those of the next strip, and after all strips the next stretch.
    fn next(self, bunch: &Bunch) -> Option<Place> {
        let columns = self.stretch(bunch.cols);
        let Place {
            mut strip,
            mut column,
        } = self;
        column += SLAB;
        if column >= columns.end {
            strip += 1;
            column = columns.start;
        }
        if strip == bunch.strips.len() {
            strip = 0;
            column = columns.end;
        }
        (column < bunch.cols).then_some(Place { strip, column })
    }

    fn stretch(self, cols: usize) -> Range<usize> {
        let first = self.column / STRETCH * STRETCH;
        first..(first + STRETCH).min(cols)
    }

    fn columns(self, cols: usize) -> Range<usize> {
        self.column..(self.column + SLAB).min(cols)
    }

    /// Where its weights begin in the strip's first panel.
    fn weights(self, bunch: &Bunch) -> usize {
        let strip = &bunch.strips[self.strip];
        strip.panels.as_ptr().addr() + strip.panel_bytes * self.column / bunch.cols
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
    at: Place,
    weights: *const u16,
    /// `[token][32]`.
    sums: *mut f32,
    /// The sums with which the next slab goes on, unless it begins anew.
    next: Option<*const f32>,
}

impl<'a> Pass<'a> {
    /// Multiplies it, and does what is to be done aside; leaves the next slab's first sums in the registers.
    ///
    /// # Safety
    /// As [`multiply`]; the weights are unpacked, and its own first sums are in the registers.
    #[inline(always)]
    unsafe fn run(&self, aside: &mut Aside<'a>) {
        let Bunch { m, cols, x, .. } = *self.bunch;
        let columns = self.at.columns(cols);
        let groups = columns.len() / COLUMNS;
        let pairs = m.div_ceil(PAIR);
        let mut unpacking = Pace::new(aside.to_unpack(), pairs * groups);
        // SAFETY: pairs of token blocks lie inside the tiles, groups inside the slab, sums inside the desk.
        unsafe {
            let mut x = x.as_ptr().add(columns.start * pairs * PAIR);
            for this in 0..pairs {
                for group in 0..groups {
                    add_products_of_four(self.weights.add(group * STRIP_PANELS * TILE), x);
                    x = x.add(2 * TILE);
                    if unpacking.is_due() {
                        aside.unpack();
                    }
                    if aside.results.pace.is_due() {
                        aside.results.next();
                    }
                }
                let pair = |pair: usize| self.sums.wrapping_add(pair * PAIR * STRIP);
                let next = match this + 1 {
                    last if last == pairs => self.next,
                    next => (columns.start > 0).then_some(pair(next).cast_const()),
                };
                let sums = Sums {
                    at: pair(this),
                    stride: STRIP,
                };
                match next {
                    Some(next) => store_and_load_sums(sums, next),
                    None => {
                        store_sums(sums);
                        zero_sums();
                    }
                }
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
    unpacking: Option<Unpacking>,
    scales: &'a mut Scales,
    results: Results<'a>,
}

impl Aside<'_> {
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

/// Sums on their way to where they belong.
struct Results<'a> {
    /// The strips that they are of.
    run: &'a [Strip<'a>],
    m: usize,
    /// The token that comes next, and where they end.
    token: usize,
    last: usize,
    /// Of `token` and the run's last strip; those of the strips before, and of a gate, are as many slots before.
    sums: *const f32,
    pace: Pace,
}

impl<'a> Results<'a> {
    /// Those of `m` tokens, within so many steps.
    fn new(run: &'a [Strip<'a>], m: usize, sums: *const f32, steps: usize) -> Self {
        let last = match run.last().map(|strip| strip.end) {
            None | Some(End::Gate) => 0,
            Some(_) => m,
        };
        Results {
            run,
            m,
            token: 0,
            last,
            sums,
            pace: Pace::new(last, steps),
        }
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
                        let (block, row) = (self.token / PAIR, self.token % PAIR);
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
    /// As [`multiply`]; there is one left, and `tile` has room for a strip's slab.
    next: [unsafe fn(&mut Self, &mut Scales); QUARTERS],
}

impl Unpacking {
    fn new(bunch: &Bunch, place: Place, to: *mut u16) -> Self {
        let strip = &bunch.strips[place.strip];
        let columns = place.columns(bunch.cols);
        let panels = strip.panels.len() / strip.panel_bytes;
        let ahead = place.next(bunch).map_or(0, |later| {
            later.weights(bunch).wrapping_sub(place.weights(bunch))
        });
        Unpacking {
            ty: strip.ty,
            panel_bytes: strip.panel_bytes,
            panel: strip.panels.as_ptr(),
            column: columns.start,
            quarter: 0,
            tile: to,
            left: panels * columns.len() / COLUMNS * QUARTERS,
            columns,
            ahead,
            next: with_format!(
                strip.ty,
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
        self.tile = self.tile.wrapping_add(STRIP_PANELS * TILE);
        if self.column == self.columns.end {
            self.column = self.columns.start;
            self.panel = self.panel.wrapping_add(self.panel_bytes);
            let groups = self.columns.len() / COLUMNS;
            self.tile = self.tile.wrapping_sub((groups * STRIP_PANELS - 1) * TILE);
        }
    }
}

/// [`Unpacking::next`] of quantised weights, quarter `Q`.
///
/// # Safety
/// As there.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")]
unsafe fn next<F: Format, const Q: usize>(it: &mut Unpacking, scales: &mut Scales) {
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
unsafe fn next_floats(it: &mut Unpacking, _: &mut Scales) {
    // SAFETY: the group lies inside the panel, and its tile inside the room.
    unsafe { unpack_floats(it.ty, it.panel, it.column, it.quarter, it.tile) };
    it.advance();
}

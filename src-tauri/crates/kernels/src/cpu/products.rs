//! The executor's products: which loops serve them, and how threads share them.

use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

use super::Cpu;
use super::scratch::Scratch;
use crate::blocking::{STREAM, STRIP, TOKENS};
use crate::isa::LANES;
use crate::memory::reserve::OutOfMemory;
use crate::pool::parts::Parts;
use crate::product::activations::{Grain, Rounded};
use crate::product::row_block::{Stage, Strip, Tokens};
use crate::product::tiles::{self, Bunch, End};
use crate::routines::TileRoutines;
use crate::weights::matrix::Matrix;

impl Cpu {
    /// `y[m][rows] = x[m][cols] · Wᵀ`.
    ///
    /// # Errors
    /// When the system has no memory left for the scratch; so do all the products.
    ///
    /// # Panics
    /// When `x` or `y` is not of that shape; so do all the products.
    pub fn product(
        &self,
        x: &[f32],
        m: usize,
        w: &Matrix,
        y: &mut [f32],
    ) -> Result<(), OutOfMemory> {
        check(x, m, w, y);
        self.run(&mut self.scratch(), x, m, &[(w, Sink::Set(&Parts::new(y)))])
    }

    /// `y[m][rows] += x[m][cols] · Wᵀ`: a product into the residual stream.
    ///
    /// # Errors
    /// As [`Cpu::product`].
    pub fn product_add(
        &self,
        x: &[f32],
        m: usize,
        w: &Matrix,
        y: &mut [f32],
    ) -> Result<(), OutOfMemory> {
        check(x, m, w, y);
        self.run(&mut self.scratch(), x, m, &[(w, Sink::Add(&Parts::new(y)))])
    }

    fn scratch(&self) -> MutexGuard<'_, Scratch> {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Three products of the same activations, in one go.
    ///
    /// # Errors
    /// As [`Cpu::product`].
    pub fn qkv(
        &self,
        x: &[f32],
        m: usize,
        w: [&Matrix; 3],
        y: [&mut [f32]; 3],
    ) -> Result<(), OutOfMemory> {
        for (w, y) in w.iter().zip(&y) {
            check(x, m, w, y);
        }
        let [q, k, v] = y.map(Parts::new);
        self.run(
            &mut self.scratch(),
            x,
            m,
            &[
                (w[0], Sink::Set(&q)),
                (w[1], Sink::Set(&k)),
                (w[2], Sink::Set(&v)),
            ],
        )
    }

    /// `y[m][cols] += (silu(x · Gateᵀ) ⊙ (x · Upᵀ)) · Downᵀ`: a feed-forward layer into the residual stream.
    ///
    /// # Errors
    /// As [`Cpu::product`].
    ///
    /// # Panics
    /// When the shapes do not fit one another.
    pub fn feed_forward(
        &self,
        x: &[f32],
        m: usize,
        [gate, up, down]: [&Matrix; 3],
        y: &mut [f32],
    ) -> Result<(), OutOfMemory> {
        let (cols, hidden) = (gate.cols(), gate.rows());
        assert!(
            up.rows() == hidden && up.cols() == cols && down.cols() == hidden,
            "gate and up are twins, and down takes what they give"
        );
        assert!(x.len() == m * cols, "x is [m][cols]");
        assert!(y.len() == m * down.rows(), "y is [m][rows]");
        let scratch = &mut *self.scratch();
        let serves = [gate, up, down].map(|w| self.tiles(m, w));
        if let [Some(a), Some(b), Some(c)] = serves
            && a == b
            && std::ptr::eq(a.unit, c.unit)
        {
            return self.feed_forward_in_tiles(scratch, [a, c], x, [gate, up, down], y);
        }
        let mut gated = std::mem::take(&mut scratch.gated);
        let len = (m * hidden).next_multiple_of(LANES);
        gated.reserve(len)?;
        gated.resize(len);
        if serves[0].is_some() || serves[1].is_some() {
            let mut times = std::mem::take(&mut scratch.up);
            times.reserve(len)?;
            times.resize(len);
            let of = [(gate, &mut gated), (up, &mut times)];
            let of = of.map(|(w, y)| (w, Parts::new(&mut y[..m * hidden])));
            let products = of.each_ref().map(|(w, y)| (*w, Sink::Set(y)));
            self.run(scratch, x, m, &products)?;
            self.silu_mul(&mut gated, &times);
            scratch.up = times;
        } else {
            self.gate_up_silu(scratch, x, m, [gate, up], &mut gated[..m * hidden])?;
        }
        let sink = Sink::Add(&Parts::new(y));
        self.run(scratch, &gated[..m * hidden], m, &[(down, sink)])?;
        scratch.gated = gated;
        Ok(())
    }

    /// `gate = silu(gate) ⊙ up`, of whole vectors.
    fn silu_mul(&self, gate: &mut [f32], up: &[f32]) {
        /// Enough work to be worth another thread.
        const PIECE: usize = 8192;
        let gate = Parts::new(gate);
        self.pool.pieces(up.len().div_ceil(PIECE), |_, piece| {
            let part = piece * PIECE..((piece + 1) * PIECE).min(up.len());
            // SAFETY: each part is one piece's own; this executor's routines are its machine's, and the lengths are
            // whole vectors.
            unsafe {
                let gate = gate.slice(part.start, part.len());
                (self.routines.silu_mul)(gate, &up[part]);
            }
        });
    }

    /// `y = silu(x · Gateᵀ) ⊙ (x · Upᵀ)`, `y` being `[m][rows]`.
    fn gate_up_silu(
        &self,
        scratch: &mut Scratch,
        x: &[f32],
        m: usize,
        [gate, up]: [&Matrix; 2],
        y: &mut [f32],
    ) -> Result<(), OutOfMemory> {
        let y = Parts::new(y);
        let pieces = gate.strips();
        self.strips(scratch, x, m, &[gate, up], pieces, |stage, s, x, tokens| {
            let n = tokens.len() * STRIP;
            self.multiply(gate, s, x.tokens(gate, &tokens), stage);
            std::mem::swap(&mut stage.sums, &mut stage.gate);
            self.multiply(up, s, x.tokens(up, &tokens), stage);
            // SAFETY: this executor's routines are its machine's; `n` is whole vectors.
            unsafe { (self.routines.silu_mul)(&mut stage.gate.0[..n], &stage.sums.0[..n]) };
            store(&stage.gate.0, gate, s, &tokens, &Sink::Set(&y));
        })
    }

    /// Products of the same activations, on all threads.
    fn run(
        &self,
        scratch: &mut Scratch,
        x: &[f32],
        m: usize,
        products: &[Product],
    ) -> Result<(), OutOfMemory> {
        let serves = |product: &Product| self.tiles(m, product.0);
        let mut others: Vec<&Product> = products.iter().collect();
        while let Some(tiles) = others.iter().find_map(|product| serves(product)) {
            let (served, left): (Vec<_>, Vec<_>) = others
                .into_iter()
                .partition(|product| serves(product) == Some(tiles));
            self.run_in_tiles(scratch, tiles, x, &served)?;
            others = left;
        }
        if others.is_empty() {
            return Ok(());
        }
        self.run_in_strips(scratch, x, m, &others)
    }

    /// [`Cpu::run`] strip by strip.
    fn run_in_strips(
        &self,
        scratch: &mut Scratch,
        x: &[f32],
        m: usize,
        products: &[&Product],
    ) -> Result<(), OutOfMemory> {
        let matrices: Vec<&Matrix> = products.iter().map(|(w, _)| *w).collect();
        let pieces = matrices.iter().map(|w| w.strips()).sum();
        self.strips(
            scratch,
            x,
            m,
            &matrices,
            pieces,
            |stage, piece, x, tokens| {
                let mut first = 0;
                for (w, sink) in products {
                    if piece < first + w.strips() {
                        self.multiply(w, piece - first, x.tokens(w, &tokens), stage);
                        store(&stage.sums.0, w, piece - first, &tokens, sink);
                        return;
                    }
                    first += w.strips();
                }
            },
        )
    }

    /// Runs `piece(stage, strip, activations, tokens)` for every strip and every block of tokens.
    fn strips(
        &self,
        scratch: &mut Scratch,
        x: &[f32],
        m: usize,
        matrices: &[&Matrix],
        strips: usize,
        piece: impl Fn(&mut Stage, usize, &Source, Range<usize>) + Sync,
    ) -> Result<(), OutOfMemory> {
        if m == 0 {
            return Ok(());
        }
        let Scratch {
            by_group,
            by_half,
            stages,
            ..
        } = scratch;
        if !self.exact {
            for (grain, rounded) in [(Grain::Group, &mut *by_group), (Grain::Half, &mut *by_half)] {
                if matrices
                    .iter()
                    .any(|w| Grain::of(w.block_type()) == Some(grain))
                {
                    rounded.fill(&self.pool, self.routines.round, grain, x)?;
                }
            }
        }
        let source = Source {
            x,
            cols: matrices[0].cols(),
            by_group,
            by_half,
            exact: self.exact,
        };
        let stages = Parts::new(stages);
        self.pool.pieces(strips, |worker, i| {
            // SAFETY: a worker is one thread, and runs one piece at a time.
            let stage = &mut unsafe { stages.slice(worker, 1) }[0];
            for first in (0..m).step_by(TOKENS) {
                let tokens = first..(first + TOKENS).min(m);
                piece(stage, i, &source, tokens);
            }
        });
        Ok(())
    }

    /// The tiles that serve the product of `m` tokens with a matrix, where these are enough for any.
    fn tiles(&self, m: usize, w: &Matrix) -> Option<Tiling> {
        if self.exact || m <= STREAM {
            return None;
        }
        let mut units = self.routines.tiles.iter();
        units.find_map(|unit| {
            unit.grain_for(m, w.block_type(), w.cols())
                .map(|grain| Tiling { unit, grain })
        })
    }

    /// [`Cpu::run`] in tiles of one kind.
    fn run_in_tiles(
        &self,
        scratch: &mut Scratch,
        Tiling { unit, grain }: Tiling,
        x: &[f32],
        products: &[&Product],
    ) -> Result<(), OutOfMemory> {
        let Scratch {
            by_tile,
            tile_desks,
            ..
        } = scratch;
        let cols = products[0].0.cols();
        for (pass, x) in x.chunks(unit.tokens * cols).enumerate() {
            by_tile.fill(&self.pool, (unit.shape, unit.arrange), grain, x, cols)?;
            let first = pass * unit.tokens;
            let strips: Vec<_> = products
                .iter()
                .flat_map(|(w, sink)| {
                    (0..w.strips()).map(move |s| w.tile_strip(s, sink.end(w, first, s)))
                })
                .collect();
            let m = x.len() / cols;
            self.bunches(unit, [m, cols], by_tile.as_slice(), &strips, tile_desks)?;
        }
        Ok(())
    }

    /// [`Cpu::feed_forward`] in tiles: what lies between its halves is never anything else.
    fn feed_forward_in_tiles(
        &self,
        scratch: &mut Scratch,
        [Tiling { unit, grain }, down_tiles]: [Tiling; 2],
        x: &[f32],
        [gate, up, down]: [&Matrix; 3],
        y: &mut [f32],
    ) -> Result<(), OutOfMemory> {
        let Scratch {
            by_tile,
            tile_desks,
            gated_by_tile,
            ..
        } = scratch;
        let (cols, hidden) = (gate.cols(), gate.rows());
        let sink = Sink::Add(&Parts::new(y));
        for (pass, x) in x.chunks(unit.tokens * cols).enumerate() {
            by_tile.fill(&self.pool, (unit.shape, unit.arrange), grain, x, cols)?;
            let m = x.len() / cols;
            gated_by_tile.resize(unit.shape, m, hidden)?;
            let gated = Parts::new(gated_by_tile.as_mut_slice());
            let strips: Vec<_> = (0..gate.strips())
                .flat_map(|s| {
                    let end = End::Up {
                        to: &gated,
                        grain: down_tiles.grain,
                        group: s,
                        cols: hidden,
                    };
                    [gate.tile_strip(s, End::Gate), up.tile_strip(s, end)]
                })
                .collect();
            self.bunches(unit, [m, cols], by_tile.as_slice(), &strips, tile_desks)?;
            let first = pass * unit.tokens;
            let strips: Vec<_> = (0..down.strips())
                .map(|s| down.tile_strip(s, sink.end(down, first, s)))
                .collect();
            let gated = gated_by_tile.as_slice();
            self.bunches(unit, [m, hidden], gated, &strips, tile_desks)?;
        }
        Ok(())
    }

    /// Multiplies strips with `m` tokens of `cols` columns.
    fn bunches(
        &self,
        unit: &TileRoutines,
        [m, cols]: [usize; 2],
        x: &[u16],
        strips: &[tiles::Strip],
        desks: &mut [tiles::Desk],
    ) -> Result<(), OutOfMemory> {
        for desk in &mut *desks {
            desk.reserve(unit.room)?;
        }
        // Enough bunches that a slow core can leave some to the others; an even number of strips, so that
        // none parts a gate from its twin.
        let share = strips.len().div_ceil(2 * self.pool.threads());
        let each = share.next_multiple_of(2).min(unit.strips);
        let desks = Parts::new(desks);
        self.pool.pieces(strips.len().div_ceil(each), |worker, i| {
            // SAFETY: a worker is one thread, and runs one piece at a time.
            let desk = &mut unsafe { desks.slice(worker, 1) }[0];
            let strips = &strips[i * each..((i + 1) * each).min(strips.len())];
            let bunch = Bunch { m, cols, x, strips };
            // SAFETY: the routines are this executor's machine's; a matrix is packed as its type says; the
            // results of a strip are one bunch's own.
            unsafe { (unit.multiply)(&bunch, desk) };
        });
        Ok(())
    }

    fn multiply(&self, w: &Matrix, strip: usize, x: Tokens, stage: &mut Stage) {
        let strip = Strip {
            ty: w.block_type(),
            panels: w.panels(strip),
            panel_bytes: w.panel_bytes(),
            cols: w.cols(),
            x,
        };
        // SAFETY: this executor's routines are its machine's; a matrix is packed as its type
        // says, and `Source` cuts as many activations as there are columns.
        unsafe { (self.routines.multiply)(&strip, stage) };
    }
}

/// The tiles that serve a product, and how finely they want its activations.
#[derive(Clone, Copy)]
struct Tiling {
    unit: &'static TileRoutines,
    grain: Grain,
}

impl PartialEq for Tiling {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.unit, other.unit) && self.grain == other.grain
    }
}

/// The activations of a product, as the weights' type wants them.
struct Source<'a> {
    x: &'a [f32],
    cols: usize,
    by_group: &'a Rounded,
    by_half: &'a Rounded,
    exact: bool,
}

impl Source<'_> {
    fn tokens(&self, w: &Matrix, range: &Range<usize>) -> Tokens<'_> {
        let cells = range.start * self.cols..range.end * self.cols;
        let m = range.len();
        let rounded = match Grain::of(w.block_type()) {
            Some(Grain::Group) if !self.exact => self.by_group,
            Some(Grain::Half) if !self.exact => self.by_half,
            _ => {
                return Tokens::Floats {
                    m,
                    x: &self.x[cells],
                };
            }
        };
        let (bytes, scales) = rounded.part(cells);
        Tokens::Integers { m, bytes, scales }
    }
}

/// Weights, and what becomes of their product.
type Product<'a> = (&'a Matrix, Sink<'a>);

/// What becomes of a product's results.
enum Sink<'a> {
    Set(&'a Parts<'a, f32>),
    Add(&'a Parts<'a, f32>),
}

impl<'a> Sink<'a> {
    /// What becomes of a strip's results for the tokens from `token` on.
    fn end(&self, w: &Matrix, token: usize, strip: usize) -> End<'a> {
        let (y, add) = match *self {
            Sink::Set(y) => (y, false),
            Sink::Add(y) => (y, true),
        };
        let row = strip * STRIP;
        End::Rows {
            y,
            first: token * w.rows() + row,
            rows: (w.rows() - row).min(STRIP),
            width: w.rows(),
            add,
        }
    }
}

fn check(x: &[f32], m: usize, w: &Matrix, y: &[f32]) {
    assert!(x.len() == m * w.cols(), "x is [m][cols]");
    assert!(y.len() == m * w.rows(), "y is [m][rows]");
}

/// Hands the results of a strip on, token by token.
fn store(sums: &[f32], w: &Matrix, strip: usize, tokens: &Range<usize>, sink: &Sink) {
    let first = strip * STRIP;
    let rows = (w.rows() - first).min(STRIP);
    for (t, sums) in tokens.clone().zip(sums.chunks_exact(STRIP)) {
        let (at, sums) = (t * w.rows() + first, &sums[..rows]);
        match sink {
            Sink::Set(y) => {
                // SAFETY: of every row of results, a strip's part is one piece's own.
                let y = unsafe { y.slice(at, rows) };
                match (y.as_mut_array::<STRIP>(), sums.as_array::<STRIP>()) {
                    (Some(y), Some(sums)) => *y = *sums,
                    _ => y.copy_from_slice(sums),
                }
            }
            Sink::Add(y) => {
                // SAFETY: as above.
                for (y, sum) in unsafe { y.slice(at, rows) }.iter_mut().zip(sums) {
                    *y += sum;
                }
            }
        }
    }
}

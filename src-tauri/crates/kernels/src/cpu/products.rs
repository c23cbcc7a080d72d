//! The executor's products: the choice of the loops, and the division of work among threads.

use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

use super::Cpu;
use super::operands::{MatrixTarget, ProductInput, ProductTarget, assert_shapes, store};
use super::scratch::ProductBuffers;
use crate::blocking::{BATCH_INVARIANT_MAX, MC_STREAM, ROW_BLOCK};
use crate::isa::LANES;
use crate::memory::reserve::OutOfMemory;
use crate::pool::disjoint::DisjointSlice;
use crate::product::activations::Granularity;
use crate::product::row_block::{ProductScratch, RowBlockTask, TokenActivations};
use crate::product::tiles::{self, RowBlockGroup, TileEpilogue};
use crate::routines::TileRoutines;
use crate::weights::matrix::Matrix;

impl Cpu {
    /// `y[m][rows] = x[m][cols] · Wᵀ`.
    ///
    /// # Errors
    /// Fails if the system has no memory left for the scratch; so do all the products.
    ///
    /// # Panics
    /// Panics if `x` or `y` does not have that shape; so do all the products.
    pub fn product(
        &self,
        x: &[f32],
        m: usize,
        w: &Matrix,
        y: &mut [f32],
    ) -> Result<(), OutOfMemory> {
        assert_shapes(x, m, w, y);
        self.run(
            &mut self.scratch(),
            x,
            m,
            &[(w, ProductTarget::Set(&DisjointSlice::new(y)))],
        )
    }

    /// `y[m][rows] += x[m][cols] · Wᵀ`: a product into the residual stream.
    ///
    /// # Errors
    /// Same as [`Cpu::product`].
    pub fn product_add(
        &self,
        x: &[f32],
        m: usize,
        w: &Matrix,
        y: &mut [f32],
    ) -> Result<(), OutOfMemory> {
        assert_shapes(x, m, w, y);
        self.run(
            &mut self.scratch(),
            x,
            m,
            &[(w, ProductTarget::Add(&DisjointSlice::new(y)))],
        )
    }

    fn scratch(&self) -> MutexGuard<'_, ProductBuffers> {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Three products of the same activations, as one job.
    ///
    /// # Errors
    /// Same as [`Cpu::product`].
    pub fn qkv(
        &self,
        x: &[f32],
        m: usize,
        w: [&Matrix; 3],
        y: [&mut [f32]; 3],
    ) -> Result<(), OutOfMemory> {
        for (w, y) in w.iter().zip(&y) {
            assert_shapes(x, m, w, y);
        }
        let [q, k, v] = y.map(DisjointSlice::new);
        self.run(
            &mut self.scratch(),
            x,
            m,
            &[
                (w[0], ProductTarget::Set(&q)),
                (w[1], ProductTarget::Set(&k)),
                (w[2], ProductTarget::Set(&v)),
            ],
        )
    }

    /// `y[m][cols] += (silu(x · Gateᵀ) ⊙ (x · Upᵀ)) · Downᵀ`: a feed-forward layer into the residual stream.
    ///
    /// # Errors
    /// Same as [`Cpu::product`].
    ///
    /// # Panics
    /// Panics if the shapes do not match.
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
            "gate and up have one shape, and down takes their results"
        );
        assert!(x.len() == m * cols, "x is [m][cols]");
        assert!(y.len() == m * down.rows(), "y is [m][rows]");
        let scratch = &mut *self.scratch();
        let choices = [gate, up, down].map(|w| self.tiled_routines(m, w));
        if let [Some(a), Some(b), Some(c)] = choices
            && a == b
            && std::ptr::eq(a.routines, c.routines)
        {
            return self.feed_forward_tiled(scratch, [a, c], x, [gate, up, down], y);
        }
        let mut gated = std::mem::take(&mut scratch.gated);
        let len = (m * hidden).next_multiple_of(LANES);
        gated.reserve(len)?;
        gated.resize(len);
        if choices[0].is_some() || choices[1].is_some() {
            let mut up_results = std::mem::take(&mut scratch.up);
            up_results.reserve(len)?;
            up_results.resize(len);
            let results = [(gate, &mut gated), (up, &mut up_results)];
            let results = results.map(|(w, y)| (w, DisjointSlice::new(&mut y[..m * hidden])));
            let products = results.each_ref().map(|(w, y)| (*w, ProductTarget::Set(y)));
            self.run(scratch, x, m, &products)?;
            self.silu_mul(&mut gated, &up_results);
            scratch.up = up_results;
        } else {
            self.gate_up_silu(scratch, x, m, [gate, up], &mut gated[..m * hidden])?;
        }
        let target = ProductTarget::Add(&DisjointSlice::new(y));
        self.run(scratch, &gated[..m * hidden], m, &[(down, target)])?;
        scratch.gated = gated;
        Ok(())
    }

    /// `gate = silu(gate) ⊙ up`, of whole vectors.
    fn silu_mul(&self, gate: &mut [f32], up: &[f32]) {
        /// Values of a task: enough work to pay for another thread.
        const TASK: usize = 8192;
        let gate = DisjointSlice::new(gate);
        self.pool.parallel_for(up.len().div_ceil(TASK), |_, task| {
            let part = task * TASK..((task + 1) * TASK).min(up.len());
            // SAFETY: each part belongs to one task; the routines are those of this machine's level, and both lengths are the
            // same number of whole vectors.
            unsafe {
                let gate = gate.slice(part.start, part.len());
                (self.routines.silu_mul)(gate, &up[part]);
            }
        });
    }

    /// `y = silu(x · Gateᵀ) ⊙ (x · Upᵀ)`, `y` being `[m][rows]`.
    fn gate_up_silu(
        &self,
        scratch: &mut ProductBuffers,
        x: &[f32],
        m: usize,
        [gate, up]: [&Matrix; 2],
        y: &mut [f32],
    ) -> Result<(), OutOfMemory> {
        let y = DisjointSlice::new(y);
        let tasks = gate.row_block_count();
        self.for_each_row_block(
            scratch,
            x,
            m,
            &[gate, up],
            tasks,
            |scratch, s, x, tokens| {
                let n = tokens.len() * ROW_BLOCK;
                self.multiply(gate, s, x.tokens(gate, &tokens), scratch);
                std::mem::swap(&mut scratch.sums, &mut scratch.gate);
                self.multiply(up, s, x.tokens(up, &tokens), scratch);
                // SAFETY: the routines are those of this machine's level; `n` is whole vectors, and both buffers have as many.
                unsafe { (self.routines.silu_mul)(&mut scratch.gate.0[..n], &scratch.sums.0[..n]) };
                store(&scratch.gate.0, gate, s, &tokens, &ProductTarget::Set(&y));
            },
        )
    }

    /// Products of the same activations, on all threads.
    fn run(
        &self,
        scratch: &mut ProductBuffers,
        x: &[f32],
        m: usize,
        products: &[MatrixTarget],
    ) -> Result<(), OutOfMemory> {
        let choice = |product: &MatrixTarget| self.tiled_routines(m, product.0);
        let mut others: Vec<&MatrixTarget> = products.iter().collect();
        while let Some(shared) = others.iter().find_map(|product| choice(product)) {
            let (tiled, rest): (Vec<_>, Vec<_>) = others
                .into_iter()
                .partition(|product| choice(product) == Some(shared));
            self.run_tiled(scratch, shared, x, &tiled)?;
            others = rest;
        }
        if others.is_empty() {
            return Ok(());
        }
        self.run_row_blocks(scratch, x, m, &others)
    }

    /// [`Cpu::run`] row block by row block.
    fn run_row_blocks(
        &self,
        scratch: &mut ProductBuffers,
        x: &[f32],
        m: usize,
        products: &[&MatrixTarget],
    ) -> Result<(), OutOfMemory> {
        let matrices: Vec<&Matrix> = products.iter().map(|(w, _)| *w).collect();
        let tasks = matrices.iter().map(|w| w.row_block_count()).sum();
        self.for_each_row_block(
            scratch,
            x,
            m,
            &matrices,
            tasks,
            |scratch, task, x, tokens| {
                let mut first = 0;
                for (w, target) in products {
                    if task < first + w.row_block_count() {
                        self.multiply(w, task - first, x.tokens(w, &tokens), scratch);
                        store(&scratch.sums.0, w, task - first, &tokens, target);
                        return;
                    }
                    first += w.row_block_count();
                }
            },
        )
    }

    /// Runs `task(scratch, row_block, activations, tokens)` for every row block and every block of tokens.
    fn for_each_row_block(
        &self,
        scratch: &mut ProductBuffers,
        x: &[f32],
        m: usize,
        matrices: &[&Matrix],
        row_blocks: usize,
        task: impl Fn(&mut ProductScratch, usize, &ProductInput, Range<usize>) + Sync,
    ) -> Result<(), OutOfMemory> {
        if m == 0 {
            return Ok(());
        }
        let ProductBuffers {
            by_group,
            by_half,
            scratches,
            ..
        } = scratch;
        if !self.exact {
            for (granularity, rounded) in [
                (Granularity::Group, &mut *by_group),
                (Granularity::Half, &mut *by_half),
            ] {
                if matrices
                    .iter()
                    .any(|w| Granularity::of(w.block_type()) == Some(granularity))
                {
                    rounded.fill(&self.pool, self.routines.quantise, granularity, x)?;
                }
            }
        }
        let input = ProductInput {
            x,
            cols: matrices[0].cols(),
            by_group,
            by_half,
            exact: self.exact,
        };
        let scratches = DisjointSlice::new(scratches);
        self.pool.parallel_for(row_blocks, |worker, i| {
            // SAFETY: a worker is one thread, and runs one task at a time.
            let scratch = &mut unsafe { scratches.slice(worker, 1) }[0];
            for first in (0..m).step_by(MC_STREAM) {
                let tokens = first..(first + MC_STREAM).min(m);
                task(scratch, i, &input, tokens);
            }
        });
        Ok(())
    }

    /// Returns the tiled routines for `m` tokens and a matrix, or `None` if the tokens are too few or the type is
    /// unsupported.
    fn tiled_routines(&self, m: usize, w: &Matrix) -> Option<TileChoice> {
        if self.exact || m <= BATCH_INVARIANT_MAX {
            return None;
        }
        let mut candidates = self.routines.tiles.iter();
        candidates.find_map(|routines| {
            routines
                .granularity_for(m, w.block_type(), w.cols())
                .map(|granularity| TileChoice {
                    routines,
                    granularity,
                })
        })
    }

    /// [`Cpu::run`] with tiled activations, of products that share routines and granularity.
    fn run_tiled(
        &self,
        scratch: &mut ProductBuffers,
        TileChoice {
            routines,
            granularity,
        }: TileChoice,
        x: &[f32],
        products: &[&MatrixTarget],
    ) -> Result<(), OutOfMemory> {
        let ProductBuffers {
            by_tile,
            tile_scratches,
            ..
        } = scratch;
        let cols = products[0].0.cols();
        for (pass, x) in x.chunks(routines.mc * cols).enumerate() {
            by_tile.fill(
                &self.pool,
                (routines.shape, routines.pack),
                granularity,
                x,
                cols,
            )?;
            let first = pass * routines.mc;
            let row_blocks: Vec<_> = products
                .iter()
                .flat_map(|(w, target)| {
                    (0..w.row_block_count())
                        .map(move |s| w.row_block(s, target.epilogue(w, first, s)))
                })
                .collect();
            let m = x.len() / cols;
            self.multiply_groups(
                routines,
                [m, cols],
                by_tile.as_slice(),
                &row_blocks,
                tile_scratches,
            )?;
        }
        Ok(())
    }

    /// [`Cpu::feed_forward`] with tiled activations: gate and up write the activations of down as tiles, never as floats.
    fn feed_forward_tiled(
        &self,
        scratch: &mut ProductBuffers,
        [
            TileChoice {
                routines,
                granularity,
            },
            down_tiles,
        ]: [TileChoice; 2],
        x: &[f32],
        [gate, up, down]: [&Matrix; 3],
        y: &mut [f32],
    ) -> Result<(), OutOfMemory> {
        let ProductBuffers {
            by_tile,
            tile_scratches,
            gated_by_tile,
            ..
        } = scratch;
        let (cols, hidden) = (gate.cols(), gate.rows());
        let target = ProductTarget::Add(&DisjointSlice::new(y));
        for (pass, x) in x.chunks(routines.mc * cols).enumerate() {
            by_tile.fill(
                &self.pool,
                (routines.shape, routines.pack),
                granularity,
                x,
                cols,
            )?;
            let m = x.len() / cols;
            gated_by_tile.resize(routines.shape, m, hidden)?;
            let gated = DisjointSlice::new(gated_by_tile.as_mut_slice());
            let row_blocks: Vec<_> = (0..gate.row_block_count())
                .flat_map(|s| {
                    let end = TileEpilogue::SwiGlu {
                        to: &gated,
                        granularity: down_tiles.granularity,
                        group: s,
                        cols: hidden,
                    };
                    [gate.row_block(s, TileEpilogue::Gate), up.row_block(s, end)]
                })
                .collect();
            self.multiply_groups(
                routines,
                [m, cols],
                by_tile.as_slice(),
                &row_blocks,
                tile_scratches,
            )?;
            let first = pass * routines.mc;
            let row_blocks: Vec<_> = (0..down.row_block_count())
                .map(|s| down.row_block(s, target.epilogue(down, first, s)))
                .collect();
            let gated = gated_by_tile.as_slice();
            self.multiply_groups(routines, [m, hidden], gated, &row_blocks, tile_scratches)?;
        }
        Ok(())
    }

    /// Multiplies row blocks with `m` tokens of `cols` columns.
    fn multiply_groups(
        &self,
        routines: &TileRoutines,
        [m, cols]: [usize; 2],
        x: &[u16],
        row_blocks: &[tiles::RowBlock],
        buffers: &mut [tiles::TileScratch],
    ) -> Result<(), OutOfMemory> {
        for scratch in &mut *buffers {
            scratch.reserve(routines.scratch)?;
        }
        // Several groups for each thread, so that fast cores take over from slow ones; an even number of row blocks, so that a
        // gate and its row block of up stay in one group.
        let even = row_blocks.len().div_ceil(2 * self.pool.threads());
        let each = even.next_multiple_of(2).min(routines.nc);
        let buffers = DisjointSlice::new(buffers);
        self.pool
            .parallel_for(row_blocks.len().div_ceil(each), |worker, i| {
                // SAFETY: a worker is one thread, and runs one task at a time.
                let scratch = &mut unsafe { buffers.slice(worker, 1) }[0];
                let row_blocks = &row_blocks[i * each..((i + 1) * each).min(row_blocks.len())];
                let block_group = RowBlockGroup {
                    m,
                    cols,
                    x,
                    row_blocks,
                };
                // SAFETY: the routines are those of this machine's level; a matrix is packed as its type says; the results of a
                // row block belong to one group.
                unsafe { (routines.multiply)(&block_group, scratch) };
            });
        Ok(())
    }

    fn multiply(
        &self,
        w: &Matrix,
        row_block: usize,
        x: TokenActivations,
        scratch: &mut ProductScratch,
    ) {
        let row_block = RowBlockTask {
            ty: w.block_type(),
            panels: w.panels(row_block),
            panel_bytes: w.panel_bytes(),
            cols: w.cols(),
            x,
        };
        let multiply = match row_block.x.len() {
            1 => self.routines.multiply_one,
            _ => self.routines.multiply,
        };
        // SAFETY: the routines are those of this machine's level; a matrix is packed as its type says, and `ProductInput`
        // returns as many activations as there are columns.
        unsafe { multiply(&row_block, scratch) };
    }
}

/// The tiled routines of a product, and the granularity of its activations.
#[derive(Clone, Copy)]
struct TileChoice {
    routines: &'static TileRoutines,
    granularity: Granularity,
}

impl PartialEq for TileChoice {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.routines, other.routines) && self.granularity == other.granularity
    }
}

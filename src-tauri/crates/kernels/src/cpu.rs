//! The executor: a level, a pool of threads, and the products of a forward pass.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::ShapeError;
use crate::activations::{Grain, Rounded, Tiled};
use crate::attention::{Attention, Desks, attend};
use crate::block::BlockType;
use crate::kv::KvLayer;
use crate::layout::GROUP;
use crate::level::CpuLevel;
use crate::matrix::Matrix;
use crate::memory::Arena;
use crate::pool::{Parts, Pool};
use crate::product::{BUNCH, STREAM, STRIP, Stage, Strip, TOKENS, Tokens, room};
use crate::routines::Routines;

/// Runs the kernels on a fixed number of threads at one instruction-set level.
pub struct Cpu {
    pool: Pool,
    level: CpuLevel,
    routines: &'static Routines,
    exact: bool,
    arena: Mutex<Arena>,
    scratch: Mutex<Scratch>,
    desks: Mutex<Desks>,
}

/// Memory for products, made once and grown to the largest.
struct Scratch {
    by_group: Rounded,
    by_half: Rounded,
    by_tile: Tiled,
    stages: Vec<Stage>,
}

impl Cpu {
    /// An executor on `threads` threads (the caller is one of them). A level that this machine
    /// does not have falls back to [`CpuLevel::Scalar`].
    pub fn new(threads: usize, level: CpuLevel) -> Cpu {
        let level = if CpuLevel::available().contains(&level) {
            level
        } else {
            CpuLevel::Scalar
        };
        Self::with(threads, level, false)
    }

    /// An executor that keeps activations and arithmetic in f32: the reference for fidelity.
    pub fn exact(threads: usize) -> Cpu {
        Self::with(threads, CpuLevel::best(), true)
    }

    fn with(threads: usize, level: CpuLevel, exact: bool) -> Cpu {
        let pool = Pool::new(threads);
        let stages = (0..pool.threads()).map(|_| Stage::new()).collect();
        let desks = Mutex::new(Desks::new(pool.threads()));
        Cpu {
            pool,
            level,
            routines: Routines::of(level),
            exact,
            arena: Mutex::default(),
            scratch: Mutex::new(Scratch {
                by_group: Rounded::default(),
                by_half: Rounded::default(),
                by_tile: Tiled::default(),
                stages,
            }),
            desks,
        }
    }

    /// Threads that share the work, the caller's included.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// The instruction-set level in use.
    pub fn level(&self) -> CpuLevel {
        self.level
    }

    /// Whether activations stay in f32.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Lays out `rows × cols` weights for the products, in as many bytes as the file's.
    ///
    /// # Errors
    /// When the type cannot hold such rows, or `bytes` is not exactly as long as they take.
    pub fn pack(
        &self,
        ty: BlockType,
        rows: usize,
        cols: usize,
        bytes: &[u8],
    ) -> Result<Matrix, ShapeError> {
        let mut arena = self.arena.lock().unwrap_or_else(PoisonError::into_inner);
        Matrix::pack(&self.pool, self.routines, &mut arena, ty, rows, cols, bytes)
    }

    /// `y[m][rows] = x[m][cols] · Wᵀ`.
    ///
    /// # Panics
    /// When `x` or `y` is not of that shape; so do all the products.
    pub fn product(&self, x: &[f32], m: usize, w: &Matrix, y: &mut [f32]) {
        check(x, m, w, y);
        self.run(x, m, &[(w, Sink::Set(&Parts::new(y)))]);
    }

    /// `y[m][rows] += x[m][cols] · Wᵀ`: a product into the residual stream.
    pub fn product_add(&self, x: &[f32], m: usize, w: &Matrix, y: &mut [f32]) {
        check(x, m, w, y);
        self.run(x, m, &[(w, Sink::Add(&Parts::new(y)))]);
    }

    /// Three products of the same activations, in one go.
    pub fn qkv(&self, x: &[f32], m: usize, w: [&Matrix; 3], y: [&mut [f32]; 3]) {
        for (w, y) in w.iter().zip(&y) {
            check(x, m, w, y);
        }
        let [q, k, v] = y.map(Parts::new);
        self.run(
            x,
            m,
            &[
                (w[0], Sink::Set(&q)),
                (w[1], Sink::Set(&k)),
                (w[2], Sink::Set(&v)),
            ],
        );
    }

    /// `y = silu(x · Gateᵀ) ⊙ (x · Upᵀ)`, `y` being `[m][rows]`.
    pub fn gate_up_silu(&self, x: &[f32], m: usize, gate: &Matrix, up: &Matrix, y: &mut [f32]) {
        assert!(
            gate.rows() == up.rows() && gate.cols() == up.cols(),
            "gate and up are twins"
        );
        check(x, m, gate, y);
        let y = Parts::new(y);
        self.strips(
            x,
            m,
            &[gate, up],
            gate.strips(),
            |stage, bunch, x, tokens| {
                let n = bunch.len() * room(tokens.len());
                self.multiply(gate, &bunch, x.tokens(gate, &tokens), stage);
                std::mem::swap(&mut stage.sums, &mut stage.gate);
                self.multiply(up, &bunch, x.tokens(up, &tokens), stage);
                // SAFETY: this executor's routines are its machine's; `n` is whole vectors.
                unsafe { (self.routines.silu_mul)(&mut stage.gate.0[..n], &stage.sums.0[..n]) };
                store(&stage.gate.0, gate, bunch, &tokens, &Sink::Set(&y));
            },
        );
    }

    /// Products of the same activations, on all threads.
    fn run(&self, x: &[f32], m: usize, products: &[(&Matrix, Sink)]) {
        let matrices: Vec<&Matrix> = products.iter().map(|(w, _)| *w).collect();
        let total = matrices.iter().map(|w| w.strips()).sum();
        self.strips(x, m, &matrices, total, |stage, bunch, x, tokens| {
            // A bunch may reach from one matrix into the next.
            let mut first = 0;
            for (w, sink) in products {
                let part = bunch.start.max(first)..bunch.end.min(first + w.strips());
                if !part.is_empty() {
                    let part = part.start - first..part.end - first;
                    self.multiply(w, &part, x.tokens(w, &tokens), stage);
                    store(&stage.sums.0, w, part, &tokens, sink);
                }
                first += w.strips();
            }
        });
    }

    /// Runs `piece(stage, strips, activations, tokens)` for every strip, in bunches where that
    /// pays, and every block of tokens.
    fn strips(
        &self,
        x: &[f32],
        m: usize,
        matrices: &[&Matrix],
        strips: usize,
        piece: impl Fn(&mut Stage, Range<usize>, &Source, Range<usize>) + Sync,
    ) {
        if m == 0 {
            return;
        }
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let Scratch {
            by_group,
            by_half,
            by_tile,
            stages,
        } = &mut *scratch;
        let cols = matrices[0].cols();
        let arrange = self
            .routines
            .arrange
            .filter(|_| !self.exact && m > STREAM && cols.is_multiple_of(GROUP))
            .filter(|_| matrices.iter().all(|w| w.block_type() != BlockType::F32));
        if let Some(arrange) = arrange {
            by_tile.fill(&self.pool, arrange, x, cols);
        } else if !self.exact {
            for (grain, rounded) in [(Grain::Group, &mut *by_group), (Grain::Half, &mut *by_half)] {
                if matrices.iter().any(|w| w.grain() == Some(grain)) {
                    rounded.fill(&self.pool, self.routines, grain, x);
                }
            }
        }
        let source = Source {
            x,
            cols,
            by_group,
            by_half,
            by_tile: arrange.map(|_| &*by_tile),
            exact: self.exact,
        };
        let stages = Parts::new(stages);
        // Enough pieces that a slow core can leave some to the others.
        let bunch = match arrange {
            Some(_) => (strips / (4 * self.pool.threads())).clamp(1, BUNCH),
            None => 1,
        };
        self.pool.pieces(strips.div_ceil(bunch), |worker, i| {
            // SAFETY: a worker is one thread, and runs one piece at a time.
            let stage = &mut unsafe { stages.slice(worker, 1) }[0];
            let bunch = i * bunch..((i + 1) * bunch).min(strips);
            for first in (0..m).step_by(TOKENS) {
                let tokens = first..(first + TOKENS).min(m);
                piece(stage, bunch.clone(), &source, tokens);
            }
        });
    }

    fn multiply(&self, w: &Matrix, strips: &Range<usize>, x: Tokens, stage: &mut Stage) {
        let strip = Strip {
            ty: w.block_type(),
            panels: w.panels(strips.clone()),
            panel_bytes: w.panel_bytes(),
            cols: w.cols(),
            x,
        };
        // SAFETY: this executor's routines are its machine's; a matrix is packed as its type
        // says, and `Source` cuts as many activations as there are columns.
        unsafe { (self.routines.multiply)(&strip, stage) };
    }

    /// RMS norm of every row of `weight.len()` values: `y = x / √(mean x² + eps) ⊙ weight`.
    ///
    /// # Panics
    /// When `x` and `y` are not the same whole number of rows.
    pub fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
        let n = weight.len();
        assert!(
            x.len() == y.len() && x.len().is_multiple_of(n),
            "x and y are rows of n"
        );
        let y = Parts::new(y);
        self.pool.pieces((x.len() / n).div_ceil(ROWS), |_, piece| {
            let part = piece * ROWS * n..((piece + 1) * ROWS * n).min(x.len());
            // SAFETY: each row is one piece's own.
            let y = unsafe { y.slice(part.start, part.len()) };
            for (x, y) in x[part].chunks_exact(n).zip(y.chunks_exact_mut(n)) {
                // SAFETY: this executor's routines are its machine's; rows are as long as weight.
                unsafe { (self.routines.rms_norm)(x, weight, eps, y) };
            }
        });
    }

    /// Rotates pairs `(2j, 2j + 1)` of the first `rotary` components of each head.
    ///
    /// `x` is `[m][heads][head_dim]`; `cos_sin` is `[m][rotary / 2]` pairs of cosine and sine, for
    /// the positions of the `m` rows.
    ///
    /// # Panics
    /// When the lengths are not those.
    pub fn rope(
        &self,
        x: &mut [f32],
        heads: usize,
        head_dim: usize,
        rotary: usize,
        cos_sin: &[f32],
        m: usize,
    ) {
        assert!(
            x.len() == m * heads * head_dim && rotary <= head_dim && cos_sin.len() == m * rotary,
            "x is [m][heads][head_dim] and cos_sin is [m][rotary / 2][2]"
        );
        if rotary == 0 {
            return;
        }
        let row = heads * head_dim;
        let x = Parts::new(x);
        self.pool.pieces(m.div_ceil(ROWS), |_, piece| {
            for i in piece * ROWS..((piece + 1) * ROWS).min(m) {
                let turn = &cos_sin[i * rotary..(i + 1) * rotary];
                // SAFETY: each row is one piece's own; this executor's routines are its machine's,
                // and the lengths were checked above.
                unsafe { (self.routines.rotate)(x.slice(i * row, row), head_dim, rotary, turn) };
            }
        });
    }

    /// Causal attention of `m` new queries, whose keys and values `kv` already holds, after `past`
    /// earlier positions. `q` and `out` are `[m][heads][head_dim]`; query head `h` reads key head
    /// `h / (heads / kv_heads)`; scores are scaled by `1 / √head_dim`.
    ///
    /// # Panics
    /// When the lengths are not those, or `kv` holds fewer than `past + m` positions.
    pub fn attention(
        &self,
        q: &[f32],
        m: usize,
        heads: usize,
        kv: &KvLayer,
        past: usize,
        out: &mut [f32],
    ) {
        assert!(
            q.len() == m * heads * kv.head_dim() && out.len() == q.len(),
            "q and out are [m][heads][head_dim]"
        );
        assert!(
            heads.is_multiple_of(kv.kv_heads()),
            "query heads share key heads evenly"
        );
        assert!(kv.len() >= past + m, "keys and values are appended first");
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        let exact = self.exact;
        let attention = Attention {
            q,
            m,
            heads,
            kv,
            past,
            exact,
        };
        attend(&self.pool, self.routines, &mut desks, &attention, out);
    }
}

/// Rows of a piece in the loops between products: enough work to be worth another thread.
const ROWS: usize = 16;

/// The activations of a product, as the weights' type wants them.
struct Source<'a> {
    x: &'a [f32],
    cols: usize,
    by_group: &'a Rounded,
    by_half: &'a Rounded,
    /// All of them as tiles, when there is a matrix unit and they are many.
    by_tile: Option<&'a Tiled>,
    exact: bool,
}

impl Source<'_> {
    fn tokens(&self, w: &Matrix, range: &Range<usize>) -> Tokens<'_> {
        let cells = range.start * self.cols..range.end * self.cols;
        let m = range.len();
        if let Some(tiled) = self.by_tile {
            let tiles = tiled.part(range, self.cols);
            return Tokens::Tiles { m, tiles };
        }
        let rounded = match w.grain() {
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

/// What becomes of a product's results.
enum Sink<'a> {
    Set(&'a Parts<'a, f32>),
    Add(&'a Parts<'a, f32>),
}

fn check(x: &[f32], m: usize, w: &Matrix, y: &[f32]) {
    assert!(x.len() == m * w.cols(), "x is [m][cols]");
    assert!(y.len() == m * w.rows(), "y is [m][rows]");
}

/// Hands the results of some strips on, token by token: what lies side by side is written together.
fn store(sums: &[f32], w: &Matrix, strips: Range<usize>, tokens: &Range<usize>, sink: &Sink) {
    let room = room(tokens.len());
    for (i, t) in tokens.clone().enumerate() {
        for (s, sums) in strips.clone().zip(sums.chunks_exact(room)) {
            let rows = (w.rows() - s * STRIP).min(STRIP);
            let (at, sums) = (t * w.rows() + s * STRIP, &sums[i * STRIP..][..rows]);
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
}

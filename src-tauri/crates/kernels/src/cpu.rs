//! The executor: a level, a pool of threads, and the products of a forward pass.

use crate::ShapeError;
use crate::attention;
use crate::block::BlockType;
use crate::kv::KvLayer;
use crate::level::CpuLevel;
use crate::matrix::Matrix;
use crate::pool::{Parts, Pool};

/// Runs the kernels on a fixed number of threads at one instruction-set level.
pub struct Cpu {
    pool: Pool,
    level: CpuLevel,
    exact: bool,
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
        Cpu {
            pool: Pool::new(threads),
            level,
            exact: false,
        }
    }

    /// An executor that keeps activations and arithmetic in f32: the reference for fidelity.
    pub fn exact(threads: usize) -> Cpu {
        Cpu {
            pool: Pool::new(threads),
            level: CpuLevel::Scalar,
            exact: true,
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

    /// Lays out `rows × cols` weights for this executor's products.
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
        Matrix::new(ty, rows, cols, bytes)
    }

    /// `y[m][rows] = x[m][cols] · Wᵀ`.
    ///
    /// # Panics
    /// When `x` or `y` is not of that shape; so do all the products.
    pub fn product(&self, x: &[f32], m: usize, w: &Matrix, y: &mut [f32]) {
        self.each(x, m, w, y, |y, sum| *y = sum);
    }

    /// `y[m][rows] += x[m][cols] · Wᵀ`: a product into the residual stream.
    pub fn product_add(&self, x: &[f32], m: usize, w: &Matrix, y: &mut [f32]) {
        self.each(x, m, w, y, |y, sum| *y += sum);
    }

    /// Three products of the same activations.
    pub fn qkv(&self, x: &[f32], m: usize, w: [&Matrix; 3], y: [&mut [f32]; 3]) {
        for (w, y) in w.into_iter().zip(y) {
            self.product(x, m, w, y);
        }
    }

    /// `y = silu(x · Gateᵀ) ⊙ (x · Upᵀ)`, `y` being `[m][rows]`.
    pub fn gate_up_silu(&self, x: &[f32], m: usize, gate: &Matrix, up: &Matrix, y: &mut [f32]) {
        assert!(
            gate.rows() == up.rows() && gate.cols() == up.cols(),
            "gate and up are twins"
        );
        self.each(x, m, gate, y, |y, sum| *y = sum / (1.0 + (-sum).exp()));
        self.each(x, m, up, y, |y, sum| *y *= sum);
    }

    fn each(
        &self,
        x: &[f32],
        m: usize,
        w: &Matrix,
        y: &mut [f32],
        put: impl Fn(&mut f32, f32) + Sync,
    ) {
        let (rows, cols) = (w.rows(), w.cols());
        assert!(
            x.len() == m * cols && y.len() == m * rows,
            "x is [m][cols] and y is [m][rows]"
        );
        let parts = Parts::new(y);
        self.pool.pieces(rows, |_, r| {
            let mut row = vec![0.0; cols];
            w.row(r, &mut row);
            for i in 0..m {
                let sum = dot(&x[i * cols..(i + 1) * cols], &row);
                // SAFETY: element `r` of every row of y belongs to this piece alone.
                put(&mut unsafe { parts.slice(i * rows + r, 1) }[0], sum);
            }
        });
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
        for (x, y) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)) {
            let scale = 1.0 / (dot(x, x) / n as f32 + eps).sqrt();
            for ((y, x), w) in y.iter_mut().zip(x).zip(weight) {
                *y = x * scale * w;
            }
        }
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
        for (row, turn) in x
            .chunks_exact_mut(heads * head_dim)
            .zip(cos_sin.chunks_exact(rotary))
        {
            for head in row.chunks_exact_mut(head_dim) {
                for (pair, turn) in head.chunks_exact_mut(2).zip(turn.chunks_exact(2)) {
                    let (a, b, cos, sin) = (pair[0], pair[1], turn[0], turn[1]);
                    pair[0] = a * cos - b * sin;
                    pair[1] = a * sin + b * cos;
                }
            }
        }
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
        attention::attention(&self.pool, q, m, heads, kv, past, out);
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    let (a16, b16) = (a.chunks_exact(16), b.chunks_exact(16));
    let rest: f32 = a16
        .remainder()
        .iter()
        .zip(b16.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a16.zip(b16) {
        for ((s, a), b) in sums.iter_mut().zip(a).zip(b) {
            *s += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

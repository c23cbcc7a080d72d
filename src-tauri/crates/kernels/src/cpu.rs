//! The executor: a level, a pool of threads, and the products of a forward pass.

mod operands;
mod products;
mod scratch;

use std::sync::{Mutex, PoisonError};

use crate::attention::attend;
use crate::attention::kv::KvLayer;
use crate::attention::scratch::AttentionBuffers;
use crate::attention::task::Attention;
use crate::blocking::{BATCH_INVARIANT_MAX, KV_BLOCK, KV_SPLIT_BLOCKS};
use crate::dispatch::routines_for;
use crate::error::PackError;
use crate::level::CpuLevel;
use crate::memory::arena::Arena;
use crate::memory::reserve::OutOfMemory;
use crate::memory::stored::Stored;
use crate::pool::Pool;
use crate::pool::disjoint::DisjointSlice;
use crate::routines::Routines;
use crate::weights::block::BlockType;
use crate::weights::matrix::Matrix;
use scratch::ProductBuffers;

/// Runs the kernels on a fixed number of threads at one instruction-set level.
pub struct Cpu {
    pool: Pool,
    level: CpuLevel,
    routines: &'static Routines,
    exact: bool,
    arena: Mutex<Arena>,
    scratch: Mutex<ProductBuffers>,
    attention_buffers: Mutex<AttentionBuffers>,
}

impl Cpu {
    /// Largest number of tokens of a pass whose products and attention are bit-identical to passes of one token each.
    pub const BATCH_INVARIANT_MAX: usize = BATCH_INVARIANT_MAX;

    /// Positions of a KV split in a pass of at most [`Cpu::BATCH_INVARIANT_MAX`] tokens; attention keeps a partial result
    /// for each.
    pub const KV_SPLIT: usize = KV_BLOCK * KV_SPLIT_BLOCKS;

    /// Makes an executor on `threads` threads, the caller's included. A level that this machine lacks falls back to
    /// [`CpuLevel::Scalar`].
    pub fn new(threads: usize, level: CpuLevel) -> Cpu {
        let level = if CpuLevel::available().contains(&level) {
            level
        } else {
            CpuLevel::Scalar
        };
        Self::with(threads, level, false)
    }

    /// Makes an executor that keeps activations and arithmetic in f32: the reference for accuracy.
    pub fn exact(threads: usize) -> Cpu {
        Self::with(threads, CpuLevel::best(), true)
    }

    fn with(threads: usize, level: CpuLevel, exact: bool) -> Cpu {
        let pool = Pool::new(threads);
        let attention_buffers = Mutex::new(AttentionBuffers::new(pool.threads()));
        let scratch = ProductBuffers::new(pool.threads());
        Cpu {
            pool,
            level,
            routines: routines_for(level),
            exact,
            arena: Mutex::default(),
            scratch: Mutex::new(scratch),
            attention_buffers,
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

    /// Returns true if activations stay in f32.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Packs `rows × cols` weights for the products, in as many bytes as in the file.
    ///
    /// # Errors
    /// Fails if the type cannot hold such rows, `bytes` does not have exactly their length, or the system has no memory
    /// left.
    pub fn pack(
        &self,
        ty: BlockType,
        rows: usize,
        cols: usize,
        bytes: &[u8],
    ) -> Result<Matrix, PackError> {
        self.pack_stored(ty, rows, cols, Stored::Memory(bytes))
    }

    /// Packs weights like [`Cpu::pack`], from memory or from a file, which threads read in parts.
    ///
    /// # Errors
    /// Same as [`Cpu::pack`]; also fails if the file cannot be read.
    pub fn pack_stored(
        &self,
        ty: BlockType,
        rows: usize,
        cols: usize,
        bytes: Stored<'_>,
    ) -> Result<Matrix, PackError> {
        let mut arena = self.arena.lock().unwrap_or_else(PoisonError::into_inner);
        Matrix::pack(&self.pool, self.routines, &mut arena, ty, rows, cols, bytes)
    }

    /// RMS norm of every row of `weight.len()` values: `y = x / √(mean x² + eps) ⊙ weight`.
    ///
    /// # Panics
    /// Panics if `x` and `y` are not the same whole number of rows.
    pub fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
        let n = weight.len();
        assert!(
            x.len() == y.len() && x.len().is_multiple_of(n),
            "x and y are rows of n"
        );
        let y = DisjointSlice::new(y);
        self.pool
            .parallel_for((x.len() / n).div_ceil(TASK_ROWS), |_, task| {
                let part = task * TASK_ROWS * n..((task + 1) * TASK_ROWS * n).min(x.len());
                // SAFETY: each row belongs to one task.
                let y = unsafe { y.slice(part.start, part.len()) };
                for (x, y) in x[part].chunks_exact(n).zip(y.chunks_exact_mut(n)) {
                    // SAFETY: the routines are those of this machine's level; `x`, `y` and `weight` have `n` values.
                    unsafe { (self.routines.rms_norm)(x, weight, eps, y) };
                }
            });
    }

    /// RMS norm of every head in place; `x` is heads of `weight.len()` values.
    ///
    /// # Panics
    /// Panics if `x` is not a whole number of heads, or a head has more than 512 values.
    pub fn rms_norm_heads(&self, x: &mut [f32], weight: &[f32], eps: f32) {
        let n = weight.len();
        assert!(
            x.len().is_multiple_of(n) && n <= MAX_HEAD_DIM,
            "x is heads of n"
        );
        let heads = x.len() / n;
        let per_task = TASK_ROWS * 16;
        let x = DisjointSlice::new(x);
        self.pool.parallel_for(heads.div_ceil(per_task), |_, task| {
            let mut normed = [0.0; MAX_HEAD_DIM];
            for head in task * per_task..((task + 1) * per_task).min(heads) {
                // SAFETY: each head belongs to one task; the routines are those of this machine's level, and all three
                // slices have `n` values.
                unsafe {
                    let x = x.slice(head * n, n);
                    (self.routines.rms_norm)(x, weight, eps, &mut normed[..n]);
                    x.copy_from_slice(&normed[..n]);
                }
            }
        });
    }

    /// Rotates pairs `(2j, 2j + 1)` of the first `rotary` components of each head.
    ///
    /// `x` is `[m][heads][head_dim]`; `cos_sin` is `[m][rotary / 2]` pairs of cosine and sine, for
    /// the positions of the `m` rows.
    ///
    /// # Panics
    /// Panics if the lengths do not match.
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
        let x = DisjointSlice::new(x);
        self.pool.parallel_for(m.div_ceil(TASK_ROWS), |_, task| {
            for i in task * TASK_ROWS..((task + 1) * TASK_ROWS).min(m) {
                let turn = &cos_sin[i * rotary..(i + 1) * rotary];
                // SAFETY: each row belongs to one task; the routines are those of this machine's level, and the lengths
                // were checked above.
                unsafe { (self.routines.rotate)(x.slice(i * row, row), head_dim, rotary, turn) };
            }
        });
    }

    /// Causal attention of `m` new queries, whose keys and values `kv` already holds, after `past`
    /// earlier positions. `q` and `out` are `[m][heads][head_dim]`; query head `h` reads key head
    /// `h / (heads / kv_heads)`; scores are scaled by `1 / √head_dim`.
    ///
    /// # Errors
    /// Fails if the system has no memory left for the scratch.
    ///
    /// # Panics
    /// Panics if the lengths do not match, or `kv` holds fewer than `past + m` positions.
    pub fn attention(
        &self,
        q: &[f32],
        m: usize,
        heads: usize,
        kv: &KvLayer,
        past: usize,
        out: &mut [f32],
    ) -> Result<(), OutOfMemory> {
        assert!(
            q.len() == m * heads * kv.head_dim() && out.len() == q.len(),
            "q and out are [m][heads][head_dim]"
        );
        assert!(
            heads.is_multiple_of(kv.kv_heads()),
            "query heads share key heads evenly"
        );
        assert!(kv.len() >= past + m, "keys and values are appended first");
        let mut attention_buffers = self
            .attention_buffers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let exact = self.exact;
        let attention = Attention {
            q,
            m,
            heads,
            kv,
            past,
            exact,
        };
        attend(
            &self.pool,
            self.routines,
            &mut attention_buffers,
            &attention,
            out,
        )
    }
}

/// Rows of a task in element-wise loops: enough work to pay for another thread.
const TASK_ROWS: usize = 16;
/// Values of a head, at most.
const MAX_HEAD_DIM: usize = 512;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::dispatch::AVX512_SPLIT;

    #[test]
    fn decoding_in_narrower_vectors_gives_the_same_bits() {
        if !CpuLevel::available().contains(&CpuLevel::Avx512) {
            return;
        }
        let wide = Cpu::new(1, CpuLevel::Avx512);
        let mut narrow = Cpu::new(1, CpuLevel::Avx512);
        narrow.routines = &AVX512_SPLIT;
        let (rows, cols) = (48, 512);
        let x: Vec<f32> = (0..cols)
            .map(|i| ((i * 37 % 101) as f32 - 50.0) / 17.0)
            .collect();
        for ty in BlockType::ALL {
            let mut bytes = vec![0_u8; rows * ty.row_bytes(cols).expect("whole blocks")];
            for (i, byte) in bytes.iter_mut().enumerate() {
                // Below 0x3c, so that no scale is NaN or infinite.
                *byte = (i * 29 % 0x3c) as u8;
            }
            let [wide, narrow] = [&wide, &narrow].map(|cpu| {
                let w = cpu.pack(ty, rows, cols, &bytes).expect("the shape fits");
                let mut y = vec![0.0; rows];
                cpu.product(&x, 1, &w, &mut y).expect("memory");
                y.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            });
            assert_eq!(wide, narrow, "{ty:?}");
        }
    }
}

//! The operations of the forward pass on the CPU, over activations in buffers allocated once for the largest pass.
//!
//! Widths: E embedding, F feed-forward, H heads × `head_dim`, K `kv_heads` × `head_dim`, V vocabulary; `m` new tokens.

use std::ops::Range;

use kernels::{Cpu, KvLayer, Matrix, reserve};

use crate::model::error::DeviceError;
use crate::model::rope::Rotation;

/// Activations `[m, cols]` in a buffer for the largest pass.
pub struct Activations {
    values: Vec<f32>,
    cols: usize,
    m: usize,
}

impl Activations {
    /// A buffer for up to `rows` rows.
    ///
    /// # Errors
    /// Fails if out of memory.
    pub fn new(rows: usize, cols: usize) -> Result<Activations, DeviceError> {
        let mut values = Vec::new();
        resize(&mut values, rows.saturating_mul(cols))?;
        Ok(Activations { values, cols, m: 0 })
    }

    /// The values, row by row.
    pub fn get(&self) -> &[f32] {
        &self.values[..self.m * self.cols]
    }

    /// Keeps these ranges of rows, in ascending order.
    pub fn keep(&mut self, rows: &[Range<usize>]) {
        let mut kept = 0;
        for rows in rows {
            let values = rows.start * self.cols..rows.end * self.cols;
            self.values.copy_within(values, kept * self.cols);
            kept += rows.len();
        }
        self.m = kept;
    }

    /// These rows.
    fn rows(&self, rows: &Range<usize>) -> &[f32] {
        &self.get()[rows.start * self.cols..rows.end * self.cols]
    }

    /// The buffer as `m` rows, to be overwritten.
    fn resize(&mut self, m: usize) -> &mut [f32] {
        self.m = m;
        &mut self.values[..m * self.cols]
    }
}

/// Resizes `values`; fails if out of memory.
fn resize(values: &mut Vec<f32>, len: usize) -> Result<(), DeviceError> {
    reserve(values, len)?;
    values.resize(len, 0.0);
    Ok(())
}

/// Cosine and sine of every pair of a pass's positions: `[m][pairs][2]`.
#[derive(Default)]
pub struct CosSin {
    cos_sin: Vec<f32>,
    pairs: usize,
}

impl CosSin {
    /// Fills in runs of positions, each by its first position and its length.
    pub fn fill(&mut self, rotation: &Rotation, runs: impl Iterator<Item = (usize, usize)>) {
        self.pairs = rotation.pairs();
        self.cos_sin.clear();
        for (first, m) in runs {
            rotation.append(first, m, &mut self.cos_sin);
        }
    }
}

/// [`Cpu`]'s kernels over [`Activations`].
pub struct Operations(pub Cpu);

impl Operations {
    /// x `[m, E]` ← the rows `ids` of the table `[V, E]`, run after run.
    pub fn embed<'a>(
        &self,
        table: &Matrix,
        ids: impl Iterator<Item = &'a [u32]> + Clone,
        x: &mut Activations,
    ) {
        let x = x.resize(ids.clone().map(<[u32]>::len).sum());
        for (&id, row) in ids.flatten().zip(x.chunks_exact_mut(table.cols())) {
            table.row(id as usize, row);
        }
    }

    /// y ← x / √(mean x² + eps) ⊙ weight.
    pub fn rms_norm(&self, x: &Activations, weight: &[f32], eps: f32, y: &mut Activations) {
        self.0.rms_norm(x.get(), weight, eps, y.resize(x.m));
    }

    /// q `[m, H]`, k `[m, K]`, v `[m, K]` ← x `[m, E]` times each of the three, transposed.
    ///
    /// # Errors
    /// Fails if out of memory.
    pub fn qkv(
        &self,
        x: &Activations,
        w: [&Matrix; 3],
        y: [&mut Activations; 3],
    ) -> Result<(), DeviceError> {
        Ok(self.0.qkv(x.get(), x.m, w, y.map(|y| y.resize(x.m)))?)
    }

    /// x ← x + the bias, in every row.
    pub fn add_bias(&self, x: &mut Activations, bias: &[f32]) {
        let m = x.m;
        for row in x.resize(m).chunks_exact_mut(bias.len()) {
            for (value, bias) in row.iter_mut().zip(bias) {
                *value += bias;
            }
        }
    }

    /// x ← every head of x, normed.
    pub fn head_norm(&self, x: &mut Activations, weight: &[f32], eps: f32) {
        let m = x.m;
        self.0.rms_norm_heads(x.resize(m), weight, eps);
    }

    /// Rotates the interleaved pairs of every head.
    pub fn rope(&self, x: &mut Activations, head_dim: usize, at: &CosSin) {
        let (m, heads) = (x.m, x.cols / head_dim);
        let rotary = 2 * at.pairs;
        self.0
            .rope(x.resize(m), heads, head_dim, rotary, &at.cos_sin, m);
    }

    /// Appends these rows of k and v to a cache, then out `[m, H]` ← causal attention of the rows of q over all of it,
    /// `block` rows at a time; other rows of out stay. The last bits depend on the keys and values that one call sees;
    /// this way several blocks in one pass give the bits of single ones.
    ///
    /// # Errors
    /// Fails if out of memory.
    pub fn attention(
        &self,
        [q, k, v]: [&Activations; 3],
        rows: &Range<usize>,
        kv: &mut KvLayer,
        block: usize,
        out: &mut Activations,
    ) -> Result<(), DeviceError> {
        kv.reserve(rows.len())?;
        let heads = q.cols / kv.head_dim();
        let out = &mut out.resize(q.m)[rows.start * q.cols..rows.end * q.cols];
        let queries = q.rows(rows).chunks(block * q.cols);
        let keys = k.rows(rows).chunks(block * k.cols);
        let values = v.rows(rows).chunks(block * v.cols);
        let out = out.chunks_mut(block * q.cols);
        for (((q_rows, k_rows), v_rows), out) in queries.zip(keys).zip(values).zip(out) {
            let (past, m) = (kv.len(), k_rows.len() / k.cols);
            kv.append(k_rows, v_rows, m);
            self.0.attention(q_rows, m, heads, kv, past, out)?;
        }
        Ok(())
    }

    /// y ← y + x · wᵀ.
    ///
    /// # Errors
    /// Fails if out of memory.
    pub fn product_add(
        &self,
        x: &Activations,
        w: &Matrix,
        y: &mut Activations,
    ) -> Result<(), DeviceError> {
        Ok(self.0.product_add(x.get(), x.m, w, y.resize(x.m))?)
    }

    /// y ← y + (silu(x · gateᵀ) ⊙ (x · upᵀ)) · downᵀ, the three weights in this order.
    ///
    /// # Errors
    /// Fails if out of memory.
    pub fn feed_forward(
        &self,
        x: &Activations,
        w: [&Matrix; 3],
        y: &mut Activations,
    ) -> Result<(), DeviceError> {
        Ok(self.0.feed_forward(x.get(), x.m, w, y.resize(x.m))?)
    }

    /// logits `[m, V]` ← x `[m, E]` · headᵀ.
    ///
    /// # Errors
    /// Fails if out of memory.
    pub fn logits(
        &self,
        x: &Activations,
        head: &Matrix,
        logits: &mut Vec<f32>,
    ) -> Result<(), DeviceError> {
        resize(logits, x.m * head.rows())?;
        Ok(self.0.product(x.get(), x.m, head, logits)?)
    }
}

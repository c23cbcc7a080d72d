//! The CPU, through our own kernels. Activations are made once, and what kernels need beside them grows to the largest pass.

use kernels::{Cpu, KvLayer, KvType, Matrix, reserve};

use super::backend::{Backend, BackendError, Done, Memory};
use crate::gguf::TensorView;
use crate::model::rope::Rotation;

/// Activations `[m, cols]` in a buffer that is made for the largest chunk.
pub struct Rows {
    values: Vec<f32>,
    cols: usize,
    m: usize,
}

impl Rows {
    /// The values, row by row.
    pub fn get(&self) -> &[f32] {
        &self.values[..self.m * self.cols]
    }

    /// The buffer as `m` rows, to be overwritten.
    fn resize(&mut self, m: usize) -> &mut [f32] {
        self.m = m;
        &mut self.values[..m * self.cols]
    }
}

/// Makes `values` `len` long.
fn resize(values: &mut Vec<f32>, len: usize) -> Done {
    reserve(values, len)?;
    values.resize(len, 0.0);
    Ok(())
}

/// Cosine and sine of every pair: `[m][pairs][2]`.
pub struct Positions {
    cos_sin: Vec<f32>,
    pairs: usize,
}

impl Memory for Cpu {
    type Matrix = Matrix;
    type Norm = Vec<f32>;

    fn matrix(&self, weights: TensorView<'_>) -> Result<Matrix, BackendError> {
        Ok(self.pack_stored(weights.ty, weights.rows, weights.cols, weights.bytes)?)
    }

    fn norm(&self, weights: &[f32]) -> Result<Vec<f32>, BackendError> {
        Ok(weights.to_vec())
    }
}

impl Backend for Cpu {
    type Rows = Rows;
    type Positions = Positions;
    type KvLayer = KvLayer;

    const FEW: usize = Cpu::FEW;

    fn rows(&self, most: usize, cols: usize) -> Result<Rows, BackendError> {
        let mut values = Vec::new();
        resize(&mut values, most.saturating_mul(cols))?;
        Ok(Rows { values, cols, m: 0 })
    }

    fn positions(&self) -> Result<Positions, BackendError> {
        Ok(Positions {
            cos_sin: Vec::new(),
            pairs: 0,
        })
    }

    fn kv_layer(
        &self,
        ty: KvType,
        kv_heads: usize,
        head_dim: usize,
    ) -> Result<KvLayer, BackendError> {
        Ok(KvLayer::new(ty, kv_heads, head_dim))
    }

    fn truncate(&self, kv: &mut KvLayer, len: usize) {
        kv.truncate(len);
    }

    fn kv_bytes(&self, kv: &KvLayer) -> usize {
        kv.bytes()
    }

    fn embed(&self, table: &Matrix, ids: &[u32], x: &mut Rows) -> Done {
        let x = x.resize(ids.len());
        for (&id, row) in ids.iter().zip(x.chunks_exact_mut(table.cols())) {
            table.row(id as usize, row);
        }
        Ok(())
    }

    fn place(&self, rotation: &Rotation, first: usize, m: usize, at: &mut Positions) -> Done {
        at.pairs = rotation.pairs();
        rotation.fill(first, m, &mut at.cos_sin);
        Ok(())
    }

    fn rms_norm(&self, x: &Rows, weight: &Vec<f32>, eps: f32, y: &mut Rows) -> Done {
        Cpu::rms_norm(self, x.get(), weight, eps, y.resize(x.m));
        Ok(())
    }

    fn qkv(&self, x: &Rows, w: [&Matrix; 3], y: [&mut Rows; 3]) -> Done {
        Ok(Cpu::qkv(self, x.get(), x.m, w, y.map(|y| y.resize(x.m)))?)
    }

    fn rope(&self, x: &mut Rows, head_dim: usize, at: &Positions) -> Done {
        let (m, heads) = (x.m, x.cols / head_dim);
        Cpu::rope(
            self,
            x.resize(m),
            heads,
            head_dim,
            2 * at.pairs,
            &at.cos_sin,
            m,
        );
        Ok(())
    }

    fn attention(
        &self,
        q: &Rows,
        k: &Rows,
        v: &Rows,
        kv: &mut KvLayer,
        _: &Positions,
        out: &mut Rows,
    ) -> Done {
        let past = kv.len();
        kv.reserve(k.m)?;
        kv.append(k.get(), v.get(), k.m);
        let heads = q.cols / kv.head_dim();
        let out = out.resize(q.m);
        Ok(Cpu::attention(self, q.get(), q.m, heads, kv, past, out)?)
    }

    fn product_add(&self, x: &Rows, w: &Matrix, y: &mut Rows) -> Done {
        Ok(Cpu::product_add(self, x.get(), x.m, w, y.resize(x.m))?)
    }

    fn feed_forward(&self, x: &Rows, w: [&Matrix; 3], y: &mut Rows) -> Done {
        Ok(Cpu::feed_forward(self, x.get(), x.m, w, y.resize(x.m))?)
    }

    fn rows_from(&self, x: &Rows, first: usize, y: &mut Rows) -> Done {
        y.resize(x.m - first)
            .copy_from_slice(&x.get()[first * x.cols..]);
        Ok(())
    }

    fn logits(&self, x: &Rows, head: &Matrix, logits: &mut Vec<f32>) -> Done {
        resize(logits, x.m * head.rows())?;
        Ok(self.product(x.get(), x.m, head, logits)?)
    }
}

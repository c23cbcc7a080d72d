//! GPUs, through candle's quantised tensors. On candle's CPU device it is the cpu backend's twin in tests.

use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{DType, Device, Module, Tensor};
use kernels::{BlockType, KvType};

use super::backend::{Backend, BackendError, Done, Memory};
use crate::gguf::TensorView;
use crate::model::rope::Rotation;

/// Positions by which a cache grows.
const KV_BLOCK: usize = 512;

/// A device of candle's.
pub struct Candle {
    device: Device,
}

/// Cosines and sines `[m, rotary / 2]`, and for more than one token the causal mask `[m, past + m]`.
pub struct Positions {
    cos: Tensor,
    sin: Tensor,
    mask: Option<Tensor>,
}

/// Keys and values `[kv_heads, capacity, head_dim]`, the first `len` positions of them in use.
pub struct KvLayer {
    k: Tensor,
    v: Tensor,
    len: usize,
}

impl From<candle_core::Error> for BackendError {
    fn from(error: candle_core::Error) -> Self {
        BackendError::Failed(error.to_string())
    }
}

impl Candle {
    /// The backend on `device`.
    pub fn new(device: Device) -> Candle {
        Candle { device }
    }
}

impl Memory for Candle {
    type Matrix = QMatMul;
    type Norm = Tensor;

    fn matrix(&self, weights: TensorView<'_>) -> Result<QMatMul, BackendError> {
        let bytes = weights.bytes.read().map_err(BackendError::Read)?;
        // candle asserts that the bytes are aligned for the type; memory of this size always is.
        if !bytes.as_ptr().addr().is_multiple_of(align_of::<f32>()) {
            return Err(BackendError::Failed("its bytes are not aligned".to_owned()));
        }
        let storage = QStorage::from_data(bytes, &self.device, ggml_type(weights.ty))?;
        let tensor = QTensor::new(storage, (weights.rows, weights.cols))?;
        let half = matches!(weights.ty, BlockType::F16 | BlockType::BF16);
        if half && !self.device.is_cpu() {
            return Ok(QMatMul::TensorF16(tensor.dequantize_f16(&self.device)?));
        }
        Ok(QMatMul::from_arc(Arc::new(tensor))?)
    }

    fn norm(&self, weights: &[f32]) -> Result<Tensor, BackendError> {
        Ok(Tensor::new(weights, &self.device)?)
    }
}

impl Backend for Candle {
    type Rows = Tensor;
    type Positions = Positions;
    type KvLayer = KvLayer;

    fn rows(&self, _: usize, cols: usize) -> Result<Tensor, BackendError> {
        Ok(Tensor::zeros((1, cols), DType::F32, &self.device)?)
    }

    fn positions(&self) -> Result<Positions, BackendError> {
        let none = Tensor::zeros((1, 1), DType::F32, &self.device)?;
        Ok(Positions {
            cos: none.clone(),
            sin: none,
            mask: None,
        })
    }

    fn kv_layer(
        &self,
        ty: KvType,
        kv_heads: usize,
        head_dim: usize,
    ) -> Result<KvLayer, BackendError> {
        // candle has no quantised cache: f16 is the nearest.
        let dtype = if ty == KvType::F32 {
            DType::F32
        } else {
            DType::F16
        };
        let k = Tensor::zeros((kv_heads, KV_BLOCK, head_dim), dtype, &self.device)?;
        let v = k.zeros_like()?;
        Ok(KvLayer { k, v, len: 0 })
    }

    fn truncate(&self, kv: &mut KvLayer, len: usize) {
        kv.len = kv.len.min(len);
    }

    fn kv_bytes(&self, kv: &KvLayer) -> usize {
        2 * kv.k.elem_count() * kv.k.dtype().size_in_bytes()
    }

    fn embed(&self, table: &QMatMul, ids: &[u32], x: &mut Tensor) -> Done {
        *x = table
            .embedding(&Tensor::new(ids, &self.device)?)?
            .to_dtype(DType::F32)?;
        Ok(())
    }

    fn place(&self, rotation: &Rotation, first: usize, m: usize, at: &mut Positions) -> Done {
        let mut cos_sin = Vec::new();
        rotation.fill(first, m, &mut cos_sin);
        let table = Tensor::from_vec(cos_sin, (m, rotation.pairs(), 2), &self.device)?;
        at.cos = table.narrow(2, 0, 1)?.squeeze(2)?.contiguous()?;
        at.sin = table.narrow(2, 1, 1)?.squeeze(2)?.contiguous()?;
        at.mask = if m == 1 {
            None
        } else {
            Some(causal_mask(first, m, &self.device)?)
        };
        Ok(())
    }

    fn rms_norm(&self, x: &Tensor, weight: &Tensor, eps: f32, y: &mut Tensor) -> Done {
        *y = candle_nn::ops::rms_norm(x, weight, eps)?;
        Ok(())
    }

    fn qkv(&self, x: &Tensor, w: [&QMatMul; 3], y: [&mut Tensor; 3]) -> Done {
        for (w, y) in w.into_iter().zip(y) {
            *y = w.forward(x)?;
        }
        Ok(())
    }

    fn rope(&self, x: &mut Tensor, head_dim: usize, at: &Positions) -> Done {
        let heads = by_head(x, head_dim)?.unsqueeze(0)?; // [1, heads, m, head_dim]
        let rotary = 2 * at.cos.dim(1)?;
        let rotated = if rotary == head_dim {
            candle_nn::rotary_emb::rope_i(&heads, &at.cos, &at.sin)?
        } else {
            let turning = heads.narrow(3, 0, rotary)?.contiguous()?;
            let turned = candle_nn::rotary_emb::rope_i(&turning, &at.cos, &at.sin)?;
            Tensor::cat(&[&turned, &heads.narrow(3, rotary, head_dim - rotary)?], 3)?
        };
        *x = rotated.squeeze(0)?.transpose(0, 1)?; // [m, heads, head_dim], a view
        Ok(())
    }

    fn attention(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        kv: &mut KvLayer,
        at: &Positions,
        out: &mut Tensor,
    ) -> Done {
        let (kv_heads, _, head_dim) = kv.k.dims3()?;
        kv.append(&by_head(k, head_dim)?, &by_head(v, head_dim)?)?;
        let q = by_head(q, head_dim)?; // [heads, m, head_dim]
        let (heads, m, _) = q.dims3()?;
        let group = heads / kv_heads;
        let dtype = kv.k.dtype();

        // Heads that share keys stand one above the other, so that nothing is repeated.
        let q = q
            .reshape((kv_heads, group * m, head_dim))?
            .to_dtype(dtype)?;
        let keys = kv.k.narrow(1, 0, kv.len)?; // [kv_heads, n, head_dim]
        let scores = q.matmul(&keys.t()?)?.to_dtype(DType::F32)?;
        let scores = (scores / (head_dim as f64).sqrt())?; // [kv_heads, group · m, n]
        let scores = match &at.mask {
            Some(mask) => scores
                .reshape((heads, m, kv.len))?
                .broadcast_add(mask)?
                .reshape(scores.shape())?,
            None => scores,
        };
        let weights = candle_nn::ops::softmax_last_dim(&scores)?.to_dtype(dtype)?;
        let attended = weights.matmul(&kv.v.narrow(1, 0, kv.len)?)?; // [kv_heads, group · m, head_dim]
        *out = attended
            .to_dtype(DType::F32)?
            .reshape((heads, m, head_dim))?
            .transpose(0, 1)?
            .reshape((m, heads * head_dim))?;
        Ok(())
    }

    fn product_add(&self, x: &Tensor, w: &QMatMul, y: &mut Tensor) -> Done {
        *y = (&*y + w.forward(x)?)?;
        Ok(())
    }

    fn feed_forward(&self, x: &Tensor, [gate, up, down]: [&QMatMul; 3], y: &mut Tensor) -> Done {
        let gated = (gate.forward(x)?.silu()? * up.forward(x)?)?;
        *y = (&*y + down.forward(&gated)?)?;
        Ok(())
    }

    fn rows_from(&self, x: &Tensor, first: usize, y: &mut Tensor) -> Done {
        *y = x.narrow(0, first, x.dim(0)? - first)?.contiguous()?;
        Ok(())
    }

    fn logits(&self, x: &Tensor, head: &QMatMul, logits: &mut Vec<f32>) -> Done {
        *logits = head.forward(x)?.flatten_all()?.to_vec1()?;
        Ok(())
    }
}

impl KvLayer {
    /// Appends keys and values `[kv_heads, m, head_dim]`.
    fn append(&mut self, k: &Tensor, v: &Tensor) -> candle_core::Result<()> {
        let m = k.dim(1)?;
        let missing = (self.len + m).saturating_sub(self.k.dim(1)?);
        if missing > 0 {
            let (heads, _, head_dim) = self.k.dims3()?;
            let more = (heads, missing.next_multiple_of(KV_BLOCK), head_dim);
            let more = Tensor::zeros(more, self.k.dtype(), self.k.device())?;
            self.k = Tensor::cat(&[&self.k, &more], 1)?;
            self.v = Tensor::cat(&[&self.v, &more], 1)?;
        }
        self.k
            .slice_set(&k.to_dtype(self.k.dtype())?, 1, self.len)?;
        self.v
            .slice_set(&v.to_dtype(self.v.dtype())?, 1, self.len)?;
        self.len += m;
        Ok(())
    }
}

/// `[m, heads · head_dim]` or `[m, heads, head_dim]` as `[heads, m, head_dim]`.
fn by_head(x: &Tensor, head_dim: usize) -> candle_core::Result<Tensor> {
    let heads = x.elem_count() / x.dim(0)? / head_dim;
    x.reshape((x.dim(0)?, heads, head_dim))?
        .transpose(0, 1)?
        .contiguous()
}

/// −∞ where a query would see a later token: `[m, past + m]`.
fn causal_mask(past: usize, m: usize, device: &Device) -> candle_core::Result<Tensor> {
    let n = past + m;
    let sees = |query: usize, key: usize| key <= past + query;
    let mask: Vec<f32> = (0..m * n)
        .map(|at| {
            if sees(at / n, at % n) {
                0.0
            } else {
                f32::NEG_INFINITY
            }
        })
        .collect();
    Tensor::from_vec(mask, (m, n), device)
}

fn ggml_type(ty: BlockType) -> GgmlDType {
    match ty {
        BlockType::F32 => GgmlDType::F32,
        BlockType::F16 => GgmlDType::F16,
        BlockType::BF16 => GgmlDType::BF16,
        BlockType::Q4_0 => GgmlDType::Q4_0,
        BlockType::Q4_1 => GgmlDType::Q4_1,
        BlockType::Q5_0 => GgmlDType::Q5_0,
        BlockType::Q5_1 => GgmlDType::Q5_1,
        BlockType::Q8_0 => GgmlDType::Q8_0,
        BlockType::Q2K => GgmlDType::Q2K,
        BlockType::Q3K => GgmlDType::Q3K,
        BlockType::Q4K => GgmlDType::Q4K,
        BlockType::Q5K => GgmlDType::Q5K,
        BlockType::Q6K => GgmlDType::Q6K,
    }
}

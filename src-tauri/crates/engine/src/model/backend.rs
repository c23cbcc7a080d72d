//! What a device must be able to do to run the forward pass.

use std::io;

use kernels::{KvType, OutOfMemory, PackError};

use crate::gguf::TensorView;
use crate::model::rope::Rotation;

/// A device that does not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// Its memory is full.
    #[error("{0}")]
    Full(String),
    /// It failed: a missing kernel, a lost GPU.
    #[error("{0}")]
    Failed(String),
    /// What it was to take cannot be read.
    #[error("{0}")]
    Read(#[source] io::Error),
}

impl From<OutOfMemory> for BackendError {
    fn from(error: OutOfMemory) -> Self {
        BackendError::Full(error.to_string())
    }
}

impl From<PackError> for BackendError {
    fn from(error: PackError) -> Self {
        match error {
            PackError::Shape(error) => BackendError::Failed(error.to_string()),
            PackError::Memory(error) => error.into(),
            PackError::Read(error) => BackendError::Read(error),
        }
    }
}

/// Where weights are brought to.
pub trait Memory {
    /// A quantised matrix on the device.
    type Matrix;
    /// The weight of a norm.
    type Norm;

    /// Brings a matrix `[rows, cols]` to the device.
    fn matrix(&self, weights: TensorView<'_>) -> Result<Self::Matrix, BackendError>;
    /// Brings the weight of a norm to the device.
    fn norm(&self, weights: &[f32]) -> Result<Self::Norm, BackendError>;
}

/// The operations of the forward pass. Activations are rows of f32 that stay on the device.
///
/// Widths: E embedding, F feed-forward, H heads × head_dim, K kv_heads × head_dim, V vocabulary; `m` new tokens.
pub trait Backend: Memory {
    /// Activations of up to a chunk of tokens.
    type Rows;
    /// What follows from a chunk's positions: cosines and sines, and a mask where one is needed.
    type Positions;
    /// One block's keys and values.
    type KvLayer;

    /// Tokens up to which the operations give bit for bit what they give for each token alone.
    const FEW: usize = 1;

    /// Room for `[most, cols]` activations.
    fn rows(&self, most: usize, cols: usize) -> Result<Self::Rows, BackendError>;
    /// Room for what follows from positions.
    fn positions(&self) -> Result<Self::Positions, BackendError>;
    /// An empty cache.
    fn kv_layer(
        &self,
        ty: KvType,
        kv_heads: usize,
        head_dim: usize,
    ) -> Result<Self::KvLayer, BackendError>;

    /// Forgets all but the first `len` positions.
    fn truncate(&self, kv: &mut Self::KvLayer, len: usize);
    /// Memory that a cache holds, in bytes.
    fn kv_bytes(&self, kv: &Self::KvLayer) -> usize;

    /// x `[m, E]` ← the rows `ids` of the table `[V, E]`.
    fn embed(&self, table: &Self::Matrix, ids: &[u32], x: &mut Self::Rows) -> Done;
    /// Gets ready for positions `first..first + m`.
    fn place(&self, rotation: &Rotation, first: usize, m: usize, at: &mut Self::Positions) -> Done;
    /// y ← x / √(mean x² + eps) ⊙ weight.
    fn rms_norm(&self, x: &Self::Rows, weight: &Self::Norm, eps: f32, y: &mut Self::Rows) -> Done;
    /// q `[m, H]`, k `[m, K]`, v `[m, K]` ← x `[m, E]` times each of the three, transposed.
    fn qkv(&self, x: &Self::Rows, w: [&Self::Matrix; 3], y: [&mut Self::Rows; 3]) -> Done;
    /// Rotates the interleaved pairs of every head.
    fn rope(&self, x: &mut Self::Rows, head_dim: usize, at: &Self::Positions) -> Done;
    /// Appends k and v to the cache, then out `[m, H]` ← causal attention of q over all of it.
    fn attention(
        &self,
        q: &Self::Rows,
        k: &Self::Rows,
        v: &Self::Rows,
        kv: &mut Self::KvLayer,
        at: &Self::Positions,
        out: &mut Self::Rows,
    ) -> Done;
    /// y ← y + x · wᵀ.
    fn product_add(&self, x: &Self::Rows, w: &Self::Matrix, y: &mut Self::Rows) -> Done;
    /// y ← y + (silu(x · gateᵀ) ⊙ (x · upᵀ)) · downᵀ, the three weights in this order.
    fn feed_forward(&self, x: &Self::Rows, w: [&Self::Matrix; 3], y: &mut Self::Rows) -> Done;
    /// y ← the rows of x from `first` on.
    fn rows_from(&self, x: &Self::Rows, first: usize, y: &mut Self::Rows) -> Done;
    /// logits `[m, V]` on the host ← x `[m, E]` · headᵀ.
    fn logits(&self, x: &Self::Rows, head: &Self::Matrix, logits: &mut Vec<f32>) -> Done;
}

/// Whether an operation could be carried out.
pub type Done = Result<(), BackendError>;

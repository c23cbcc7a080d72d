//! A model's weights on the device.

use kernels::{BlockType, Stored};

use crate::exec::Executor;
use crate::failure::Failure;
use crate::format::{Format, GROUP};

/// Weights repacked at a time, so that no second copy of a large matrix lies in memory.
const PIECE: usize = 16 << 20;

/// A matrix on the device, in parts as large as a kernel may see at once.
#[derive(Clone)]
pub struct Matrix<B> {
    pub(crate) parts: Vec<Part<B>>,
    pub(crate) format: Format,
    pub(crate) cols: usize,
}

/// Consecutive rows of a matrix.
#[derive(Clone)]
pub(crate) struct Part<B> {
    pub(crate) buffer: B,
    pub(crate) first: usize,
    pub(crate) rows: usize,
}

/// The weight of a norm on the device.
#[derive(Clone)]
pub struct Norm<B>(B);

/// All weights. Widths: E embedding, F feed-forward, H heads × head_dim, K kv_heads × head_dim, V vocabulary.
pub struct Weights<B> {
    /// `[V, E]`
    pub token_embd: Matrix<B>,
    /// One per block.
    pub layers: Vec<LayerWeights<B>>,
    /// `[E]`
    pub output_norm: Norm<B>,
    /// `[V, E]`; without one the head is `token_embd`.
    pub output: Option<Matrix<B>>,
}

impl<B> Weights<B> {
    /// The matrix that turns the last activations into logits.
    pub(crate) fn head(&self) -> &Matrix<B> {
        self.output.as_ref().unwrap_or(&self.token_embd)
    }
}

/// One block's weights.
pub struct LayerWeights<B> {
    /// `[E]`
    pub attn_norm: Norm<B>,
    /// `[H, E]`
    pub attn_q: Matrix<B>,
    /// `[K, E]`
    pub attn_k: Matrix<B>,
    /// `[K, E]`
    pub attn_v: Matrix<B>,
    /// `[E, H]`
    pub attn_output: Matrix<B>,
    /// `[E]`
    pub ffn_norm: Norm<B>,
    /// `[F, E]`
    pub ffn_gate: Matrix<B>,
    /// `[F, E]`
    pub ffn_up: Matrix<B>,
    /// `[E, F]`
    pub ffn_down: Matrix<B>,
}

impl<B> Norm<B> {
    pub(crate) fn buffer(&self) -> &B {
        &self.0
    }
}

#[cfg(test)]
impl<B> Matrix<B> {
    /// A matrix whose weights are never written.
    pub(crate) fn empty<E: Executor<Buffer = B>>(
        exec: &mut E,
        ty: BlockType,
        rows: usize,
        cols: usize,
    ) -> Matrix<B> {
        let format = Format::of(ty);
        let buffer = exec
            .buffer("weights", format.bytes(rows, cols))
            .expect("room");
        Matrix {
            parts: vec![Part {
                buffer,
                first: 0,
                rows,
            }],
            format,
            cols,
        }
    }
}

impl<B> Matrix<B> {
    /// How it is kept on the device.
    pub fn format(&self) -> Format {
        self.format
    }
}

/// Brings a matrix to the device, repacked.
///
/// # Errors
/// When its width does not suit the kernels, its bytes are not those of its shape or cannot be read, or the device has
/// no room.
pub fn load_matrix<E: Executor>(
    exec: &mut E,
    ty: BlockType,
    rows: usize,
    cols: usize,
    stored: Stored<'_>,
) -> Result<Matrix<E::Buffer>, Failure> {
    let row_bytes = ty
        .row_bytes(cols)
        .filter(|bytes| bytes.checked_mul(rows) == Some(stored.len()));
    let (Some(row_bytes), 0) = (row_bytes, cols % GROUP) else {
        return Err(Failure::Unsupported(format!(
            "a matrix of {rows} × {cols} in {}",
            ty.name()
        )));
    };
    let format = Format::of(ty);
    let most_rows = most_rows(format, cols, exec.limits().binding);
    let (mut parts, mut piece) = (Vec::new(), Vec::new());
    for first in (0..rows).step_by(most_rows) {
        let part_rows = most_rows.min(rows - first);
        let buffer = exec.buffer("weights", format.bytes(part_rows, cols))?;
        let step = (PIECE / row_bytes).next_multiple_of(8);
        for row in (0..part_rows).step_by(step) {
            let last = part_rows.min(row + step);
            let range = (first + row) * row_bytes..(first + last) * row_bytes;
            let stored = stored
                .get(range, &mut piece)
                .map_err(|error| Failure::Read(error.to_string()))?;
            for section in format.repack(ty, stored, part_rows, cols, row) {
                exec.write(&buffer, section.offset, &section.data)?;
            }
        }
        parts.push(Part {
            buffer,
            first,
            rows: part_rows,
        });
    }
    Ok(Matrix {
        parts,
        format,
        cols,
    })
}

/// Rows of a matrix that one binding holds, a multiple of 64.
fn most_rows(format: Format, cols: usize, binding: u64) -> usize {
    let of_64 = format.bytes(64, cols);
    64 * usize::try_from((binding / of_64).max(1)).unwrap_or(usize::MAX >> 8)
}

/// Brings the weight of a norm to the device.
///
/// # Errors
/// When the device has no room.
pub fn load_norm<E: Executor>(exec: &mut E, weights: &[f32]) -> Result<Norm<E::Buffer>, Failure> {
    let buffer = exec.buffer("norm", size_of_val(weights) as u64)?;
    exec.write(&buffer, 0, bytemuck::cast_slice(weights))?;
    Ok(Norm(buffer))
}

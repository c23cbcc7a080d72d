//! Matrices and norms in a device's memory.

use kernels::{BlockType, Stored};

use crate::error::GpuError;
use crate::exec::executor::Executor;
use crate::weight_format::{GROUP, WeightFormat};
use crate::weights::{Layer, Weights};

/// Bytes that are repacked at a time, so that a large matrix is never in memory twice.
const CHUNK_BYTES: usize = 16 << 20;

/// A matrix on the device, in parts of at most one binding.
#[derive(Clone)]
pub struct GpuMatrix<B> {
    pub(crate) parts: Vec<MatrixPart<B>>,
    pub(crate) format: WeightFormat,
    pub(crate) cols: usize,
}

/// Consecutive rows of a matrix.
#[derive(Clone)]
pub(crate) struct MatrixPart<B> {
    pub(crate) buffer: B,
    pub(crate) first: usize,
    pub(crate) rows: usize,
}

/// The weight of a norm on the device.
#[derive(Clone)]
pub struct GpuNorm<B>(B);

/// A model's weights on the device.
pub(crate) type GpuWeights<B> = Weights<GpuMatrix<B>, GpuNorm<B>>;
/// One layer's weights on the device.
pub(crate) type GpuLayer<B> = Layer<GpuMatrix<B>, GpuNorm<B>>;

impl<B> GpuNorm<B> {
    pub(crate) fn buffer(&self) -> &B {
        &self.0
    }
}

#[cfg(test)]
impl<B> GpuMatrix<B> {
    /// A matrix of zeros.
    pub(crate) fn empty<E: Executor<Buffer = B>>(
        exec: &mut E,
        ty: BlockType,
        rows: usize,
        cols: usize,
    ) -> GpuMatrix<B> {
        let format = WeightFormat::of(ty);
        let buffer = exec
            .buffer("weights", format.bytes(rows, cols))
            .expect("a buffer");
        GpuMatrix {
            parts: vec![MatrixPart {
                buffer,
                first: 0,
                rows,
            }],
            format,
            cols,
        }
    }
}

impl<B> GpuMatrix<B> {
    /// Its format on the device.
    pub fn format(&self) -> WeightFormat {
        self.format
    }
}

/// Uploads a matrix to the device, repacked.
///
/// # Errors
/// Fails if the kernels do not support its width, its bytes do not match its shape or cannot be read, or the device is
/// out of memory.
pub fn load_matrix<E: Executor>(
    exec: &mut E,
    ty: BlockType,
    rows: usize,
    cols: usize,
    stored: Stored<'_>,
) -> Result<GpuMatrix<E::Buffer>, GpuError> {
    let row_bytes = ty
        .row_bytes(cols)
        .filter(|bytes| bytes.checked_mul(rows) == Some(stored.len()));
    let (Some(row_bytes), 0) = (row_bytes, cols % GROUP) else {
        return Err(GpuError::Unsupported(format!(
            "a matrix of {rows} × {cols} in {}",
            ty.name()
        )));
    };
    let format = WeightFormat::of(ty);
    let max_rows = rows_per_binding(format, cols, exec.limits().binding);
    let (mut parts, mut chunk) = (Vec::new(), Vec::new());
    for first in (0..rows).step_by(max_rows) {
        let part_rows = max_rows.min(rows - first);
        let buffer = exec.buffer("weights", format.bytes(part_rows, cols))?;
        let step = (CHUNK_BYTES / row_bytes).next_multiple_of(8);
        for row in (0..part_rows).step_by(step) {
            let last = part_rows.min(row + step);
            let range = (first + row) * row_bytes..(first + last) * row_bytes;
            let stored = stored
                .get(range, &mut chunk)
                .map_err(|error| GpuError::Read(error.to_string()))?;
            for section in format.repack(ty, stored, part_rows, cols, row) {
                exec.write(&buffer, section.offset, &section.data)?;
            }
        }
        parts.push(MatrixPart {
            buffer,
            first,
            rows: part_rows,
        });
    }
    Ok(GpuMatrix {
        parts,
        format,
        cols,
    })
}

/// Rows of a matrix that one binding holds, a multiple of 64.
fn rows_per_binding(format: WeightFormat, cols: usize, binding: u64) -> usize {
    let of_64 = format.bytes(64, cols);
    64 * usize::try_from((binding / of_64).max(1)).unwrap_or(usize::MAX >> 8)
}

/// Uploads the weight of a norm to the device.
///
/// # Errors
/// [`GpuError::OutOfMemory`], or the device's error.
pub fn load_norm<E: Executor>(
    exec: &mut E,
    weights: &[f32],
) -> Result<GpuNorm<E::Buffer>, GpuError> {
    let buffer = exec.buffer("norm", size_of_val(weights) as u64)?;
    exec.write(&buffer, 0, bytemuck::cast_slice(weights))?;
    Ok(GpuNorm(buffer))
}

//! Check of a device's arithmetic: a product at a model's own shape against f64.

use std::time::Instant;

use kernels::{BlockType, Stored};

use crate::device::limits::COOP_TOKENS;
use crate::error::GpuError;
use crate::exec::executor::{Dispatch, Executor};
use crate::plan::buffers::ActivationBuffers;
use crate::plan::specialize::{self, Arithmetic, FusedEpilogue, FusedPrologue, RowRange};
use crate::plan::tiling::{MAT_VEC_MAX_TOKENS, STAGED_MAX_LEN, TILE_TOKENS};
use crate::shape::Shape;
use crate::weights::matrix::load_matrix;

#[cfg(test)]
mod tests;

/// Rows that are compared with the CPU; the device computes all.
const COMPARED_ROWS: usize = 256;

/// A product of a matrix with norm(x).
#[derive(Clone, Copy, Debug)]
pub struct ProductCheck<'a> {
    /// Type of the weights.
    pub ty: BlockType,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// The weights, row by row.
    pub stored: Stored<'a>,
}

/// The kernel that computes a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelVariant {
    /// Tokens at once: one, a small batch and many have kernels of their own.
    pub tokens: usize,
    /// Activations in f32 instead of int8.
    pub floats: bool,
    /// Cooperative matrices, if the device has them and there are many tokens.
    pub matrices: bool,
}

impl ProductCheck<'_> {
    /// The relative error (RMS) of the device's result; NaN if any value is not finite or was not written.
    ///
    /// # Errors
    /// Fails if the device fails, or the stored weights do not have this shape.
    pub fn relative_error<E: Executor>(
        &self,
        exec: &mut E,
        how: KernelVariant,
    ) -> Result<f64, GpuError> {
        let x: Vec<f32> = (0..how.tokens * self.cols)
            .map(|at| pseudo_random(at, 3.0))
            .collect();
        let norm: Vec<f32> = (0..self.cols)
            .map(|at| 1.0 + pseudo_random(7 * at, 0.5))
            .collect();
        let ours = self.on_device(exec, how, &x, &norm)?;
        let step = self.rows.div_ceil(COMPARED_ROWS);
        let row_bytes = self.stored.len() / self.rows;
        let (mut error, mut size) = (0.0, 0.0);
        let (mut weights, mut buffer) = (vec![0.0; self.cols], Vec::new());
        for row in (0..self.rows).step_by(step) {
            let range = row * row_bytes..(row + 1) * row_bytes;
            let stored = (self.stored.get(range, &mut buffer))
                .map_err(|error| GpuError::Read(error.to_string()))?;
            kernels::dequantise(self.ty, stored, &mut weights)
                .map_err(|error| GpuError::Unsupported(error.to_string()))?;
            for (token, x) in x.chunks_exact(self.cols).enumerate() {
                let exact = exact(&weights, x, &norm);
                error += (f64::from(ours[token * self.rows + row]) - exact).powi(2);
                size += exact.powi(2);
            }
        }
        if ours.iter().all(|value| value.is_finite()) {
            Ok((error / size).sqrt())
        } else {
            Ok(f64::NAN)
        }
    }

    /// Returns the time that the device takes for the product, in seconds.
    ///
    /// # Errors
    /// Same as [`ProductCheck::relative_error`].
    pub fn seconds<E: Executor>(&self, exec: &mut E, how: KernelVariant) -> Result<f64, GpuError> {
        /// Shortest measurement, in seconds.
        const MIN_SECONDS: f64 = 0.005;
        const ROUNDS: usize = 3;
        let x = vec![0.5; how.tokens * self.cols];
        let loaded = self.load(exec, how, &x, &x[..self.cols])?;
        let mut run = |times: usize| {
            let again = (0..times).flat_map(|_| loaded.dispatches(how.tokens));
            let dispatches: Vec<_> = again.collect();
            let started = Instant::now();
            let submission = exec.submit(&dispatches, None)?;
            exec.wait(submission)?;
            Ok::<f64, GpuError>(started.elapsed().as_secs_f64() / times as f64)
        };
        // The first run is a warm-up.
        run(1)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 64"
        )]
        let times = (MIN_SECONDS / run(1)?).ceil().clamp(1.0, 64.0) as usize;
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            best = best.min(run(times)?);
        }
        Ok(best)
    }

    /// The device's result for `x`: `[tokens, rows]`.
    fn on_device<E: Executor>(
        &self,
        exec: &mut E,
        how: KernelVariant,
        x: &[f32],
        norm: &[f32],
    ) -> Result<Vec<f32>, GpuError> {
        let loaded = self.load(exec, how, x, norm)?;
        let bytes = 4 * (how.tokens * self.rows) as u64;
        let dispatches = loaded.dispatches(how.tokens);
        let submission = exec.submit(&dispatches, Some((&loaded.y, bytes)))?;
        Ok(bytemuck::pod_collect_to_vec(&exec.wait(submission)?))
    }

    fn load<E: Executor>(
        &self,
        exec: &mut E,
        how: KernelVariant,
        x: &[f32],
        norm: &[f32],
    ) -> Result<Loaded<E>, GpuError> {
        let KernelVariant {
            tokens,
            floats,
            matrices,
        } = how;
        let matrix = load_matrix(exec, self.ty, self.rows, self.cols, self.stored)?;
        let has = exec.limits().matrices.filter(|_| matrices);
        let arithmetic = Arithmetic::new(&[RowRange::whole(&matrix)], tokens, floats, has);
        let format = arithmetic.activations;
        let (shape, max_threads) = (shape(self.cols), exec.limits().invocations as usize);
        let tile = arithmetic.matrices.map_or(TILE_TOKENS, |_| COOP_TOKENS);
        // Kernels for more than one token write whole tiles.
        let columns = match tokens {
            1 => 1,
            2..=MAT_VEC_MAX_TOKENS => MAT_VEC_MAX_TOKENS,
            _ => tokens.next_multiple_of(tile),
        };
        let tiles = columns.div_ceil(tile);
        let fused = tokens == 1 && self.cols <= STAGED_MAX_LEN;
        let (source, norm) = (filled(exec, x)?, filled(exec, norm)?);
        // Values that are not written stay NaN.
        let y = filled(exec, &vec![f32::NAN; columns * self.rows])?;
        let normed = ActivationBuffers::new(exec, "normed", columns * self.cols)?;
        let mut bound = Vec::new();
        if !fused {
            let kernel = specialize::rms_norm(&shape, format);
            let buffers = [normed.of(format), vec![&source, &norm]].concat();
            bound.push((exec.bind(&kernel, &buffers)?, [tokens, 1]));
        }
        for rows in RowRange::parts(&matrix) {
            let epilogue = FusedEpilogue::Store {
                stride: self.rows,
                first: rows.first(),
                add: false,
            };
            let weights = vec![rows.buffer()];
            let (prologue, mut buffers) = if fused {
                (
                    FusedPrologue::RmsNorm,
                    [weights, vec![&source, &norm]].concat(),
                )
            } else {
                (FusedPrologue::None, [normed.of(format), weights].concat())
            };
            buffers.push(&y);
            let (kernel, groups) = specialize::product(
                &shape,
                &[rows],
                arithmetic,
                columns,
                prologue,
                epilogue,
                max_threads,
            );
            bound.push((exec.bind(&kernel, &buffers)?, [groups, tiles]));
        }
        Ok(Loaded { bound, y })
    }
}

/// A product with its buffers on the device.
struct Loaded<E: Executor> {
    /// Its kernels, with the workgroups of each in x and y.
    bound: Vec<(E::BoundKernel, [usize; 2])>,
    /// The results.
    y: E::Buffer,
}

impl<E: Executor> Loaded<E> {
    fn dispatches(&self, tokens: usize) -> Vec<Dispatch<'_, E::BoundKernel>> {
        let bound = self.bound.iter();
        bound
            .map(|(bound, [x, y])| Dispatch {
                bound,
                groups: [*x, *y, 1].map(|groups| groups as u32),
                step: [0, 0, 0, 0, 0, tokens as u32],
            })
            .collect()
    }
}

/// A buffer with these values.
fn filled<E: Executor>(exec: &mut E, values: &[f32]) -> Result<E::Buffer, GpuError> {
    let buffer = exec.buffer("values", size_of_val(values) as u64)?;
    exec.write(&buffer, 0, bytemuck::cast_slice(values))?;
    Ok(buffer)
}

/// Pseudo-random numbers between −`scale` and `scale`.
fn pseudo_random(at: usize, scale: f32) -> f32 {
    let bits = (at as u32).wrapping_add(1).wrapping_mul(0x9e37_79b9);
    let bits = (bits ^ bits >> 15).wrapping_mul(0x85eb_ca6b);
    scale * ((bits >> 8) as f32 / (1 << 23) as f32 - 1.0)
}

fn exact(weights: &[f32], x: &[f32], norm: &[f32]) -> f64 {
    let squares = x.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>();
    let inverse = 1.0 / (squares / x.len() as f64 + f64::from(EPS)).sqrt();
    let products = weights.iter().zip(x).zip(norm);
    products
        .map(|((&w, &x), &n)| f64::from(w) * f64::from(x) * f64::from(n) * inverse)
        .sum()
}

const EPS: f32 = 1e-6;

/// A model of this width; the kernels of a product use no other dimension.
fn shape(embedding: usize) -> Shape {
    Shape {
        layers: 1,
        embedding,
        feed_forward: 256,
        heads: 1,
        kv_heads: 1,
        head_dim: 64,
        vocab: 1,
        eps: EPS,
        unrotated_every: None,
        rotary: 64,
    }
}

//! Checks of a model against the kernels, before anything is compiled.

use crate::error::GpuError;
use crate::plan::tiling::STAGED_MAX_LEN;
use crate::shape::Shape;
use crate::weight_format::GROUP;
use crate::weights::matrix::{GpuMatrix, GpuWeights};

/// Checks that the kernels support these dimensions.
pub(crate) fn check_shape(shape: &Shape) -> Result<(), GpuError> {
    let widths = [shape.embedding, shape.feed_forward, shape.head_dim];
    let fits = widths.iter().all(|width| width.is_multiple_of(GROUP))
        && shape.head_dim <= 256
        && shape.embedding.max(shape.q_width()) <= STAGED_MAX_LEN;
    if fits {
        Ok(())
    } else {
        Err(GpuError::Unsupported(format!("widths of {widths:?}")))
    }
}

/// Checks that each matrix of a layer is in one part, and that those of one product are all floats or all integers.
pub(crate) fn check_weights<B>(weights: &GpuWeights<B>) -> Result<(), GpuError> {
    for layer in &weights.layers {
        let products: [&[&GpuMatrix<B>]; 4] = [
            &[&layer.attn_q, &layer.attn_k, &layer.attn_v],
            &[&layer.attn_output],
            &[&layer.ffn_gate, &layer.ffn_up],
            &[&layer.ffn_down],
        ];
        for matrices in products {
            let float = matrices[0].format.is_float();
            if matrices.iter().any(|it| it.format.is_float() != float) {
                let mixed = "floats and integers in one product".to_owned();
                return Err(GpuError::Unsupported(mixed));
            }
            if matrices.iter().any(|it| it.parts.len() != 1) {
                let large = "a matrix larger than a binding".to_owned();
                return Err(GpuError::Unsupported(large));
            }
        }
    }
    Ok(())
}

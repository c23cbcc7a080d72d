//! Whole blocks to floats.

use half::{bf16, f16};

use super::block::{BlockType, Levels};
use crate::error::ShapeError;

/// Turns whole blocks into floats.
///
/// # Errors
/// Fails if `bytes` is not exactly the blocks of `out.len()` values.
pub fn dequantise(ty: BlockType, bytes: &[u8], out: &mut [f32]) -> Result<(), ShapeError> {
    if ty.row_bytes(out.len()) != Some(bytes.len()) {
        return Err(ShapeError::Length {
            ty,
            values: out.len(),
            bytes: bytes.len(),
        });
    }
    match ty {
        BlockType::F32 => {
            for (o, b) in out.iter_mut().zip(bytes.chunks_exact(4)) {
                *o = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            }
        }
        BlockType::F16 => {
            for (o, b) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                *o = f16::from_le_bytes([b[0], b[1]]).to_f32();
            }
        }
        BlockType::BF16 => {
            for (o, b) in out.iter_mut().zip(bytes.chunks_exact(2)) {
                *o = bf16::from_le_bytes([b[0], b[1]]).to_f32();
            }
        }
        _ => {
            let (group, zero) = (ty.group(), f32::from(ty.zero()));
            let mut levels = Levels::new();
            let blocks = bytes.chunks_exact(ty.block_bytes());
            for (b, out) in blocks.zip(out.chunks_exact_mut(ty.block_len())) {
                levels.read(ty, b);
                let (d, dmin) = (levels.d.to_f32(), levels.dmin.to_f32());
                for (g, out) in out.chunks_exact_mut(group).enumerate() {
                    let scale = d * f32::from(levels.scale[g]);
                    let min = dmin * f32::from(levels.min[g]);
                    for (o, &q) in out.iter_mut().zip(&levels.q[g * group..]) {
                        *o = scale * (f32::from(q) - zero) - min;
                    }
                }
            }
        }
    }
    Ok(())
}

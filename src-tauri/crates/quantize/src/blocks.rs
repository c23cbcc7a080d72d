//! Conversion of rows of floats to the bytes of a block type, and back.
//!
//! The super-blocks are searched and packed here; blocks of 32 values, with one scale that the largest value decides,
//! are candle's. candle reads everything back.

use std::borrow::Cow;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Error, Tensor};
use half::{bf16, f16};
use kernels::BlockType;

use crate::k_quants;

/// Appends `values` in type `ty` to `out`.
///
/// # Errors
/// Fails if `values` are not whole blocks, or the type is not one that is written here.
pub fn encode(ty: BlockType, values: &[f32], out: &mut Vec<u8>) -> Result<(), Error> {
    if !values.len().is_multiple_of(ty.block_len()) {
        return Err(Error::Msg(format!(
            "{} values are no whole blocks of {}",
            values.len(),
            ty.name()
        )));
    }
    match ty {
        BlockType::F32 => out.extend(values.iter().flat_map(|value| value.to_le_bytes())),
        BlockType::F16 => out.extend(
            values
                .iter()
                .flat_map(|&value| f16::from_f32(value).to_le_bytes()),
        ),
        BlockType::BF16 => out.extend(
            values
                .iter()
                .flat_map(|&value| bf16::from_f32(value).to_le_bytes()),
        ),
        BlockType::Q4K | BlockType::Q5K | BlockType::Q6K => k_quants::encode(ty, values, out),
        _ => {
            let tensor = Tensor::from_slice(values, values.len(), &Device::Cpu)?;
            out.extend_from_slice(&QTensor::quantize(&tensor, dtype(ty)?)?.data()?);
        }
    }
    Ok(())
}

/// Decodes the `count` values in `bytes` of type `ty`, as candle reads them.
///
/// # Errors
/// Fails if `bytes` are not `count` values.
pub fn decode(ty: BlockType, bytes: &[u8], count: usize) -> Result<Vec<f32>, Error> {
    if ty.row_bytes(count) != Some(bytes.len()) {
        return Err(Error::Msg(format!(
            "{} bytes are not {count} values of {}",
            bytes.len(),
            ty.name()
        )));
    }
    let storage = QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, dtype(ty)?)?;
    QTensor::new(storage, count)?
        .dequantize(&Device::Cpu)?
        .to_vec1()
}

fn dtype(ty: BlockType) -> Result<GgmlDType, Error> {
    Ok(match ty {
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
        BlockType::IQ4NL | BlockType::IQ4XS => {
            return Err(Error::Msg(format!("candle has no {}", ty.name())));
        }
    })
}

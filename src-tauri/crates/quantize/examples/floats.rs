//! Makes a GGUF file in F16 from a quantised one: `floats IN OUT NOISE SEED`. Its weights are those of the file plus
//! Gaussian noise of NOISE times each tensor's root mean square, so that they no longer lie on the grid of a block
//! type.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use engine::Gguf;
use engine::gguf::write::{self, Field, TensorSpec};
use half::f16;
use kernels::BlockType;

fn main() -> Result<(), Box<dyn Error>> {
    let [_, input, output, noise, seed] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("floats IN OUT NOISE SEED".into());
    };
    let (gguf, noise): (_, f32) = (Gguf::open(Path::new(input))?, noise.parse()?);
    let ty = |dims: &[usize]| {
        if dims.len() > 1 {
            BlockType::F16
        } else {
            BlockType::F32
        }
    };
    let tensors: Vec<TensorSpec> = (gguf.tensors().iter())
        .map(|tensor| TensorSpec {
            name: tensor.name.clone(),
            ty: ty(&tensor.dims),
            dims: tensor.dims.clone(),
            len: tensor.dims.iter().product::<usize>() * ty(&tensor.dims).block_bytes(),
        })
        .collect();
    let fields = gguf.stored_fields().into_iter().map(|(key, bytes)| {
        let stored = Field::Stored(bytes.to_vec());
        (
            key,
            if key == "general.file_type" {
                Field::U32(1)
            } else {
                stored
            },
        )
    });
    let mut out = BufWriter::new(File::create(output)?);
    out.write_all(&write::header(fields, &tensors))?;
    let mut seed: u64 = seed.parse()?;
    for tensor in &tensors {
        let view = gguf.tensor(&tensor.name).ok_or("a tensor of the header")?;
        let mut values = vec![0.0; view.cols];
        let (row, mut buffer) = (
            view.ty.row_bytes(view.cols).ok_or("whole blocks")?,
            Vec::new(),
        );
        for index in 0..view.rows {
            let bytes = view
                .bytes
                .get(index * row..(index + 1) * row, &mut buffer)?;
            kernels::dequantise(view.ty, bytes, &mut values)?;
            if tensor.ty == BlockType::F32 {
                values
                    .iter()
                    .try_for_each(|value| out.write_all(&value.to_le_bytes()))?;
                continue;
            }
            let rms = (values.iter().map(|x| x * x).sum::<f32>() / values.len() as f32).sqrt();
            for value in &values {
                let noisy = value + noise * rms * gaussian(&mut seed);
                out.write_all(&f16::from_f32(noisy).to_le_bytes())?;
            }
        }
        out.write_all(&[0; write::ALIGNMENT][..write::padding(tensor.len)])?;
    }
    Ok(out.flush()?)
}

/// Returns the sum of twelve uniform numbers, less its mean, which has a variance of 1.
fn gaussian(seed: &mut u64) -> f32 {
    let mut uniform = || {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 40) as f32 / (1u64 << 24) as f32
    };
    (0..12).map(|_| uniform()).sum::<f32>() - 6.0
}

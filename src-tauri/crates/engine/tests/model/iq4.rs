//! Models in IQ4_NL and IQ4_XS against the same weights as floats.

use std::fs;
use std::path::{Path, PathBuf};

use engine::gguf::write::{self, Field, TensorSpec};
use engine::{CpuLevel, Engine, Gguf, KvType, LoadOptions, ModelFile};
use half::f16;
use kernels::{BlockType, dequantise};

use crate::reference::{distance, exactly, fixture, on_cpu, on_gpu, reference};

/// Each type with its number in `general.file_type`.
const TYPES: [(BlockType, u32); 2] = [(BlockType::IQ4NL, 25), (BlockType::IQ4XS, 30)];

const VALUES: [f32; 16] = [
    -127., -104., -83., -65., -49., -35., -22., -10., 1., 13., 25., 38., 53., 69., 89., 113.,
];

/// The scale with which the largest of `values` is -127.
fn scale_of(values: &[f32]) -> f32 {
    let larger = |a: f32, b: &f32| if b.abs() > a.abs() { *b } else { a };
    values.iter().fold(0.0, larger) / -127.0
}

/// Indices of the table's values that are nearest to 32 values at `scale`, as nibbles.
fn nibbles(values: &[f32], scale: f32) -> [u8; 16] {
    let place = |value: f32| {
        let off = |place: &u8| (VALUES[usize::from(*place)] * scale - value).abs();
        (0..16)
            .min_by(|a, b| off(a).total_cmp(&off(b)))
            .expect("16 places")
    };
    std::array::from_fn(|i| place(values[i]) | place(values[i + 16]) << 4)
}

fn encode(ty: BlockType, values: &[f32]) -> Vec<u8> {
    let mut out = Vec::new();
    for block in values.chunks_exact(ty.block_len()) {
        let scales: Vec<f32> = block.chunks_exact(32).map(scale_of).collect();
        if ty == BlockType::IQ4NL {
            let d = f16::from_f32(scales[0]);
            out.extend(d.to_le_bytes());
            out.extend(nibbles(block, d.to_f32()));
            continue;
        }
        let largest = scales.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
        let d = f16::from_f32(largest / 31.0);
        let (mut low, mut high) = ([0_u8; 4], 0_u16);
        let mut groups = Vec::new();
        for (g, (values, scale)) in block.chunks_exact(32).zip(scales).enumerate() {
            let sub = (scale / d.to_f32()).round().clamp(-32.0, 31.0);
            let stored = (sub + 32.0) as u8;
            low[g / 2] |= (stored & 15) << (g % 2 * 4);
            high |= u16::from(stored >> 4) << (g * 2);
            groups.extend(nibbles(values, d.to_f32() * sub));
        }
        out.extend(d.to_le_bytes());
        out.extend(high.to_le_bytes());
        out.extend(low);
        out.extend(groups);
    }
    out
}

/// The tiny model with its matrices in `ty`, and the same values as floats.
fn converted(folder: &Path, ty: BlockType, file_type: u32) -> [PathBuf; 2] {
    let gguf = Gguf::open(&fixture("tiny-q8_0.gguf")).expect("the fixture is committed");
    [(ty, "small"), (BlockType::F32, "floats")].map(|(stored_as, name)| {
        let (mut specs, mut data) = (Vec::new(), Vec::new());
        for tensor in gguf.tensors() {
            let stored = gguf.tensor(&tensor.name).expect("it is listed").bytes;
            let mut bytes = stored.read().expect("it can be read").to_vec();
            let mut stored_type = tensor.ty;
            if tensor.dims.len() == 2 {
                let mut values = vec![0.0; tensor.dims.iter().product()];
                dequantise(tensor.ty, &bytes, &mut values).expect("its bytes");
                (bytes, stored_type) = (encode(ty, &values), stored_as);
                if stored_as == BlockType::F32 {
                    dequantise(ty, &bytes, &mut values).expect("its bytes");
                    bytes = values
                        .iter()
                        .flat_map(|value| value.to_le_bytes())
                        .collect();
                }
            }
            specs.push(TensorSpec {
                name: tensor.name.clone(),
                ty: stored_type,
                dims: tensor.dims.clone(),
                len: bytes.len(),
            });
            data.push(bytes);
        }
        let fields = gguf.stored_fields().into_iter().map(|(key, value)| {
            let field = match key {
                "general.file_type" => Field::U32(file_type),
                _ => Field::Stored(value.to_vec()),
            };
            (key, field)
        });
        let mut image = write::header(fields, &specs);
        for bytes in data {
            image.extend(&bytes);
            image.resize(image.len() + write::padding(bytes.len()), 0);
        }
        let path = folder.join(format!("{name}.gguf"));
        fs::write(&path, image).expect("written");
        path
    })
}

fn logits(path: &Path, options: &LoadOptions) -> Vec<Vec<f32>> {
    let mut engine = Engine::open(path, options, &mut |_| {}).expect("it opens");
    let tokens = reference().tokens;
    engine.logits(&tokens, true).expect("the tokens fit")
}

#[test]
fn models_in_four_bits_of_a_table_are_their_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    for (ty, file_type) in TYPES {
        let [small, floats] = converted(folder.path(), ty, file_type);
        let file = ModelFile::open(&small).expect("it opens");
        assert_eq!(file.summary().quantisation, ty.name());
        let expected = logits(&floats, &exactly());
        let found = distance(&logits(&small, &exactly()), &expected);
        assert!(found.relative_error < 1e-4, "{}: {found:?}", ty.name());
        for level in CpuLevel::available() {
            let options = LoadOptions {
                cpu_level: Some(level),
                ..on_cpu()
            };
            let found = distance(&logits(&small, &options), &expected);
            assert!(
                found.relative_error < 0.08 && found.mean_kl < 0.025,
                "{} at {}: {found:?}",
                ty.name(),
                level.name()
            );
        }
    }
}

#[test]
fn models_in_four_bits_of_a_table_are_their_weights_on_the_gpu() {
    let Some(options) = on_gpu() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for (ty, file_type) in TYPES {
        let [small, floats] = converted(folder.path(), ty, file_type);
        let expected = logits(&floats, &exactly());
        let exact = LoadOptions {
            exact: true,
            kv: KvType::F32,
            ..options.clone()
        };
        let found = distance(&logits(&small, &exact), &expected);
        assert!(found.relative_error < 1e-4, "{}: {found:?}", ty.name());
        let found = distance(&logits(&small, &options), &expected);
        assert!(
            found.relative_error < 0.08 && found.mean_kl < 0.025,
            "{}: {found:?}",
            ty.name()
        );
    }
}

//! Block types against candle and the kernels, file types against the engine.

use engine::Gguf;
use kernels::{BlockType, dequantise};
use quantize::{FileType, decode, encode};

use crate::models::{ODD, WHOLE, distance, f16_file, folder, heavy, logits, run};

const TYPES: [BlockType; 9] = [
    BlockType::F32,
    BlockType::F16,
    BlockType::BF16,
    BlockType::Q5_0,
    BlockType::Q5_1,
    BlockType::Q8_0,
    BlockType::Q4K,
    BlockType::Q5K,
    BlockType::Q6K,
];

fn sample(count: usize) -> Vec<f32> {
    let mut seed = 3;
    (0..count).map(|_| 0.03 * heavy(&mut seed)).collect()
}

fn relative_error(x: &[f32], y: &[f32]) -> f64 {
    distance(&[y.to_vec()], &[x.to_vec()])
}

#[test]
fn the_kernels_read_every_type_as_candle_does() {
    let x = sample(256 * 64);
    for ty in TYPES {
        let mut bytes = Vec::new();
        encode(ty, &x, &mut bytes).expect("whole blocks");
        assert_eq!(ty.row_bytes(x.len()), Some(bytes.len()), "{}", ty.name());
        let candle = decode(ty, &bytes, x.len()).expect("its bytes");
        let mut ours = vec![0.0; x.len()];
        dequantise(ty, &bytes, &mut ours).expect("its bytes");
        assert!(relative_error(&candle, &ours) < 1e-6, "{}", ty.name());
    }
}

#[test]
fn random_bytes_of_every_type_are_the_same_values_to_the_kernels_and_candle() {
    let all = [
        BlockType::Q4_0,
        BlockType::Q4_1,
        BlockType::Q2K,
        BlockType::Q3K,
    ];
    for ty in TYPES.into_iter().chain(all) {
        let len = ty.row_bytes(256 * 8).expect("whole blocks");
        let mut seed = 5u64;
        let mut bytes: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed.to_le_bytes()[7]
        })
        .take(len)
        .collect();
        // Random exponents would overflow.
        bytes.iter_mut().for_each(|byte| *byte &= 0x3f);
        let candle = decode(ty, &bytes, 256 * 8).expect("its bytes");
        let mut ours = vec![0.0; candle.len()];
        dequantise(ty, &bytes, &mut ours).expect("its bytes");
        assert!(relative_error(&candle, &ours) < 1e-6, "{}", ty.name());
    }
}

/// Compares errors with llama.cpp's on these values, measured with its library (`ggml_quantize_chunk` without an
/// importance matrix).
#[test]
fn super_blocks_are_nearer_than_those_of_candle_and_of_llama_cpp() {
    use candle_core::quantized::{GgmlDType, QTensor};
    use candle_core::{Device, Tensor};
    let x = sample(256 * 256);
    for (ty, theirs, llama_cpp) in [
        (BlockType::Q4K, GgmlDType::Q4K, 0.077_560),
        (BlockType::Q5K, GgmlDType::Q5K, 0.039_263),
        (BlockType::Q6K, GgmlDType::Q6K, 0.020_280),
    ] {
        let mut bytes = Vec::new();
        encode(ty, &x, &mut bytes).expect("whole blocks");
        let ours = relative_error(&x, &decode(ty, &bytes, x.len()).expect("its bytes"));
        let tensor = Tensor::from_slice(&x, x.len(), &Device::Cpu).expect("a tensor");
        let candle = QTensor::quantize(&tensor, theirs)
            .and_then(|it| it.dequantize(&Device::Cpu)?.to_vec1());
        let candle = relative_error(&x, &candle.expect("it quantises"));
        let name = ty.name();
        assert!(ours < 0.97 * candle, "{name}: {ours}, candle {candle}");
        assert!(
            ours < 0.99 * llama_cpp,
            "{name}: {ours}, llama.cpp {llama_cpp}"
        );
    }
}

#[test]
fn values_at_the_edges_are_encoded() {
    let edges: [&[f32]; 7] = [
        &[0.0],
        &[1.0],
        &[-1.0],
        &[1e-30],
        &[6e4, -6e4],
        &[0.0, 0.0, 0.0, 5.0],
        &[-5.0, -4.9],
    ];
    for values in edges {
        let x: Vec<f32> = values.iter().copied().cycle().take(256).collect();
        for ty in TYPES {
            let mut bytes = Vec::new();
            encode(ty, &x, &mut bytes).expect("whole blocks");
            let y = decode(ty, &bytes, 256).expect("its bytes");
            let largest = x.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            for (x, y) in x.iter().zip(&y) {
                assert!(
                    (x - y).abs() <= 0.07 * largest + 1e-7,
                    "{}: {x} is read as {y}",
                    ty.name()
                );
            }
        }
    }
    assert!(encode(BlockType::Q4K, &[0.0; 255], &mut Vec::new()).is_err());
    assert!(decode(BlockType::Q4K, &[0; 143], 256).is_err());
    assert!(encode(BlockType::IQ4NL, &[0.0; 32], &mut Vec::new()).is_err());
    assert!(decode(BlockType::IQ4XS, &[0; 136], 256).is_err());
}

#[test]
fn the_engine_reads_every_file_type_near_the_floats() {
    let folder = folder();
    for dimensions in [WHOLE, ODD] {
        let input = f16_file(folder.path(), dimensions);
        let exact = logits(&input);
        let mut last = f64::INFINITY;
        for (file_type, most) in FileType::ALL.into_iter().zip([0.5, 0.31, 0.2, 0.065, 1e-6]) {
            let output = folder
                .path()
                .join(format!("{}-{file_type}.gguf", dimensions.embedding));
            let report = run(&input, &output, file_type).expect("it is quantised");
            let found = distance(&logits(&output), &exact);
            assert!(found <= most, "{file_type}: {found}");
            assert!(
                report.relative_error <= last,
                "{file_type}: {}",
                report.relative_error
            );
            last = report.relative_error;
            assert_eq!(
                report.output_bytes,
                std::fs::metadata(&output).expect("there").len()
            );
        }
    }
}

#[test]
fn the_mix_and_the_metadata_are_those_of_llama_cpp() {
    let folder = folder();
    let input = f16_file(folder.path(), WHOLE);
    let output = folder.path().join("q4.gguf");
    let report = run(&input, &output, FileType::Q4KM).expect("it is quantised");
    let (before, after) = (
        Gguf::open(&input).expect("GGUF"),
        Gguf::open(&output).expect("GGUF"),
    );
    assert_eq!(after.u32("general.file_type"), Some(15));
    assert_eq!(after.u32("general.quantization_version"), Some(2));
    for (key, value) in before.stored_fields() {
        let kept = after
            .stored_fields()
            .into_iter()
            .find(|(other, _)| *other == key);
        let rewritten = ["general.file_type", "general.alignment"].contains(&key);
        assert_eq!(
            kept.map(|(_, value)| value) == Some(value),
            !rewritten,
            "{key}"
        );
    }
    // The first and the last of eight layers, and every third one between.
    let sixes: Vec<&str> = (report.tensors.iter())
        .filter(|tensor| tensor.ty == "Q6_K")
        .map(|tensor| tensor.name.as_str())
        .collect();
    let expected: Vec<String> = [0, 3, 6, 7]
        .iter()
        .flat_map(|layer| ["ffn_down", "attn_v"].map(|part| format!("blk.{layer}.{part}.weight")))
        .chain(["token_embd.weight".to_owned()])
        .collect();
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    assert_eq!(
        sorted(sixes.into_iter().map(str::to_owned).collect()),
        sorted(expected)
    );
    assert!(
        report
            .tensors
            .iter()
            .all(|tensor| tensor.name.ends_with("norm.weight") == (tensor.ty == "F32"))
    );
    assert!(
        report
            .tensors
            .iter()
            .all(|tensor| (tensor.relative_error == 0.0) == (tensor.ty == "F32"))
    );
}

#[test]
fn every_kind_of_float_gives_the_same_file() {
    let folder = folder();
    let model = crate::models::Model::random(WHOLE);
    let files = [BlockType::F16, BlockType::BF16, BlockType::F32].map(|ty| {
        let (input, output) = (folder.path().join("in.gguf"), folder.path().join(ty.name()));
        model.write_gguf(&input, ty);
        run(&input, &output, FileType::Q5KM).expect("it is quantised");
        std::fs::read(output).expect("written")
    });
    assert!(files[0] == files[1] && files[1] == files[2]);
}

//! SmolLM3-3B's plans, on an executor without a device.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kernels::{BlockType, KvType};

use super::DeviceModel;
use crate::device::limits::{COOP_WORKGROUP_BYTES, CoopMatrices};
use crate::exec::counting::CountingExecutor;
use crate::kernel::Kernel;
use crate::model::input::{PassInput, Want};
use crate::plan::options::Options;
use crate::shape::Shape;
use crate::weights::matrix::{GpuMatrix, load_norm};
use crate::weights::{Layer, Weights};

/// The 3B model in Q4_K_M, without the values of its weights.
fn loaded(kv: KvType) -> DeviceModel<CountingExecutor> {
    let options = Options {
        kv,
        floats: false,
        matrices: false,
    };
    loaded_as([BlockType::Q4K, BlockType::Q6K], options)
}

/// The 3B model, without the values of its weights, stored as two types by turns.
fn loaded_as(types: [BlockType; 2], options: Options) -> DeviceModel<CountingExecutor> {
    loaded_on(CountingExecutor::default(), types, options)
}

/// The same on a card with memory of its own.
fn loaded_on_card() -> DeviceModel<CountingExecutor> {
    let card = CountingExecutor {
        discrete: true,
        ..CountingExecutor::default()
    };
    let options = Options {
        kv: KvType::F16,
        floats: false,
        matrices: false,
    };
    loaded_on(card, [BlockType::Q4K, BlockType::Q6K], options)
}

fn loaded_on(
    mut exec: CountingExecutor,
    [coarse, fine]: [BlockType; 2],
    options: Options,
) -> DeviceModel<CountingExecutor> {
    let shape = Shape::SMOLLM3_3B;
    let matrix =
        |ty, rows, cols| GpuMatrix::empty(&mut CountingExecutor::default(), ty, rows, cols);
    let (e, f, h, k) = (2048, 11_008, 2048, 512);
    let mut norm = || load_norm(&mut exec, &[1.0; 2048]).expect("a norm");
    let layers = (0..36)
        .map(|layer| {
            let finer = if layer % 2 == 0 { fine } else { coarse };
            Layer {
                attn_norm: norm(),
                attn_q: matrix(coarse, h, e),
                attn_k: matrix(coarse, k, e),
                attn_v: matrix(finer, k, e),
                attn_output: matrix(coarse, e, h),
                ffn_norm: norm(),
                ffn_gate: matrix(coarse, f, e),
                ffn_up: matrix(coarse, f, e),
                ffn_down: matrix(finer, e, f),
                qkv_bias: None,
                head_norms: None,
            }
        })
        .collect();
    let weights = Weights {
        token_embd: matrix(fine, shape.vocab, e),
        layers,
        output_norm: norm(),
        output: None,
    };
    let angles = Box::new(|_, count: usize| vec![0.0; count * 128]);
    DeviceModel::new(exec, shape, options, weights, angles).expect("a model")
}

fn read(model: &mut DeviceModel<CountingExecutor>, tokens: usize) {
    let ids = vec![1; tokens];
    let never = AtomicBool::new(false);
    let complete = model.append(PassInput::Ids(&ids), Want::Nothing, &never, &mut Vec::new());
    assert_eq!(complete, Ok(true));
    model.exec.submits.clear();
}

#[test]
fn a_token_takes_183_dispatches() {
    let models = [
        (loaded(KvType::F16), 100, 183),
        (loaded(KvType::F16), 2000, 219),
        (loaded_on_card(), 8000, 183),
    ];
    for (mut model, past, expected) in models {
        read(&mut model, past);
        model.submit(Some(1), 0.0).expect("it runs");
        model.submit(None, 0.0).expect("it runs");
        let counts: Vec<usize> = model.exec.submits.iter().map(Vec::len).collect();
        // The first token comes from the host and has to be embedded.
        assert_eq!(counts, [expected + 1, expected]);
    }
}

#[test]
fn the_last_blocks_alone_take_rows_and_no_embedding() {
    let mut model = loaded(KvType::F16);
    read(&mut model, 10);
    for left in (30..36).rev() {
        assert_eq!(model.drop_first_layer(), Ok(true));
        assert_eq!(model.layers(), left);
    }
    model.exec.submits.clear();
    let (rows, never) = (vec![0.0; 3 * 2048], AtomicBool::new(false));
    let mut logits = Vec::new();
    let complete = model.append(PassInput::Rows(&rows), Want::Last, &never, &mut logits);
    assert_eq!((complete, model.sequence.len), (Ok(true), 3));
    assert_eq!(logits.len(), 128_256);
    let ran: Vec<&str> = model.exec.submits.concat();
    assert!(!ran.contains(&"embed"), "{ran:?}");
    assert_eq!(ran.iter().filter(|&&it| it == "attention").count(), 30);
    while model.drop_first_layer().expect("it runs") {}
    assert_eq!(model.layers(), 1);
}

#[test]
fn a_prepared_model_compiles_nothing_later() {
    let mut model = loaded(KvType::F16);
    assert_eq!(model.prepare(), Ok(()));
    let compiled = model.exec.kernels.len();
    read(&mut model, 100);
    model.submit(Some(1), 0.0).expect("it runs");
    assert!(compiled > 0 && model.exec.kernels.len() == compiled);
}

#[test]
fn a_dropped_model_waits_for_submits_in_flight() {
    let mut model = loaded(KvType::F16);
    let waits = Arc::clone(&model.exec.waits);
    for id in [Some(1), None] {
        model.submit(id, 0.0).expect("it runs");
    }
    assert_eq!(waits.load(Ordering::Relaxed), 0);
    drop(model);
    assert_eq!(waits.load(Ordering::Relaxed), 1);
}

#[test]
fn a_quantised_cache_takes_one_dispatch_more_a_block() {
    let mut model = loaded(KvType::Q8_0);
    read(&mut model, 100);
    model.submit(Some(1), 0.0).expect("it runs");
    model.submit(None, 0.0).expect("it runs");
    assert_eq!(model.exec.submits[1].len(), 183 + 36);
}

#[test]
fn buffers_beside_the_weights_are_small() {
    for (model, most) in [(loaded(KvType::F16), 80), (loaded_on_card(), 150)] {
        let bytes = model.exec.bytes;
        assert!(bytes < most << 20, "{bytes} beside the weights");
    }
}

/// A kernel as the compiler sees it, for drivers with these capabilities.
fn validated(
    kernel: &Kernel,
    capabilities: naga::valid::Capabilities,
) -> Result<(naga::Module, naga::valid::ModuleInfo), String> {
    let text = kernel.source().map_err(|error| error.to_string())?;
    let module =
        naga::front::wgsl::parse_str(&text).map_err(|error| error.emit_to_string(&text))?;
    let info = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities)
        .subgroup_stages(naga::valid::ShaderStages::COMPUTE)
        .subgroup_operations(naga::valid::SubgroupOperationSet::all())
        .validate(&module)
        .map_err(|error| error.emit_to_string(&text))?;
    Ok((module, info))
}

/// A kernel in Metal's shading language: no machine here has Metal, so this finds a kernel that it cannot run.
fn to_msl(kernel: &Kernel) -> Result<String, String> {
    use naga::back::msl;
    let (module, info) = validated(kernel, msl::supported_capabilities())?;
    let options = msl::Options {
        lang_version: (2, 4),
        ..msl::Options::default()
    };
    msl::write_string(&module, &info, &options, &msl::PipelineOptions::default())
        .map(|(text, _)| text)
        .map_err(|error| error.to_string())
}

/// A kernel in SPIR-V, for Vulkan.
fn to_spirv(kernel: &Kernel) -> Result<Vec<u32>, String> {
    use naga::back::spv;
    let (module, info) = validated(kernel, spv::supported_capabilities())?;
    let options = spv::Options {
        lang_version: (1, 6),
        ..spv::Options::default()
    };
    spv::write_vec(&module, &info, &options, None).map_err(|error| error.to_string())
}

#[test]
fn every_kernel_compiles_to_msl() {
    use BlockType::{BF16, F16, IQ4NL, IQ4XS, Q4K, Q5K, Q6K, Q8_0};
    let mut kernels = HashSet::new();
    for kv in [KvType::F32, KvType::F16, KvType::Q8_0] {
        for floats in [false, true] {
            for types in [
                [Q4K, Q6K],
                [Q5K, Q8_0],
                [IQ4NL, IQ4XS],
                [F16, F16],
                [BF16, BF16],
            ] {
                let matrices = false;
                let options = Options {
                    kv,
                    floats,
                    matrices,
                };
                for discrete in [false, true] {
                    let exec = CountingExecutor {
                        discrete,
                        ..CountingExecutor::default()
                    };
                    let mut model = loaded_on(exec, types, options);
                    read(&mut model, 100);
                    model.read_bandwidth().expect("it runs");
                    kernels.extend(model.exec.kernels.drain(..));
                }
            }
        }
    }
    let files: HashSet<_> = kernels.iter().map(|kernel| kernel.file).collect();
    assert_eq!(files.len(), 10, "{files:?}");
    for kernel in &kernels {
        let text = to_msl(kernel).unwrap_or_else(|error| panic!("{kernel:?}: {error}"));
        assert!(text.contains("kernel void"), "{kernel:?}");
        assert!(shared_bytes(kernel) <= 32 << 10, "{kernel:?}");
    }
}

/// Shared memory of a workgroup, in bytes.
fn shared_bytes(kernel: &Kernel) -> u32 {
    let (module, _) = validated(kernel, naga::back::spv::supported_capabilities()).expect("valid");
    let variables = module.global_variables.iter().map(|(_, variable)| variable);
    variables
        .filter(|variable| variable.space == naga::AddressSpace::WorkGroup)
        .map(|variable| module.types[variable.ty].inner.size(module.to_ctx()))
        .sum()
}

/// Drivers with cooperative matrices are rare where tests run.
#[test]
fn products_in_cooperative_matrices_compile_to_spirv_and_msl() {
    use BlockType::{F16, IQ4NL, IQ4XS, Q4K, Q6K};
    for types in [[Q4K, Q6K], [IQ4NL, IQ4XS], [F16, F16]] {
        let kinds = [(16, 32, true), (16, 64, true), (8, 8, true), (8, 32, false)];
        for (edge, subgroup, paired) in kinds {
            let options = Options {
                kv: KvType::F16,
                floats: false,
                matrices: true,
            };
            let mut model = loaded_as(types, options);
            model.exec.matrices = Some(CoopMatrices {
                edge,
                subgroup,
                paired,
            });
            read(&mut model, 100);
            let mut kernels: HashSet<_> = model.exec.kernels.drain(..).collect();
            kernels.retain(|kernel| kernel.file == "mat_mul_coop");
            assert!(kernels.len() >= 4, "{kernels:?}");
            for kernel in &kernels {
                let words = to_spirv(kernel).unwrap_or_else(|error| panic!("{kernel:?}: {error}"));
                const MULTIPLY_ADD: u32 = 4459;
                let multiplies = words.iter().filter(|&&word| word == 6 << 16 | MULTIPLY_ADD);
                // A subgroup of the eight has 64 rows and 32 tokens.
                assert_eq!(multiplies.count(), 64 * 32 / (edge * edge), "{kernel:?}");
                assert_eq!(shared_bytes(kernel), COOP_WORKGROUP_BYTES, "{kernel:?}");
                if !paired {
                    let text = to_msl(kernel);
                    let text = text.unwrap_or_else(|error| panic!("{kernel:?}: {error}"));
                    assert!(text.contains("simdgroup_multiply_accumulate"), "{text}");
                }
            }
        }
    }
}

#[test]
fn a_profile_counts_operations_by_kind() {
    for (past, merges) in [(100, 0), (2000, 36)] {
        let mut model = loaded(KvType::F16);
        model.exec.seconds = Some(1e-6);
        read(&mut model, past);
        let kinds = model.profile().expect("it runs");
        let mut expected = [
            "q, k, v",
            "attention",
            "merge",
            "output",
            "gate, up",
            "down",
        ]
        .map(|what| (what, if what == "merge" { merges } else { 36 }))
        .to_vec();
        expected.retain(|&(_, count)| count > 0);
        expected.extend([("logits", 1), ("sample, reduce", 1), ("sample", 1)]);
        let found: Vec<_> = kinds.iter().map(|kind| (kind.what, kind.count)).collect();
        assert_eq!(found, expected);
        for kind in &kinds {
            let seconds = kind.seconds.expect("it has timestamps");
            assert!((seconds / kind.count as f64 - 1e-6).abs() < 1e-12);
        }
        let (cache, weights): (Vec<_>, Vec<_>) =
            kinds.iter().partition(|kind| kind.what == "attention");
        // Keys and values in 16 bits of every position, the new one too.
        assert_eq!(cache[0].bytes, 36 * (past as u64 + 1) * 2 * 512 * 2);
        // The matrices of the layers, and the head: the file's 1.9 GB.
        let read: u64 = weights.iter().map(|kind| kind.bytes).sum();
        assert_eq!(read, weights_of(&model));
        assert!((1_880_000_000..1_960_000_000).contains(&read), "{read}");
    }
}

/// Bytes of all matrices on the device.
fn weights_of(model: &DeviceModel<CountingExecutor>) -> u64 {
    let weights = &model.weights;
    let matrices = weights.layers.iter().flat_map(|layer| {
        [
            &layer.attn_q,
            &layer.attn_k,
            &layer.attn_v,
            &layer.attn_output,
            &layer.ffn_gate,
            &layer.ffn_up,
            &layer.ffn_down,
        ]
    });
    let parts = matrices.chain([weights.head()]).flat_map(|it| &it.parts);
    parts.map(|part| part.buffer).sum()
}

#[test]
fn a_profile_without_timestamps_has_counts() {
    let mut model = loaded(KvType::F16);
    let kinds = model.profile().expect("it runs");
    assert_eq!(kinds.iter().map(|kind| kind.count).sum::<usize>(), 183);
    assert!(kinds.iter().all(|kind| kind.seconds.is_none()));
    assert_eq!(model.read_bandwidth(), Ok(None));
    model.exec.seconds = Some(1e-3);
    let bandwidth = model.read_bandwidth().expect("it runs");
    assert_eq!(bandwidth, Some((256 << 20) as f64 / 1e-3));
}

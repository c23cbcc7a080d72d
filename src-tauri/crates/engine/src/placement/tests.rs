//! Placement of a model on a GPU with little memory.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::context::kv_bytes_per_token;
use crate::gguf::Gguf;
use crate::model::evaluate::{Pass, PassSlot, Want};
use testing::faulty_gpu::{Faulty, InjectedFault, device};

fn tiny() -> (Gguf, Config) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
    let gguf = Gguf::open(&path).expect("the fixture is committed");
    let config = Config::from_gguf(&gguf).expect("a SmolLM3 file");
    let config = Config {
        context: 32_768,
        ..config
    };
    (gguf, config)
}

fn placed(exec: Faulty, options: &LoadOptions) -> Result<LoadedGpuModel, GpuRejection> {
    placed_with(exec, options, 1)
}

fn placed_with(
    exec: Faulty,
    options: &LoadOptions,
    min_layers: usize,
) -> Result<LoadedGpuModel, GpuRejection> {
    let (gguf, config) = tiny();
    let gpu = GpuPlacement {
        id: None,
        software: true,
        matrices: false,
        min_layers,
    };
    let request = GpuLoadRequest {
        config: &config,
        source: &gguf,
        options,
        gpu: &gpu,
        context: options.context.unwrap_or(config.context),
        cpu: &|| Cpu::exact(2),
        chunk: 64,
    };
    request.load(exec, &mut |_| {})
}

fn layers(found: &LoadedGpuModel) -> usize {
    found.fit.as_ref().map_or(5, |fit| fit.layers)
}

#[test]
fn a_fault_while_loading_is_a_fault_of_the_gpu() {
    let Some(exec) = device() else { return };
    let lost = InjectedFault::Fails(gpu::GpuError::Lost("gone".to_owned()));
    let why = placed(Faulty::new(exec, 0, lost), &LoadOptions::default());
    let why = why.err().expect("it is gone");
    assert!(why.is_fault() && why.to_string().contains("gone"), "{why}");
}

fn with_memory(exec: &gpu::Wgpu, bytes: u64) -> Faulty {
    Faulty::new(exec.clone(), usize::MAX, InjectedFault::Small(bytes))
}

/// Bytes of the angles of this number of positions.
fn angles(config: &Config, positions: u64) -> u64 {
    4 * positions * config.shape.rotary as u64
}

/// The placement of a model on a GPU with memory for this number of tokens in 16 bits beside its weights.
fn with_room_for(
    exec: &gpu::Wgpu,
    tokens: u64,
    context: Option<usize>,
) -> Result<LoadedGpuModel, GpuRejection> {
    let (_, config) = tiny();
    let options = LoadOptions {
        context,
        ..LoadOptions::default()
    };
    let roomy = with_memory(exec, u64::MAX);
    let _weights = placed(roomy.clone(), &options);
    let cache = tokens * kv_bytes_per_token(&config, KvType::F16) + angles(&config, tokens);
    placed(with_memory(exec, roomy.taken() + cache), &options)
}

#[test]
fn a_small_gpu_gets_a_shorter_context_then_8_bit_kv_then_fewer_layers() {
    let Some(exec) = device() else { return };
    for (room, asked, context, kv, whole) in [
        (40_000, None, 32_768, KvType::F16, true),
        (20_000, None, 16_384, KvType::F16, true),
        (4_500, None, 4_096, KvType::F16, true),
        (3_000, None, 4_096, KvType::Q8_0, true),
        (1_000, None, 4_096, KvType::Q8_0, false),
        // A requested length is kept.
        (20_000, Some(30_000), 30_000, KvType::Q8_0, true),
        (12_500, Some(30_000), 30_000, KvType::Q8_0, false),
    ] {
        let found = with_room_for(&exec, room, asked).expect("it is used");
        assert_eq!((found.context, found.kv), (context, kv), "room for {room}");
        assert_eq!(layers(&found) == 5, whole, "room for {room}");
        assert_eq!(found.fit.is_none(), room == 40_000, "{:?}", found.fit);
    }
}

/// Bytes that the last `fit_layers` take with 4096 positions in 8 bits.
fn taken_by(exec: &gpu::Wgpu, fit_layers: usize) -> u64 {
    let (gguf, config) = tiny();
    let exec = with_memory(exec, u64::MAX);
    let options = gpu::Options {
        kv: KvType::F16,
        floats: false,
        matrices: true,
    };
    let model = GpuModel::load_last(exec.clone(), &config, &gguf, options, 64, &mut |_| {});
    let mut model = model.expect("it takes the model");
    while model.layers() > fit_layers {
        assert!(model.drop_first_layer().expect("no failure"));
    }
    // A byte a value and a scale of four for each 32.
    let cache = 2 * fit_layers * config.shape.kv_width() * 4096 * 36 / 32;
    exec.taken() + cache as u64 + angles(&config, 4096)
}

#[test]
fn as_many_layers_as_fit_are_on_the_gpu() {
    let Some(exec) = device() else { return };
    let options = LoadOptions::default();
    for fit_layers in 1..5 {
        let bytes = taken_by(&exec, fit_layers);
        let found = placed(with_memory(&exec, bytes), &options).expect("it is used");
        assert_eq!(layers(&found), fit_layers);
        assert_eq!((found.context, found.kv), (4096, KvType::Q8_0));
        match placed(with_memory(&exec, bytes - 1), &options) {
            Ok(found) => assert_eq!(layers(&found), fit_layers - 1),
            Err(why) => {
                assert!(fit_layers == 1 && !why.is_fault(), "{why}");
            }
        }
    }
}

#[test]
fn a_split_model_agrees_with_the_cpu() {
    let Some(exec) = device() else { return };
    let (gguf, config) = tiny();
    let options = LoadOptions {
        exact: true,
        ..LoadOptions::default()
    };
    let bytes = taken_by(&exec, 2);
    let mut found = placed(with_memory(&exec, bytes), &options).expect("it is used");
    assert_eq!(layers(&found), 2);
    let mut cache = found.model.new_cache().expect("memory");
    let profile = found.model.profile(&mut *cache).expect("it runs");
    let kernels = profile.expect("part of it is on the GPU").kernels;
    for (what, count) in [("q, k, v", 2), ("down", 2), ("logits", 1)] {
        let found = kernels.iter().find(|kernel| kernel.what == what);
        assert_eq!(found.map(|kernel| kernel.count), Some(count), "{what}");
    }
    let cpu = CpuModel::load(&config, Cpu::exact(2), &gguf, found.kv, 64, &mut |_| {});
    let cpu: Box<dyn Evaluate> = Box::new(cpu.expect("it loads"));
    let never = AtomicBool::new(false);
    let ids: Vec<u32> = (0..50).map(|at| at * 7 % 500).collect();
    let [ours, theirs] = [found.model, cpu].map(|mut model| {
        let mut logits = Vec::new();
        let mut cache = model.new_cache().expect("memory");
        let slot = PassSlot {
            cache: &mut *cache,
            ids: &ids,
            want: Want::All,
        };
        let pass = model.forward(&mut [slot], &never, &mut logits);
        assert_eq!(pass.expect("no failure"), Pass::Complete);
        logits
    });
    assert_eq!(ours.len(), 50 * config.shape.vocab);
    let square = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>();
    let apart = square(&mut ours.iter().zip(&theirs).map(|(a, b)| a - b));
    // The scales of keys and values in 8 bits are rounded on one side only.
    let error = (apart / square(&mut theirs.iter().copied())).sqrt();
    assert!(error < 0.02, "{error}");
}

#[test]
fn a_gpu_that_fits_too_few_layers_is_rejected() {
    let Some(exec) = device() else { return };
    let (bytes, options) = (taken_by(&exec, 2), LoadOptions::default());
    let with = |min_layers| placed_with(with_memory(&exec, bytes), &options, min_layers);
    assert_eq!(with(2).ok().as_ref().map(layers), Some(2));
    assert!(matches!(
        with(3),
        Err(GpuRejection::TooFewLayers { fit: 2, layers: 5 })
    ));
}

#[test]
fn a_gpu_too_small_for_one_layer_is_rejected() {
    let Some(exec) = device() else { return };
    let placed = placed(with_memory(&exec, 100_000), &LoadOptions::default());
    let why = placed.err().expect("it is too small");
    assert!(
        !why.is_fault() && why.to_string().contains("memory is full"),
        "{why}"
    );
}

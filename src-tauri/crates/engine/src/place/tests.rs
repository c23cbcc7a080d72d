//! A GPU with little memory is used as far as it goes.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::check::Rate;
use crate::context::kv_bytes_per_token;
use crate::faulty::{Fault, Faulty, device};
use crate::gguf::Gguf;
use crate::model::evaluate::{Pass, Want};

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

fn placed(exec: Faulty, options: &LoadOptions) -> Result<OnGpu, String> {
    tried(exec, options).map_err(|why| {
        assert!(!why.failed, "{}", why.reason);
        why.reason
    })
}

fn tried(exec: Faulty, options: &LoadOptions) -> Result<OnGpu, NoGpu> {
    let (gguf, config) = tiny();
    let order = Order {
        config: &config,
        source: &gguf,
        options,
        context: options.context.unwrap_or(config.context),
        cpu: &|| Cpu::exact(2),
        chunk: 64,
    };
    order.on_gpu(exec, "Card".to_owned(), &mut |_| {})
}

#[test]
fn a_gpu_that_fails_while_it_is_loaded_has_failed() {
    let Some(exec) = device() else { return };
    let lost = Fault::Fails(Failure::Lost("gone".to_owned()));
    let why = tried(Faulty::new(exec, 0, lost), &LoadOptions::default());
    let why = why.err().expect("it is gone");
    assert!(why.failed && why.reason.contains("gone"), "{}", why.reason);
}

fn with_memory(exec: &gpu::Wgpu, bytes: u64) -> Faulty {
    Faulty::new(exec.clone(), usize::MAX, Fault::Small(bytes))
}

/// Bytes of the angles of so many positions.
fn angles(config: &Config, positions: u64) -> u64 {
    4 * positions * config.rope.rotary as u64
}

/// Where a model goes when the GPU has room for so many tokens in 16 bits beside its weights.
fn with_room_for(exec: &gpu::Wgpu, tokens: u64, context: Option<usize>) -> Result<OnGpu, String> {
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
fn a_gpu_with_little_memory_has_a_shorter_context_then_fewer_bits_then_fewer_blocks() {
    let Some(exec) = device() else { return };
    for (room, asked, context, kv, whole) in [
        (40_000, None, 32_768, KvType::F16, true),
        (20_000, None, 16_384, KvType::F16, true),
        (4_500, None, 4_096, KvType::F16, true),
        (3_000, None, 4_096, KvType::Q8_0, true),
        (1_000, None, 4_096, KvType::Q8_0, false),
        // A length that was asked for is kept.
        (20_000, Some(30_000), 30_000, KvType::Q8_0, true),
        (12_500, Some(30_000), 30_000, KvType::Q8_0, false),
    ] {
        let found = with_room_for(&exec, room, asked).expect("it is used");
        assert_eq!((found.context, found.kv), (context, kv), "room for {room}");
        assert_eq!(found.name == "Card", whole, "{}", found.name);
        let without = found.without.unwrap_or_default();
        assert_eq!(without.contains("layers"), !whole, "{without}");
        assert_eq!(without.is_empty(), room == 40_000, "{without}");
    }
}

/// Bytes that the last `blocks` take with 4096 positions in 8 bits.
fn taken_by(exec: &gpu::Wgpu, blocks: usize) -> u64 {
    let (gguf, config) = tiny();
    let exec = with_memory(exec, u64::MAX);
    let options = gpu::Options {
        kv: KvType::F16,
        floats: false,
        matrices: true,
    };
    let model = GpuModel::load_last(exec.clone(), &config, &gguf, options, 64, &mut |_| {});
    let mut model = model.expect("it takes the model");
    while model.blocks() > blocks {
        assert!(model.shed().expect("no failure"));
    }
    // A byte a value and a scale of four for each 32.
    let cache = 2 * blocks * config.kv_width() * 4096 * 36 / 32;
    exec.taken() + cache as u64 + angles(&config, 4096)
}

#[test]
fn as_many_blocks_are_on_the_gpu_as_it_has_room_for() {
    let Some(exec) = device() else { return };
    let options = LoadOptions::default();
    for blocks in 1..5 {
        let bytes = taken_by(&exec, blocks);
        let found = placed(with_memory(&exec, bytes), &options).expect("it is used");
        assert_eq!(found.name, format!("{blocks} of 5 layers on Card"));
        assert_eq!((found.context, found.kv), (4096, KvType::Q8_0));
        match placed(with_memory(&exec, bytes - 1), &options) {
            Ok(found) => assert_eq!(found.name, format!("{} of 5 layers on Card", blocks - 1)),
            Err(reason) => {
                assert!(
                    blocks == 1 && reason.contains("The CPU is used"),
                    "{reason}"
                );
            }
        }
    }
}

#[test]
fn a_model_in_two_parts_says_what_the_cpu_says() {
    let Some(exec) = device() else { return };
    let (gguf, config) = tiny();
    let options = LoadOptions {
        exact: true,
        ..LoadOptions::default()
    };
    let bytes = taken_by(&exec, 2);
    let mut found = placed(with_memory(&exec, bytes), &options).expect("it is used");
    assert!(found.name.starts_with("2 of 5"), "{}", found.name);
    let profile = found.model.profile().expect("it runs");
    let kernels = profile.expect("part of it is on the GPU").kernels;
    for (what, count) in [("q, k, v", 2), ("down", 2), ("logits", 1)] {
        let found = kernels.iter().find(|kernel| kernel.what == what);
        assert_eq!(found.map(|kernel| kernel.count), Some(count), "{what}");
    }
    let cpu = load(&config, Cpu::exact(2), &gguf, found.kv, 64, &mut |_| {}).expect("it loads");
    let never = AtomicBool::new(false);
    let ids: Vec<u32> = (0..50).map(|at| at * 7 % 500).collect();
    let [ours, theirs] = [found.model, cpu].map(|mut model| {
        let mut logits = Vec::new();
        let pass = model.append(&ids, Want::All, &never, &mut logits);
        assert_eq!(pass.expect("no failure"), Pass::Complete);
        logits
    });
    assert_eq!(ours.len(), 50 * config.vocab);
    let square = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>();
    let apart = square(&mut ours.iter().zip(&theirs).map(|(a, b)| a - b));
    // The scales of keys and values in 8 bits are rounded on one side only.
    let error = (apart / square(&mut theirs.iter().copied())).sqrt();
    assert!(error < 0.02, "{error}");
}

#[test]
fn a_few_blocks_on_the_gpu_have_to_be_worth_it() {
    let Some(exec) = device() else { return };
    let bytes = taken_by(&exec, 2);
    let with_rate = |decode| {
        let rate = |decode| Rate {
            decode,
            prefill: 100.0,
        };
        let options = LoadOptions {
            rates: Some(Rates {
                gpu: rate(decode),
                cpu: rate(10.0),
            }),
            ..LoadOptions::default()
        };
        placed(with_memory(&exec, bytes), &options)
    };
    let fast = with_rate(40.0).expect("it is worth it");
    let without = fast.without.unwrap_or_default();
    // 2 of 5 blocks take a quarter of 100 ms · 2/5, the others all of 100 ms · 3/5.
    assert!(
        without.contains("2 of 5 layers") && without.contains("14.3 tokens/s"),
        "{without}"
    );
    let slow = with_rate(13.0).err().unwrap_or_default();
    assert!(slow.contains("2 of 5 layers, too few"), "{slow}");
}

#[test]
fn a_gpu_too_small_for_the_weights_takes_no_model() {
    let Some(exec) = device() else { return };
    let placed = placed(with_memory(&exec, 100_000), &LoadOptions::default());
    let reason = placed.err().unwrap_or_default();
    assert!(reason.contains("memory is full"), "{reason}");
}

#[test]
fn a_pass_on_the_cpu_has_a_number_of_tokens_that_fits_the_model() {
    let (_, tiny) = tiny();
    let small = Config {
        layers: 36,
        embedding: 2048,
        feed_forward: 11_008,
        heads: 16,
        kv_heads: 4,
        head_dim: 128,
        ..tiny.clone()
    };
    // Queries and what comes of them, keys and values, and three matrices of the feed-forward part.
    let block = 2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 11_008;
    assert_eq!(small.products_per_token(), 36 * block);
    assert_eq!(cpu_chunk(&small, CpuLevel::Avx512), 256);
    assert_eq!(cpu_chunk(&small, CpuLevel::Avx2), 128);
    assert_eq!(cpu_chunk(&tiny, CpuLevel::Avx2), MOST_CPU_CHUNK);
    let huge = Config {
        embedding: 1 << 15,
        feed_forward: 1 << 17,
        ..small
    };
    assert_eq!(cpu_chunk(&huge, CpuLevel::Avx2), 32);
}

#[test]
fn no_threads_are_as_many_as_there_are_cores() {
    let threads = |threads| {
        super::threads(&LoadOptions {
            threads,
            ..LoadOptions::default()
        })
    };
    assert_eq!(threads(Some(0)), threads(None));
    assert!(threads(None) > 0);
    assert_eq!(threads(Some(3)), 3);
}

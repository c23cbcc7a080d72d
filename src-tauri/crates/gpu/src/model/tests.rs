//! SmolLM3-3B's plans, counted without a device.

use std::sync::atomic::AtomicBool;

use kernels::{BlockType, KvType};

use super::{Model, Options, Shape, Wanted};
use crate::dry::Dry;
use crate::weights::{LayerWeights, Matrix, Weights, load_norm};

fn smollm3() -> Shape {
    Shape {
        layers: 36,
        embedding: 2048,
        feed_forward: 11_008,
        heads: 16,
        kv_heads: 4,
        head_dim: 128,
        vocab: 128_256,
        eps: 1e-6,
        rotary: 128,
        rotated: (0..36).map(|layer| (layer + 1) % 4 != 0).collect(),
    }
}

/// The 3B model in Q4_K_M, its weights unwritten.
fn dry(kv: KvType) -> Model<Dry> {
    let (mut exec, shape) = (Dry::default(), smollm3());
    let matrix = |ty, rows, cols| Matrix::empty(&mut Dry::default(), ty, rows, cols);
    let (e, f, h, k) = (2048, 11_008, 2048, 512);
    let mut norm = || load_norm(&mut exec, &[1.0; 2048]).expect("room");
    let layers = (0..36)
        .map(|layer| {
            let finer = if layer % 2 == 0 {
                BlockType::Q6K
            } else {
                BlockType::Q4K
            };
            LayerWeights {
                attn_norm: norm(),
                attn_q: matrix(BlockType::Q4K, h, e),
                attn_k: matrix(BlockType::Q4K, k, e),
                attn_v: matrix(finer, k, e),
                attn_output: matrix(BlockType::Q4K, e, h),
                ffn_norm: norm(),
                ffn_gate: matrix(BlockType::Q4K, f, e),
                ffn_up: matrix(BlockType::Q4K, f, e),
                ffn_down: matrix(finer, e, f),
            }
        })
        .collect();
    let weights = Weights {
        token_embd: matrix(BlockType::Q6K, shape.vocab, e),
        layers,
        output_norm: norm(),
        output: None,
    };
    let options = Options { kv, floats: false };
    let angles = Box::new(|_, count: usize| vec![0.0; count * 128]);
    Model::new(exec, shape, options, weights, angles).expect("a model")
}

fn read(model: &mut Model<Dry>, tokens: usize) {
    let ids = vec![1; tokens];
    let never = AtomicBool::new(false);
    let complete = model.append(&ids, Wanted::Nothing, &never, &mut Vec::new());
    assert_eq!(complete, Ok(true));
    model.exec.submits.clear();
}

#[test]
fn a_token_takes_183_dispatches() {
    for (past, expected) in [(100, 183), (2000, 219)] {
        let mut model = dry(KvType::F16);
        read(&mut model, past);
        model.follow(Some(1), 0.0).expect("it runs");
        model.follow(None, 0.0).expect("it runs");
        let counts: Vec<usize> = model.exec.submits.iter().map(Vec::len).collect();
        // The first token comes from the host and has to be embedded.
        assert_eq!(counts, [expected + 1, expected]);
    }
}

#[test]
fn a_quantised_cache_takes_one_dispatch_more_a_block() {
    let mut model = dry(KvType::Q8_0);
    read(&mut model, 100);
    model.follow(Some(1), 0.0).expect("it runs");
    model.follow(None, 0.0).expect("it runs");
    assert_eq!(model.exec.submits[1].len(), 183 + 36);
}

#[test]
fn the_device_holds_little_more_than_the_file() {
    let model = dry(KvType::F16);
    assert!(
        model.exec.bytes < 150 << 20,
        "{} beside the weights",
        model.exec.bytes
    );
}

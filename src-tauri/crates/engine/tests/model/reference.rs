//! The tiny reference models: SmolLM3's architecture, random weights, and the exact logits of those weights.

use std::fs;
use std::path::PathBuf;

use ::reference::Distance;
use engine::{Engine, GpuPlacement, KvType, LoadOptions, Placement};
use serde::Deserialize;

use testing::or_skip;

/// Contents of `fixtures/reference.json`.
#[derive(Deserialize)]
pub struct Reference {
    /// The tokens that the logits follow.
    pub tokens: Vec<u32>,
    /// Logits per position.
    pub vocab: usize,
    /// Distance of llama.cpp from the exact logits, by model.
    pub llama_cpp: std::collections::BTreeMap<String, Distance>,
}

pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

pub fn reference() -> Reference {
    let json = fs::read_to_string(fixture("reference.json")).expect("the fixture is committed");
    serde_json::from_str(&json).expect("reference.json is what Reference says")
}

/// Exact logits `[positions][vocab]` of a model.
pub fn exact_logits(model: &str, vocab: usize) -> Vec<Vec<f32>> {
    let bytes = fs::read(fixture(&format!("{model}.exact.f32"))).expect("the fixture is committed");
    let values: Vec<f32> = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes))
        .collect();
    values.chunks_exact(vocab).map(<[f32]>::to_vec).collect()
}

/// The CPU, with default options otherwise.
pub fn on_cpu() -> LoadOptions {
    LoadOptions {
        threads: Some(2),
        ..LoadOptions::default()
    }
}

/// A GPU, software Vulkan if there is no other; `None` if no driver shows any.
pub fn on_gpu() -> Option<LoadOptions> {
    let devices = Some(gpu::list(true)).filter(|devices| !devices.is_empty());
    or_skip(devices)?;
    Some(LoadOptions {
        placement: Placement::Gpu(GpuPlacement {
            id: None,
            software: true,
            matrices: true,
            min_layers: 1,
        }),
        ..LoadOptions::default()
    })
}

/// f32 throughout.
pub fn exactly() -> LoadOptions {
    LoadOptions {
        exact: true,
        kv: KvType::F32,
        ..on_cpu()
    }
}

pub fn open(model: &str, options: &LoadOptions) -> Engine {
    let path = fixture(&format!("{model}.gguf"));
    Engine::open(&path, options, &mut |_| {}).expect("the fixture opens")
}

/// Distance of `ours` from `exact`.
pub fn distance(ours: &[Vec<f32>], exact: &[Vec<f32>]) -> Distance {
    assert_eq!(ours.len(), exact.len());
    for (ours, exact) in ours.iter().zip(exact) {
        assert_eq!(ours.len(), exact.len());
    }
    Distance::between(ours, exact)
}

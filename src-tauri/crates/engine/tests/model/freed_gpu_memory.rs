//! A model that is dropped gives the GPU's memory back, each time. On software Vulkan that is memory of this process.

use std::fs;
use std::sync::Arc;

use engine::gguf::write::{self, Field};
use engine::gguf::{BlockType, Gguf};
use engine::model::weights::{Tensor, TensorBytes, WeightSource, required_tensors};
use engine::{Config, Engine, ModelFile};

use crate::reference::{fixture, on_gpu, open};
use testing::skip;

const MODEL: &str = "tiny-q8_0";
/// Weights of the model in bytes, at least.
const WEIGHTS: u64 = 200 << 20;
/// Weights that are all zero.
struct Zeros(Config);

impl WeightSource for Zeros {
    fn shape(&self, name: &str) -> Option<(BlockType, usize, usize)> {
        let mut tensors = required_tensors(&self.0).into_iter();
        let tensor = tensors.find(|tensor| tensor.name == name)?;
        let ty = match tensor.rows {
            1 => BlockType::F32,
            _ => BlockType::Q8_0,
        };
        Some((ty, tensor.rows, tensor.cols))
    }

    fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let (ty, rows, cols) = self.shape(name)?;
        let bytes = vec![0; ty.row_bytes(cols)? * rows];
        Some(Tensor {
            ty,
            rows,
            cols,
            bytes: TensorBytes::Generated(bytes),
        })
    }
}

/// A model with large feed-forward layers.
fn large_model() -> ModelFile {
    let tiny = Gguf::open(&fixture(&format!("{MODEL}.gguf"))).expect("the fixture is committed");
    let fields = tiny.keys().filter_map(|key| {
        let field = match key {
            "smollm3.feed_forward_length" => Field::U32(1 << 16),
            key => Field::from_value(&tiny.get(key)?)?,
        };
        Some((key, field))
    });
    let header = Gguf::from_bytes(write::header(fields, &[])).expect("a header");
    let config = Config::from_gguf(&header).expect("a model");
    ModelFile::from_parts(&header, Arc::new(Zeros(config))).expect("a model")
}

/// Resident memory of this process in bytes, if the system reports it.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[test]
fn a_dropped_model_gives_the_gpus_memory_back_each_time() {
    let Some(options) = on_gpu() else {
        return;
    };
    // The driver allocates some memory only once.
    drop(open(MODEL, &options));
    let Some(before) = resident() else {
        skip("the system does not tell this process's memory");
        return;
    };
    let file = large_model();
    for round in 0..2 {
        let engine = Engine::load(&file, &options, &mut |_| {}).expect("it opens");
        assert!(engine.device().on_gpu);
        let open = resident().expect("known");
        drop(engine);
        let closed = resident().expect("known");
        let figures = format!(
            "round {round}: {} MiB before, {} open, {} closed",
            before >> 20,
            open >> 20,
            closed >> 20
        );
        if open < before + WEIGHTS {
            skip("the GPU has memory of its own");
            return;
        }
        // Other tests in this process take and free memory meanwhile.
        assert!(closed + WEIGHTS / 2 < open, "{figures}");
    }
}

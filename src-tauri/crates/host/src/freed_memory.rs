//! Closing a model returns its memory to the system, each time.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use chat::{ModelChoice, ModelHost, ModelOptions};
use engine::gguf::BlockType;
use engine::gguf::write::{self, Field, TensorSpec};
use engine::model::weights::required_tensors;
use engine::{Config, Gguf, process};

use super::*;

/// Held while a test of this process has a large model open.
pub(super) static LARGE_MODEL: Mutex<()> = Mutex::new(());
/// Approximate bytes of the model's weights.
const WEIGHTS: u64 = 200 << 20;
/// Bytes that the other tests in this process may allocate meanwhile.
const NOISE: u64 = 50 << 20;

/// Writes a model with the bundled model's vocabulary, whose weights are all zero, to a sparse file.
fn write_large_model(path: &Path) {
    let bundled = Gguf::open(&bundled_model::file().expect("the bundled model")).expect("a model");
    let fields: Vec<(&str, Field)> = bundled
        .keys()
        .filter_map(|key| {
            let field = match key {
                "smollm3.feed_forward_length" => Field::U32(32768),
                "smollm3.block_count" => Field::U32(8),
                key => Field::from_value(&bundled.get(key)?)?,
            };
            Some((key, field))
        })
        .collect();
    let header = Gguf::from_bytes(write::header(fields.clone(), &[])).expect("a header");
    let config = Config::from_gguf(&header).expect("a model");
    let spec = |tensor: engine::model::weights::TensorShape| {
        let (ty, dims) = match tensor.rows {
            1 => (BlockType::F32, vec![tensor.cols]),
            rows => (BlockType::Q8_0, vec![tensor.cols, rows]),
        };
        let row = ty.row_bytes(tensor.cols).expect("whole blocks");
        TensorSpec {
            name: tensor.name,
            ty,
            dims,
            len: row * tensor.rows,
        }
    };
    let tensors: Vec<TensorSpec> = required_tensors(&config).into_iter().map(spec).collect();
    let header = write::header(fields, &tensors);
    let data: usize = tensors
        .iter()
        .map(|tensor| tensor.len + write::padding(tensor.len))
        .sum();
    assert!(data as u64 > WEIGHTS, "{data} bytes");
    let mut file = File::create(path).expect("made");
    file.write_all(&header).expect("written");
    file.set_len((header.len() + data) as u64).expect("written");
}

#[test]
fn a_closed_model_gives_its_memory_back_each_time() {
    let _alone = LARGE_MODEL.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("made");
    let path = folder.path().join("large.gguf");
    write_large_model(&path);
    assert!(fs::metadata(&path).expect("there").len() > WEIGHTS);
    let options = ModelOptions {
        device: "cpu".into(),
        threads: Some(2),
        context_length: Some(1024),
        kv_type: chat::KvType::F16,
    };
    // On a separate thread, as in the app: threads share freed memory differently.
    let work = move || {
        let allocated = || process::allocated().expect("Linux tells");
        let mut model = EngineModel::default();
        let before = allocated();
        for round in 0..3 {
            let choice = ModelChoice::File(path.clone());
            model
                .open(&choice, &options, &mut |_| {})
                .expect("it opens");
            let open = allocated();
            model.close();
            let closed = allocated();
            assert!(model.info().is_none());
            let mib = |bytes: u64| bytes >> 20;
            let figures = format!(
                "round {round}: {} MiB before, {} open, {} closed",
                mib(before),
                mib(open),
                mib(closed)
            );
            assert!(open + NOISE > before + WEIGHTS, "{figures}");
            assert!(closed < before + NOISE, "{figures}");
        }
    };
    thread::spawn(work).join().expect("no panic");
}

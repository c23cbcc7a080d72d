//! Models of each architecture against the exact logits of their own weights. The files lie outside of the repository; the
//! tests are skipped where they are absent.

use std::fs;
use std::path::{Path, PathBuf};

use engine::{CpuLevel, Engine, Gguf, KvType, LoadOptions, ModelFile};
use serde::Deserialize;

use crate::reference::{distance, exactly, on_cpu, on_gpu};
use testing::skip;

const MODELS: [&str; 4] = ["tiny-llama", "tiny-smollm2", "tiny-qwen2", "tiny-qwen3"];

#[derive(Deserialize)]
struct Families {
    token_ids: Vec<u32>,
}

/// The folder `shared/reference/logits` beside the repository or one of its parents.
pub fn folder() -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/reference/logits"))
        .find(|path| path.is_dir());
    if found.is_none() {
        skip("no models of other architectures (shared/reference/logits)");
    }
    found
}

/// The values of a two-dimensional .npy file of f32, row by row.
fn npy(path: &Path) -> Vec<Vec<f32>> {
    let bytes = fs::read(path).expect("an .npy file");
    let header_len = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..10 + header_len]).expect("a header");
    assert!(header.contains("'<f4'") && header.contains("'fortran_order': False"));
    let shape = header.split(['(', ')']).nth(1).expect("a shape");
    let cols: usize = shape
        .split(',')
        .nth(1)
        .expect("columns")
        .trim()
        .parse()
        .expect("a number");
    let values: Vec<f32> = bytes[10 + header_len..]
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes))
        .collect();
    values.chunks_exact(cols).map(<[f32]>::to_vec).collect()
}

fn measure(folder: &Path, model: &str, options: &LoadOptions) -> ::reference::Distance {
    let json = fs::read_to_string(folder.join("families.json")).expect("families.json");
    let families: Families = serde_json::from_str(&json).expect("token ids");
    let path = folder.join(format!("{model}-q8_0.gguf"));
    let gguf = Gguf::open(&path).expect("a file");
    let file = ModelFile::of_gguf(gguf).unwrap_or_else(|error| panic!("{model}: {error}"));
    let mut engine = Engine::load(&file, options, &mut |_| {}).expect("its weights are there");
    let ours = engine
        .logits(&families.token_ids, true)
        .expect("the tokens fit");
    distance(&ours, &npy(&folder.join(format!("{model}-q8_0.exact.npy"))))
}

#[test]
fn in_f32_each_architecture_is_exact() {
    let Some(folder) = folder() else { return };
    for model in MODELS {
        let found = measure(&folder, model, &exactly());
        assert!(found.relative_error < 1e-4, "{model}: {found:?}");
    }
}

#[test]
fn each_architecture_is_as_near_at_every_cpu_level() {
    let Some(folder) = folder() else { return };
    for level in CpuLevel::available() {
        for model in MODELS {
            let options = LoadOptions {
                cpu_level: Some(level),
                ..on_cpu()
            };
            let found = measure(&folder, model, &options);
            assert!(
                found.relative_error < 0.08 && found.mean_kl < 0.02,
                "{model} at {}: {found:?}",
                level.name()
            );
        }
    }
}

#[test]
fn each_architecture_is_exact_and_near_on_the_gpu() {
    let (Some(folder), Some(options)) = (folder(), on_gpu()) else {
        return;
    };
    for model in MODELS {
        let options = LoadOptions {
            exact: true,
            kv: KvType::F32,
            ..options.clone()
        };
        let found = measure(&folder, model, &options);
        assert!(found.relative_error < 1e-4, "{model}: {found:?}");
    }
    for model in MODELS {
        let found = measure(&folder, model, &options);
        assert!(
            found.relative_error < 0.08 && found.mean_kl < 0.025,
            "{model}: {found:?}"
        );
    }
}

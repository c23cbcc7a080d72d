//! The engine and candle on the same files: two implementations by different people.

use std::path::PathBuf;

use engine::{Engine, KvType, LoadOptions};
use reference::{Distance, ReferenceError, ReferenceModel, UnsupportedModel};

fn fixture(name: &str) -> PathBuf {
    let engine = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/fixtures");
    engine.join(name)
}

fn tokens() -> Vec<u32> {
    let json = std::fs::read_to_string(fixture("reference.json")).expect("it is committed");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    serde_json::from_value(value["tokens"].clone()).expect("token ids")
}

fn open(path: &std::path::Path) -> ReferenceModel {
    ReferenceModel::open(path, None).expect("it opens")
}

/// Returns candle's logits after every token, read one by one.
fn candle(path: &std::path::Path, tokens: &[u32]) -> Vec<Vec<f32>> {
    let mut all = Vec::new();
    open(path)
        .all_logits(tokens, &mut |logits| all.push(logits))
        .expect("it runs");
    all
}

fn engine_logits(path: &std::path::Path, tokens: &[u32], exact: bool) -> Vec<Vec<f32>> {
    let options = LoadOptions {
        threads: Some(2),
        exact,
        kv: if exact { KvType::F32 } else { KvType::F16 },
        ..LoadOptions::default()
    };
    let mut engine = Engine::open(path, &options, &mut |_| {}).expect("it opens");
    engine.logits(tokens, true).expect("the tokens fit")
}

#[test]
fn candle_agrees_with_the_engine() {
    let tokens = tokens();
    for model in ["tiny-q4_k_m", "tiny-q8_0"] {
        let path = fixture(&format!("{model}.gguf"));
        let exact = engine_logits(&path, &tokens, true);
        let found = Distance::between(&candle(&path, &tokens), &exact);
        // Its output matrix and activations are rounded to 8 bits.
        assert!(
            found.relative_error < 0.1 && found.mean_kl < 0.06,
            "{model}: {found:?}"
        );
    }
}

/// Tiny models of the other architectures lie outside of the repository.
#[test]
fn candle_agrees_with_the_engine_on_other_architectures() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/reference/logits"))
        .find(|path| path.is_dir());
    let Some(folder) = folder else {
        testing::skip("no models of other architectures (shared/reference/logits)");
        return;
    };
    let tokens = tokens();
    for model in ["tiny-smollm2", "tiny-qwen2", "tiny-qwen3"] {
        let path = folder.join(format!("{model}-q8_0.gguf"));
        let exact = engine_logits(&path, &tokens, true);
        let found = Distance::between(&candle(&path, &tokens), &exact);
        assert!(
            found.relative_error < 0.1 && found.mean_kl < 0.06,
            "{model}: {found:?}"
        );
    }
    // candle lacks the position scaling of Llama 3.1 and later.
    let opened = ReferenceModel::open(&folder.join("tiny-llama-q8_0.gguf"), None).map(|_| ());
    let Err(ReferenceError::Unsupported(UnsupportedModel::Tensor(name))) = opened else {
        panic!("{opened:?}");
    };
    assert_eq!(name, "rope_freqs.weight");
}

#[test]
fn candle_agrees_on_the_tiny_model() {
    let path = testing::tiny_model();
    let tokens: Vec<u32> = (0..80).map(|it| it * 7 % 500).collect();
    let exact = engine_logits(&path, &tokens, true);
    for logits in [candle(&path, &tokens), engine_logits(&path, &tokens, false)] {
        let found = Distance::between(&logits, &exact);
        assert!(
            found.relative_error < 0.1 && found.mean_kl < 0.06,
            "{found:?}"
        );
    }
}

#[test]
fn a_prompt_in_long_passes_gives_what_single_tokens_give() {
    let (path, tokens) = (fixture("tiny-q8_0.gguf"), tokens());
    let tokens = &tokens[..100];
    let one_by_one = candle(&path, tokens);
    let mut model = open(&path);
    for round in 0..2 {
        let (first, rest) = tokens.split_at(70 + round);
        let mut logits = vec![model.append(first).expect("it runs")];
        logits.extend(rest.iter().map(|&id| model.append(&[id]).expect("it runs")));
        let found = Distance::between(&logits, &one_by_one[first.len() - 1..]);
        assert!(found.relative_error < 1e-3, "{found:?}");
        // Several tokens after a single one are read one by one.
        model.reset();
        model.append(&tokens[..1]).expect("it runs");
        let logits = model.append(&tokens[1..]).expect("it runs");
        assert_eq!(logits, one_by_one[99]);
        model.reset();
    }
}

#[test]
fn what_candle_would_compute_wrongly_is_refused() {
    let opened = ReferenceModel::open(&fixture("tiny-yarn-q8_0.gguf"), None).map(|_| ());
    let Err(ReferenceError::Unsupported(reason)) = opened else {
        panic!("{opened:?}");
    };
    assert_eq!(reason, UnsupportedModel::ScaledPositions);
}

#[test]
fn a_model_without_room_is_not_opened() {
    let opened = ReferenceModel::open(&testing::tiny_model(), Some(1 << 20)).map(|_| ());
    let Err(ReferenceError::Memory { needed, available }) = opened else {
        panic!("{opened:?}");
    };
    assert!(needed > 64 << 20 && available == 1 << 20, "{needed}");
}

#[test]
fn tokens_that_cannot_be_read_are_errors() {
    let mut model = open(&fixture("tiny-q8_0.gguf"));
    let (vocab, context) = (model.outline().vocab, model.outline().context);
    let unknown = u32::try_from(vocab).expect("small");
    assert!(matches!(model.append(&[]), Err(ReferenceError::Empty)));
    assert!(matches!(
        model.append(&[0, unknown]),
        Err(ReferenceError::UnknownToken { id, .. }) if id == unknown
    ));
    assert!(matches!(
        model.append(&vec![0; context + 1]),
        Err(ReferenceError::TooLong { .. })
    ));
    assert_eq!(model.append(&[0]).expect("it runs").len(), vocab);
}

#[test]
fn a_file_that_is_no_model_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = std::fs::read(testing::tiny_model()).expect("the tiny model");
    for (name, bytes) in [
        ("empty", &whole[..0]),
        ("header", &whole[..100]),
        ("half", &whole[..whole.len() / 2]),
        ("foreign", b"%PDF-1.7 this is no model".as_slice()),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        assert!(ReferenceModel::open(&path, None).is_err(), "{name}");
    }
    assert!(ReferenceModel::open(folder.path(), None).is_err());
}

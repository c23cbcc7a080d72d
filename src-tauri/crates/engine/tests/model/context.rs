//! Length of the context, and the note on it.

use std::path::{Path, PathBuf};

use engine::gguf::write::Field;
use engine::{Engine, Inspection, LoadOptions};

use crate::files::altered;
use crate::reference::{distance, exact_logits, exactly, fixture, on_cpu, open, reference};

const MODEL: &str = "tiny-q4_k_m";

/// The context length for a requested one, and its note.
fn given(context: Option<usize>) -> (usize, Option<String>) {
    let options = LoadOptions {
        context,
        ..on_cpu()
    };
    let engine = open(MODEL, &options);
    let summary = engine.summary();
    (summary.context_length, summary.context_note.clone())
}

#[test]
fn a_context_differs_from_the_requested_one_with_a_note_only() {
    assert_eq!(given(None), (4096, None));
    assert_eq!(given(Some(100)), (100, None));
    assert_eq!(given(Some(4096)), (4096, None));
    let (length, note) = given(Some(8192));
    let note = note.expect("it is longer than trained");
    assert_eq!(length, 8192);
    assert!(
        note.contains("4,096 tokens that the model was trained for")
            && note.contains("slightly worse"),
        "{note}"
    );
    assert!(!note.contains("requested"), "{note}");
    let (length, note) = given(Some(1_000_000));
    let note = note.expect("it is cut");
    assert_eq!(length, 8192);
    assert!(
        note.contains("1,000,000 tokens were requested, but 8,192 are used")
            && note.contains("longer than it was trained for"),
        "{note}"
    );
}

#[test]
fn without_yarn_the_context_is_the_trained_one() {
    let options = LoadOptions {
        context: Some(8192),
        allow_yarn: false,
        ..on_cpu()
    };
    let engine = open(MODEL, &options);
    assert_eq!(engine.summary().context_length, 4096);
    let extended = open(
        MODEL,
        &LoadOptions {
            allow_yarn: true,
            ..options
        },
    );
    let bytes = |engine: &Engine| engine.full_kv_bytes();
    assert_eq!(bytes(&extended), 2 * bytes(&engine));
    let summary = extended.summary();
    assert_eq!(
        (summary.context_length, summary.trained_context),
        (8192, 4096)
    );
}

#[test]
fn logits_are_of_tokens_that_there_are_as_far_as_the_context_goes() {
    let options = LoadOptions {
        context: Some(8),
        ..on_cpu()
    };
    let mut engine = open(MODEL, &options);
    assert!(engine.logits(&[524; 8], false).is_ok());
    let mut error = |tokens: &[u32]| engine.logits(tokens, false).expect_err("it cannot");
    let too_long = error(&[1; 9]).to_string();
    assert!(too_long.contains("9 tokens in a context of 8"));
    assert_eq!(
        error(&[525]).to_string(),
        "the model has no token 525; its ids end at 524"
    );
}

/// SmolLM3's recipe, independent of the part of the longer context that is used.
#[test]
fn a_longer_context_uses_yarn_with_factor_two() {
    let engine = open(MODEL, &on_cpu());
    let trained = engine.config();
    assert_eq!(&trained.for_context(4096), trained);
    let extended = trained.for_context(8192);
    assert_ne!(&extended, trained);
    assert_eq!(trained.for_context(5000), extended);
}

#[test]
fn an_inspection_estimates_the_context() {
    let inspect = |context| {
        let found = Inspection::of(&fixture(&format!("{MODEL}.gguf")), Some(context));
        found.expect("a GGUF file").model.expect("a SmolLM3 file")
    };
    let model = inspect(4096);
    assert_eq!((model.usable_context, model.context_note), (4096, None));
    assert_eq!(model.rope_scaling, "none");
    let model = inspect(10_000);
    assert_eq!((model.usable_context, model.longest_context), (8192, 8192));
    let note = model.context_note.expect("it is cut");
    assert!(note.contains("10,000 tokens were requested"), "{note}");
    assert_eq!(model.rope_scaling, "yarn 2 from 4096");
}

/// The model with YaRN in its file, which extends 64 tokens to 128, without the keys that say so.
fn without_yarn(folder: &Path) -> PathBuf {
    let change = |key: &str, field| match key {
        "smollm3.rope.scaling.type" => Field::String("none".to_owned()),
        "smollm3.context_length" => Field::U32(64),
        _ => field,
    };
    altered("tiny-yarn-q8_0", folder, change, "")
}

#[test]
fn twice_the_trained_context_agrees_with_a_file_with_yarn() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = without_yarn(folder.path());
    let logits = |context| {
        let options = LoadOptions {
            context,
            ..exactly()
        };
        let mut engine = Engine::open(&path, &options, &mut |_| {}).expect("a good file");
        let length = engine.summary().context_length;
        let tokens = reference().tokens[..length].to_vec();
        engine.logits(&tokens, true).expect("the tokens fit")
    };
    let exact = exact_logits("tiny-yarn-q8_0", reference().vocab);
    let extended = logits(Some(128));
    let found = distance(&extended, &exact[..128]);
    assert!(found.relative_error < 1e-4, "{found:?}");
    // Up to the trained length, the model is unchanged.
    for context in [None, Some(64)] {
        let found = distance(&logits(context), &exact[..64]);
        assert!(found.relative_error > 1e-2, "{found:?}");
    }
}

#[test]
fn yarn_is_not_applied_to_a_file_with_yarn() {
    let options = LoadOptions {
        context: Some(1_000_000),
        ..on_cpu()
    };
    let engine = open("tiny-yarn-q8_0", &options);
    let trained = engine.summary().trained_context;
    assert_eq!(engine.summary().context_length, trained.max(128));
    let note = engine.summary().context_note.clone().expect("it is cut");
    assert!(note.contains("the model supports no more"), "{note}");
}

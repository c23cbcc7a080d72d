//! Headers of each architecture: sound ones, and those whose keys or tensors belong to another model.

use super::*;
use crate::gguf::write::{self, Field, TensorSpec};
use crate::model::architecture::{ARCHITECTURES, LLAMA, QWEN2, QWEN3};
use crate::model::weights;

/// Head width of these models.
const HEAD: u32 = 32;

/// A header of one layer with these keys in place of or beside the usual ones, and its tensors: F32, all of `value`.
fn gguf(name: &str, keys: &[(&str, Field)], tensors: &[(&str, &[usize], f32)]) -> Gguf {
    let usual = [
        ("block_count", Field::U32(1)),
        ("context_length", Field::U32(1024)),
        ("embedding_length", Field::U32(64)),
        ("feed_forward_length", Field::U32(96)),
        ("attention.head_count", Field::U32(2)),
        ("attention.head_count_kv", Field::U32(1)),
        ("attention.key_length", Field::U32(HEAD)),
        ("attention.layer_norm_rms_epsilon", Field::F32(1e-6)),
    ];
    let kept = usual
        .into_iter()
        .filter(|(key, _)| !keys.iter().any(|(other, _)| key == other));
    let own = kept.chain(keys.iter().cloned());
    let fields: Vec<(String, Field)> = [
        (
            "general.architecture".to_owned(),
            Field::String(name.to_owned()),
        ),
        (
            "tokenizer.ggml.tokens".to_owned(),
            Field::Strings(vec!["a".to_owned(); 8]),
        ),
    ]
    .into_iter()
    .chain(own.map(|(key, field)| (format!("{name}.{key}"), field)))
    .collect();
    let described: Vec<TensorSpec> = tensors
        .iter()
        .map(|(name, dims, _)| TensorSpec {
            name: (*name).to_owned(),
            ty: BlockType::F32,
            dims: dims.to_vec(),
            len: 4 * dims.iter().product::<usize>(),
        })
        .collect();
    let fields = fields
        .iter()
        .map(|(key, field)| (key.as_str(), field.clone()));
    let mut bytes = write::header(fields, &described);
    for (_, dims, value) in tensors {
        for _ in 0..dims.iter().product::<usize>() {
            bytes.extend(value.to_le_bytes());
        }
        bytes.resize(bytes.len() + write::padding(bytes.len()), 0);
    }
    Gguf::from_bytes(bytes).expect("a sound file")
}

/// The tensors of one layer of an architecture, with those that are only in some files.
fn tensors(architecture: &Architecture) -> Vec<(&'static str, &'static [usize], f32)> {
    let mut all: Vec<(&str, &[usize], f32)> = vec![
        ("token_embd.weight", &[64, 8], 1.0),
        ("output_norm.weight", &[64], 1.0),
        ("blk.0.attn_norm.weight", &[64], 1.0),
        ("blk.0.attn_q.weight", &[64, 64], 1.0),
        ("blk.0.attn_k.weight", &[64, 32], 1.0),
        ("blk.0.attn_v.weight", &[64, 32], 1.0),
        ("blk.0.attn_output.weight", &[64, 64], 1.0),
        ("blk.0.ffn_norm.weight", &[64], 1.0),
        ("blk.0.ffn_gate.weight", &[64, 96], 1.0),
        ("blk.0.ffn_up.weight", &[64, 96], 1.0),
        ("blk.0.ffn_down.weight", &[96, 64], 1.0),
    ];
    if architecture.qkv_bias != Presence::Absent {
        all.push(("blk.0.attn_q.bias", &[64], 1.0));
        all.push(("blk.0.attn_k.bias", &[32], 1.0));
        all.push(("blk.0.attn_v.bias", &[32], 1.0));
    }
    if architecture.head_norms != Presence::Absent {
        all.push(("blk.0.attn_q_norm.weight", &[32], 1.0));
        all.push(("blk.0.attn_k_norm.weight", &[32], 1.0));
    }
    if architecture.frequency_divisors != Presence::Absent {
        all.push(("rope_freqs.weight", &[16], 1.0));
    }
    all
}

/// Reason to refuse a header; `None` if the model may be loaded.
fn problem(gguf: &Gguf) -> Option<String> {
    match Config::from_gguf(gguf) {
        Ok(config) => weights::check(gguf, &config)
            .err()
            .map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn a_sound_header_of_each_architecture_is_accepted() {
    for architecture in ARCHITECTURES {
        let gguf = gguf(architecture.name, &[], &tensors(architecture));
        assert_eq!(problem(&gguf), None, "{}", architecture.name);
        let config = Config::from_gguf(&gguf).expect("sound");
        assert_eq!(config.architecture, architecture);
        let unrotated = (0..8).filter(|&layer| !config.shape.rotates(layer)).count();
        assert_eq!(unrotated, if architecture == &SMOLLM3 { 2 } else { 0 });
    }
}

#[test]
fn keys_that_change_the_model_are_named() {
    for architecture in ARCHITECTURES {
        for (key, field, expected) in [
            ("expert_count", Field::U32(8), "models of experts"),
            ("expert_used_count", Field::U32(2), "models of experts"),
            ("logit_scale", Field::F32(0.5), "a scale of 0.5"),
            ("attention.scale", Field::F32(0.1), "a scale of 0.1"),
            (
                "attention.head_count_kv",
                Field::U32(3),
                "3 does not divide",
            ),
            ("attention.head_count", Field::U32(0), "0 is not between"),
            ("attention.key_length", Field::U32(7), "heads of 7"),
            (
                "attention.key_length",
                Field::U32(33),
                "33 of the 33 values|cannot be rotated",
            ),
            ("attention.value_length", Field::U32(64), "it differs"),
            ("rope.dimension_count", Field::U32(64), "64 of the 32"),
            (
                "rope.scaling.type",
                Field::String("longrope".to_owned()),
                "`longrope` is not supported",
            ),
        ] {
            let gguf = gguf(architecture.name, &[(key, field)], &tensors(architecture));
            let found = problem(&gguf).unwrap_or_else(|| panic!("{}: {key}", architecture.name));
            let full = format!("{}.{key}", architecture.name);
            let says = expected.split('|').any(|expected| found.contains(expected));
            let names = found.contains(&full) || found.contains("rope.dimension_count");
            assert!(says && names, "{full}: {found}");
        }
    }
}

#[test]
fn a_sliding_window_limits_the_context() {
    for (window, expected, without_window) in [(256, 256, Some(1024)), (4096, 1024, None)] {
        let key = ("attention.sliding_window", Field::U32(window));
        let config = Config::from_gguf(&gguf("qwen2", &[key], &tensors(&QWEN2))).expect("sound");
        assert_eq!(config.context, expected);
        assert_eq!(config.without_window, without_window);
        let longest = without_window.map_or(4096, |_| 256);
        assert_eq!(config.longest_context(), longest);
    }
}

#[test]
fn tensors_of_another_block_are_named() {
    for architecture in ARCHITECTURES {
        for part in architecture.foreign_parts() {
            let name = format!("blk.0.{part}");
            let mut tensors = tensors(architecture);
            tensors.push((&name, &[32], 1.0));
            let found = problem(&gguf(architecture.name, &[], &tensors));
            assert!(
                found.as_ref().is_some_and(|found| found.contains(&name)),
                "{}: {name}: {found:?}",
                architecture.name
            );
        }
    }
}

#[test]
fn a_tensor_that_is_missing_or_misshapen_is_named() {
    for architecture in ARCHITECTURES {
        let whole = tensors(architecture);
        for (at, (name, ..)) in whole.iter().enumerate() {
            let mut some = whole.clone();
            some.remove(at);
            let found = problem(&gguf(architecture.name, &[], &some));
            let is_optional = *name == "rope_freqs.weight";
            assert_eq!(
                found.is_none(),
                is_optional,
                "{}: {name}",
                architecture.name
            );
            assert!(found.is_none_or(|found| found.contains(name)), "{name}");
            let mut some = whole.clone();
            some[at].1 = &[96];
            let found = problem(&gguf(architecture.name, &[], &some));
            assert!(found.is_some_and(|found| found.contains(name)), "{name}");
        }
    }
    // Llama's biases are optional, but come all or none.
    let without: Vec<_> = tensors(&LLAMA)
        .into_iter()
        .filter(|(name, ..)| !name.ends_with(".bias"))
        .collect();
    assert_eq!(problem(&gguf("llama", &[], &without)), None);
}

#[test]
fn divisors_of_frequencies_are_positive_numbers() {
    for value in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let mut tensors = tensors(&LLAMA);
        for tensor in &mut tensors {
            if tensor.0 == "rope_freqs.weight" {
                tensor.2 = value;
            }
        }
        let found = problem(&gguf("llama", &[], &tensors)).expect("refused");
        assert!(
            found.contains("rope_freqs.weight") && found.contains("no positive"),
            "{found}"
        );
    }
    // Qwen has none: they are not used.
    let mut tensors = tensors(&QWEN3);
    tensors.push(("rope_freqs.weight", &[16], 0.0));
    assert_eq!(problem(&gguf("qwen3", &[], &tensors)), None);
}

//! Files that contradict themselves, and files made by the tests.

use std::fs;
use std::path::Path;

use engine::gguf::TensorInfo;
use engine::gguf::write::{self, Field, TensorSpec};
use engine::{
    Config, Engine, Gguf, GpuPlacement, GpuRejection, Inspection, LoadOptions, ModelFile,
    ModelHeader, OpenError, Placement,
};

use crate::reference::{fixture, on_cpu, open};

const MODEL: &str = "tiny-q4_k_m";

/// A tiny model with its metadata changed and, maybe, a tensor left out.
pub fn altered(
    model: &str,
    folder: &Path,
    change: impl Fn(&str, Field) -> Field,
    without: &str,
) -> std::path::PathBuf {
    let gguf = Gguf::open(&fixture(&format!("{model}.gguf"))).expect("the fixture is committed");
    let field =
        |key: &str| Field::from_value(&gguf.get(key).expect("a key")).expect("a known type");
    let fields = gguf.keys().map(|key| (key, change(key, field(key))));
    let kept = || {
        gguf.tensors()
            .iter()
            .filter(|tensor| tensor.name != without)
    };
    let descriptions: Vec<TensorSpec> = kept().map(spec_of).collect();
    let mut image = write::header(fields, &descriptions);
    for tensor in kept() {
        let stored = gguf.tensor(&tensor.name).expect("it is listed").bytes;
        image.extend_from_slice(&stored.read().expect("it can be read"));
        image.resize(image.len() + write::padding(tensor.data.len()), 0);
    }
    let path = folder.join("altered.gguf");
    fs::write(&path, image).expect("the folder can be written to");
    path
}

fn spec_of(tensor: &TensorInfo) -> TensorSpec {
    TensorSpec {
        name: tensor.name.clone(),
        ty: tensor.ty,
        dims: tensor.dims.clone(),
        len: tensor.data.len(),
    }
}

pub fn refusal(path: &Path) -> String {
    let error = ModelFile::open(path).err().expect("it must be refused");
    let error = error.to_string();
    let opened = Engine::open(path, &on_cpu(), &mut |_| {});
    assert_eq!(
        opened.err().map(|error| error.to_string()),
        Some(error.clone()),
        "check and open agree"
    );
    error
}

#[test]
fn a_rewritten_file_opens() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = altered(MODEL, folder.path(), |_, field| field, "");
    let file = ModelFile::open(&path).expect("a good file");
    let summary = file.summary();
    assert_eq!(
        (summary.quantisation.as_str(), summary.vocab),
        ("Q4_K_M", 525)
    );
    let gguf = Gguf::open(&path).expect("a good file");
    let values = |tensor: &TensorInfo| tensor.rows() * tensor.cols();
    let weights: usize = gguf.tensors().iter().map(values).sum();
    assert_eq!(summary.parameters, weights as u64);
    let tokens = [1, 2, 3];
    let mut again = Engine::open(&path, &on_cpu(), &mut |_| {}).expect("a good file");
    assert_eq!(
        again.logits(&tokens, false).expect("logits"),
        open(MODEL, &on_cpu())
            .logits(&tokens, false)
            .expect("logits")
    );
}

#[test]
fn errors_name_the_problem_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        (
            "general.architecture",
            Field::String("gemma3".to_owned()),
            "this is a Gemma 3 model; Goldcrest runs",
        ),
        (
            "smollm3.block_count",
            Field::U32(6),
            "tensor `blk.5.attn_norm.weight`: it is missing",
        ),
        (
            "smollm3.block_count",
            Field::U32(0),
            "`smollm3.block_count`: 0 is not between",
        ),
        (
            "smollm3.attention.head_count_kv",
            Field::U32(3),
            "does not divide the 4 query heads",
        ),
        (
            "smollm3.embedding_length",
            Field::U32(512),
            "its shape is 525 × 256 where the metadata require 525 × 512",
        ),
        (
            "smollm3.rope.dimension_count",
            Field::U32(66),
            "`smollm3.rope.dimension_count`",
        ),
        (
            "smollm3.rope.dimension_count",
            Field::U32(31),
            "31 of the 64 values of a head cannot be rotated in pairs",
        ),
        (
            "smollm3.rope.freq_base",
            Field::F32(1.0),
            "1 is not above 1",
        ),
        (
            "smollm3.rope.freq_base",
            Field::F32(f32::NAN),
            "NaN is not a positive number",
        ),
        (
            "tokenizer.ggml.tokens",
            Field::Strings(Vec::new()),
            "`tokenizer.ggml.tokens` is missing or",
        ),
        (
            "smollm3.context_length",
            Field::String("long".to_owned()),
            "`smollm3.context_length` is missing or",
        ),
    ];
    for (key, value, expected) in cases {
        let change = |found: &str, field| if found == key { value.clone() } else { field };
        let error = refusal(&altered(MODEL, folder.path(), change, ""));
        assert!(
            error.contains(expected),
            "`{error}` does not say `{expected}`"
        );
    }
    let error = refusal(&altered(
        MODEL,
        folder.path(),
        |_, field| field,
        "blk.2.ffn_up.weight",
    ));
    assert!(
        error.contains("tensor `blk.2.ffn_up.weight`: it is missing"),
        "{error}"
    );
}

#[test]
fn missing_dimensions_have_defaults_and_all_must_agree() {
    let file = Gguf::open(&fixture(&format!("{MODEL}.gguf"))).expect("the fixture is committed");
    let with = |changed: &str, field: Option<Field>| {
        let fields = file.keys().filter(|key| *key != changed);
        let fields = fields.filter_map(|key| Some((key, Field::from_value(&file.get(key)?)?)));
        let fields = fields.chain(field.map(|field| (changed, field)));
        Config::from_gguf(&Gguf::from_bytes(write::header(fields, &[])).expect("a GGUF"))
    };
    let without = |absent: &str| with(absent, None);
    let config = without("smollm3.attention.head_count_kv").expect("dimensions");
    assert_eq!(config.shape.kv_heads, config.shape.heads);
    let config = without("smollm3.rope.freq_base").expect("dimensions");
    assert_eq!(config.rope.theta.to_bits(), 10_000_f32.to_bits());
    let config = without("smollm3.rope.dimension_count").expect("dimensions");
    assert_eq!(config.shape.rotary, config.shape.head_dim);
    let yarn = |more: &[(&str, Field)]| {
        let fields = file.keys();
        let fields = fields.filter_map(|key| Some((key, Field::from_value(&file.get(key)?)?)));
        let yarn = [
            (
                "smollm3.rope.scaling.type",
                Field::String("yarn".to_owned()),
            ),
            ("smollm3.rope.scaling.factor", Field::F32(2.0)),
        ];
        let fields = fields.chain(yarn).chain(more.iter().cloned());
        let gguf = Gguf::from_bytes(write::header(fields, &[])).expect("a GGUF");
        let config = Config::from_gguf(&gguf).expect("dimensions");
        (config.context, format!("{:?}", config.rope.scaling))
    };
    let (context, usual) = yarn(&[]);
    for part in [
        &*format!("original_context: {context},"),
        "attention_factor: 1.0",
    ] {
        assert!(usual.contains(part), "{usual}");
    }
    let (_, given) = yarn(&[
        (
            "smollm3.rope.scaling.original_context_length",
            Field::U32(512),
        ),
        ("smollm3.rope.scaling.attn_factor", Field::F32(0.5)),
        ("smollm3.rope.scaling.yarn_beta_fast", Field::F32(16.0)),
        ("smollm3.rope.scaling.yarn_beta_slow", Field::F32(2.0)),
    ]);
    for part in [
        "original_context: 512,",
        "attention_factor: 0.5",
        "beta_fast: 16.0",
        "beta_slow: 2.0",
    ] {
        assert!(given.contains(part), "{given}");
    }
    let error = without("smollm3.context_length").expect_err("it must be there");
    assert!(
        error
            .to_string()
            .contains("`smollm3.context_length` is missing")
    );
    let length = Some(Field::U32(2 * config.shape.head_dim as u32));
    let error = with("smollm3.attention.value_length", length).expect_err("another length");
    assert!(error.to_string().contains("differs from the key length"));
}

/// A tiny model with the types of some tensors, by parts of their names, changed to a number.
fn retyped(folder: &Path, part: &str, ty: u32) -> std::path::PathBuf {
    let model = fixture(&format!("{MODEL}.gguf"));
    let gguf = Gguf::open(&model).expect("the fixture is committed");
    let mut image = fs::read(&model).expect("the fixture is committed");
    for tensor in gguf.tensors().iter().filter(|it| it.name.contains(part)) {
        let name = tensor.name.as_bytes();
        let mut length = (name.len() as u64).to_le_bytes().to_vec();
        length.extend(name);
        let at = image.windows(length.len()).position(|it| it == length);
        let ty_at = at.expect("it is described") + length.len() + 4 + 8 * tensor.dims.len();
        image[ty_at..ty_at + 4].copy_from_slice(&ty.to_le_bytes());
    }
    let path = folder.join("retyped.gguf");
    fs::write(&path, image).expect("written");
    path
}

#[test]
fn a_type_that_cannot_be_read_is_named_and_the_rest_of_the_file_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    for (part, tensor) in [
        ("ffn_down", "blk.0.ffn_down.weight"),
        ("token_embd", "token_embd.weight"),
    ] {
        for (ty, name) in [
            (21, "IQ3_S"),
            (22, "IQ2_S"),
            (35, "TQ2_0"),
            (39, "MXFP4"),
            (777, "777"),
        ] {
            let path = retyped(folder.path(), part, ty);
            let error = refusal(&path);
            assert!(
                error.starts_with(&format!(
                    "tensor `{tensor}`: its type {name} is not supported; get"
                )),
                "{error}"
            );
            assert!(error.contains("Q4_K_M"), "{error}");
            assert_eq!(
                ModelHeader::open(&path)
                    .err()
                    .map(|error| error.to_string()),
                Some(error.clone())
            );
            let found = Inspection::of(&path, None).expect("a GGUF file");
            let whole = Inspection::of(&fixture(&format!("{MODEL}.gguf")), None);
            let whole = whole.expect("a GGUF file");
            assert_eq!(found.problem, Some(error));
            assert_eq!(found.metadata, whole.metadata);
            assert_eq!(found.parameters, whole.parameters);
            assert_eq!(found.tensors.len(), whole.tensors.len());
            let of_type = found.tensors.iter().filter(|it| it.ty == name);
            assert!(of_type.clone().all(|it| it.name.contains(part)));
            assert_eq!(of_type.count(), found.types[name].tensors);
            let sizes = |it: &Inspection| it.types.values().map(|it| it.bytes).sum::<usize>();
            assert!(
                sizes(&found) >= sizes(&whole),
                "padding aside, as many bytes"
            );
            assert!(found.model.is_some());
        }
    }
}

#[test]
fn an_inspection_counts_tensors_of_any_declared_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let specs = ["a", "b", "c"].map(|name| TensorSpec {
        name: name.to_owned(),
        ty: kernels::BlockType::F32,
        dims: vec![8],
        len: 32,
    });
    let mut image = write::header([], &specs);
    for name in [b"a\x01\0\0\0", b"b\x01\0\0\0", b"c\x01\0\0\0"] {
        let at = image
            .windows(5)
            .position(|it| it == name)
            .expect("it is described")
            + 5;
        image[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        image[at + 8..at + 12].copy_from_slice(&21u32.to_le_bytes());
    }
    image.resize(image.len() + 96, 0);
    let path = folder.path().join("any.gguf");
    fs::write(&path, image).expect("written");
    let found = Inspection::of(&path, None).expect("a GGUF file");
    assert_eq!(
        (found.parameters, found.types["IQ3_S"].bytes),
        (u64::MAX, 96)
    );
}

/// A model needs neither a further tensor nor a name.
#[test]
fn what_no_model_needs_does_not_decide() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = fixture(&format!("{MODEL}.gguf"));
    let gguf = Gguf::open(&model).expect("the fixture is committed");
    let mut specs: Vec<TensorSpec> = gguf.tensors().iter().map(spec_of).collect();
    specs.push(TensorSpec {
        name: "rope_freqs.weight".to_owned(),
        ty: kernels::BlockType::F32,
        dims: vec![256],
        len: 136,
    });
    let fields = gguf.stored_fields().into_iter().map(|(key, value)| {
        let mut value = value.to_vec();
        if key == "general.name" {
            let text = b"bad \xff\xfe\n\x1b[2J\xe2\x80\xaename";
            value = 8u32.to_le_bytes().to_vec();
            value.extend((text.len() as u64).to_le_bytes());
            value.extend(text);
        }
        (key, Field::Stored(value))
    });
    let mut image = write::header(fields, &specs);
    let last = image.windows(17).rposition(|it| it == b"rope_freqs.weight");
    let ty_at = last.expect("it is described") + 17 + 4 + 8;
    image[ty_at..ty_at + 4].copy_from_slice(&21u32.to_le_bytes());
    for tensor in gguf.tensors() {
        let stored = gguf.tensor(&tensor.name).expect("it is listed").bytes;
        image.extend_from_slice(&stored.read().expect("it can be read"));
        image.resize(image.len() + write::padding(tensor.data.len()), 0);
    }
    image.resize(image.len() + 160, 0);
    let path = folder.path().join("more.gguf");
    fs::write(&path, image).expect("written");
    let name = "bad \u{fffd}\u{fffd}\\n\\u{1b}[2J\\u{202e}name";
    assert_eq!(ModelHeader::open(&path).expect("it opens").name, name);
    let file = ModelFile::open(&path).expect("it opens");
    assert_eq!(file.summary().name, name);
    let tokens = [1, 2, 3];
    let mut engine = Engine::open(&path, &on_cpu(), &mut |_| {}).expect("it opens");
    let expected = open(MODEL, &on_cpu())
        .logits(&tokens, true)
        .expect("logits");
    assert!(engine.logits(&tokens, true).expect("logits") == expected);
    let found = Inspection::of(&path, None).expect("a GGUF file");
    assert_eq!((found.problem, found.types["IQ3_S"].tensors), (None, 1));
    let shown = found.metadata["general.name"].as_str().expect("a text");
    assert!(
        shown.contains("name") && shown.contains("not UTF-8"),
        "{shown}"
    );
}

#[test]
fn a_vocabulary_without_types_of_tokens_is_refused() {
    let file = Gguf::open(&fixture(&format!("{MODEL}.gguf"))).expect("the fixture is committed");
    let fields = file
        .keys()
        .filter(|key| *key != "tokenizer.ggml.token_type");
    let fields = fields.filter_map(|key| Some((key, Field::from_value(&file.get(key)?)?)));
    let file = Gguf::from_bytes(write::header(fields, &[])).expect("a GGUF");
    let error = ModelFile::of_gguf(file)
        .err()
        .expect("it is refused")
        .to_string();
    assert!(
        error.contains("control tokens (`tokenizer.ggml.token_type`)"),
        "{error}"
    );
}

#[test]
fn an_inspection_truncates_long_lists() {
    let found = Inspection::of(&fixture(&format!("{MODEL}.gguf")), None).expect("a GGUF file");
    let tokens = &found.metadata["tokenizer.ggml.tokens"];
    assert_eq!(tokens["length"], 525);
    assert_eq!(tokens["first"].as_array().map(Vec::len), Some(8));
}

#[test]
fn a_truncated_file_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = fs::read(fixture(&format!("{MODEL}.gguf"))).expect("the fixture is committed");
    let path = folder.path().join("half.gguf");
    fs::write(&path, &whole[..whole.len() / 2]).expect("the folder can be written to");
    assert!(refusal(&path).contains("incomplete"));
    fs::write(&path, "").expect("the folder can be written to");
    refusal(&path);
    refusal(&folder.path().join("no such file"));
}

#[test]
fn an_inspection_describes_the_model_of_a_file() {
    let found = Inspection::of(&fixture("tiny-yarn-q8_0.gguf"), Some(100)).expect("a GGUF file");
    let model = found.model.expect("a SmolLM3 file");
    let json = serde_json::to_string(&model).expect("plain data");
    let start = r#"{"layers":5,"embedding":256,"feed_forward":768,"heads":4,"kv_heads":1,"head_dim":64,"vocab":525,"trained_context":"#;
    assert!(json.starts_with(start), "{json}");
    assert_eq!(
        (found.problem, model.shape.layers, model.tied_head),
        (None, 5, true)
    );
    assert_eq!(model.layers_without_rope, [3]);
    assert_eq!(model.rope_scaling, "yarn 2 from 64");
    // 5 layers × keys and values × 1 head × 64 × 2 bytes × 100 tokens.
    assert_eq!(model.kv_bytes["f16"], 128_000);
    assert_eq!(found.types["Q8_0"].tensors, 36);
}

#[test]
fn an_unknown_gpu_is_rejected() {
    let options = LoadOptions {
        placement: Placement::Gpu(GpuPlacement {
            id: Some("none".to_owned()),
            software: true,
            matrices: true,
            min_layers: 1,
        }),
        ..on_cpu()
    };
    let opened = Engine::open(&fixture(&format!("{MODEL}.gguf")), &options, &mut |_| {});
    let Some(OpenError::Gpu(rejection @ GpuRejection::NotOpened(_))) = opened.err() else {
        panic!("no GPU has this name");
    };
    assert!(!rejection.is_fault(), "{rejection}");
}

#[test]
fn progress_rises_to_the_end() {
    let mut progress = Vec::new();
    let path = fixture(&format!("{MODEL}.gguf"));
    Engine::open(&path, &on_cpu(), &mut |part| progress.push(part)).expect("the fixture opens");
    // 9 tensors for each of 5 layers, the table and the last norm.
    assert_eq!((progress.len(), progress.last()), (47, Some(&1.0)));
    assert!(progress[0] > 0.0 && progress.is_sorted(), "{progress:?}");
}

#[test]
fn the_fingerprint_is_of_the_whole_header_and_the_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let fingerprint = |path: &Path| {
        let file = ModelFile::open(path).expect("a good file");
        file.summary().fingerprint.clone()
    };
    let original = fixture(&format!("{MODEL}.gguf"));
    let first = fingerprint(&original);
    assert!(first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let longer = folder.path().join("longer.gguf");
    let mut bytes = fs::read(&original).expect("the fixture is committed");
    bytes.push(0);
    fs::write(&longer, &bytes).expect("the folder can be written to");
    assert_ne!(fingerprint(&longer), first);
    bytes.pop();
    fs::write(&longer, &bytes).expect("the folder can be written to");
    assert_eq!(fingerprint(&longer), first);
    let same = fingerprint(&altered(MODEL, folder.path(), |_, field| field, ""));
    let renamed = |key: &str, field| match key {
        "general.name" => Field::String("Another".to_owned()),
        _ => field,
    };
    assert_ne!(
        fingerprint(&altered(MODEL, folder.path(), renamed, "")),
        same
    );
}

//! Inputs that are truncated, foreign or false: each is refused in a sentence that names the file and its fault, and no
//! file is left.

use std::fs;
use std::path::Path;

use candle_core::DType;
use engine::gguf::write::{self, Field};
use kernels::BlockType;
use quantize::FileType;
use serde_json::{Value, json};

use crate::models::{Model, ODD, WHOLE, f16_file, folder, run, tokenizer_json, write_json};

/// Checks that it is refused for this reason, and that nothing is left beside the input.
#[track_caller]
pub fn refused(folder: &Path, input: &Path, reason: &str) {
    let out = folder.join("out");
    fs::create_dir_all(&out).expect("made");
    let error = run(input, &out.join("out.gguf"), FileType::Q4KM)
        .expect_err("it is refused")
        .to_string();
    assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    assert!(error.len() < 1000, "{error}");
    assert_eq!(
        fs::read_dir(&out).expect("read").count(),
        0,
        "a file is left"
    );
}

#[test]
fn gguf_files_that_are_cut_off_anywhere() {
    let folder = folder();
    let whole = fs::read(f16_file(folder.path(), ODD)).expect("read");
    let cut = folder.path().join("cut.gguf");
    for length in [
        0,
        3,
        8,
        100,
        4000,
        12_000,
        whole.len() / 2,
        whole.len() - 40,
    ] {
        fs::write(&cut, &whole[..length]).expect("written");
        refused(folder.path(), &cut, "cut.gguf: ");
    }
}

#[test]
fn files_that_are_not_models() {
    let folder = folder();
    let input = folder.path().join("text.gguf");
    refused(folder.path(), &input, "text.gguf: cannot read the file");
    fs::write(
        &input,
        "once upon a time there was a small bird of the forests",
    )
    .expect("written");
    refused(folder.path(), &input, "this is not a GGUF file");
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("made");
    refused(folder.path(), &empty, "config.json: cannot be read");
    #[cfg(unix)]
    refused(
        folder.path(),
        Path::new("/dev/zero"),
        "this is not a GGUF file",
    );
}

#[test]
fn gguf_files_of_other_content() {
    let folder = folder();
    let input = folder.path().join("in.gguf");
    let changed = |key: &str, field: Option<Field>| {
        let fields = Model::random(ODD).metadata().into_iter();
        let kept = fields
            .filter(|(other, _)| *other != key)
            .chain(field.map(|field| (key, field)));
        fs::write(&input, write::header(kept, &[])).expect("written");
    };
    changed(
        "general.architecture",
        Some(Field::String("gemma3".to_owned())),
    );
    refused(folder.path(), &input, "this is a Gemma 3 model");
    changed("smollm3.block_count", None);
    refused(folder.path(), &input, "`smollm3.block_count` is missing");
    changed("split.count", Some(Field::U32(2)));
    refused(
        folder.path(),
        &input,
        "this is part 1 of a model in 2 files",
    );
    changed("none", None);
    refused(
        folder.path(),
        &input,
        "tensor `token_embd.weight`: it is missing",
    );

    let output = folder.path().join("q8.gguf");
    run(&f16_file(folder.path(), ODD), &output, FileType::Q8_0).expect("it is quantised");
    refused(
        folder.path(),
        &output,
        "it is stored as Q8_0; only F32, F16 and BF16 are quantised",
    );
}

#[test]
fn weights_that_are_not_finite() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let folder = folder();
        let mut model = Model::random(WHOLE);
        let weights = model
            .weights
            .get_mut("model.layers.1.mlp.up_proj.weight")
            .expect("it has one");
        weights.1[256 * 3 + 5] = value;
        let input = folder.path().join("in.gguf");
        model.write_gguf(&input, BlockType::BF16);
        refused(
            folder.path(),
            &input,
            &format!("tensor `blk.1.ffn_up.weight`: row 3, column 5 is {value}"),
        );
        let input = folder.path().join("model");
        model.write_folder(&input, DType::BF16, 1);
        refused(
            folder.path(),
            &input,
            "tensor `model.layers.1.mlp.up_proj.weight`: row 3, column 5 is ",
        );
    }
}

#[test]
fn weights_that_no_block_can_store() {
    let folder = folder();
    let mut model = Model::random(WHOLE);
    let weights = model
        .weights
        .get_mut("model.layers.1.mlp.up_proj.weight")
        .expect("it has one");
    weights.1[7] = 1e38;
    let input = folder.path().join("in.gguf");
    model.write_gguf(&input, BlockType::F32);
    refused(
        folder.path(),
        &input,
        "tensor `blk.1.ffn_up.weight`: it has values too large for Q4_K",
    );
}

/// Makes a folder of a small model with one JSON file changed.
fn with_json(name: &str, change: impl Fn(&mut Value)) -> tempfile::TempDir {
    let folder = folder();
    Model::random(ODD).write_folder(&folder.path().join("model"), DType::F16, 1);
    let path = folder.path().join("model").join(name);
    let mut json = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    change(&mut json);
    write_json(&path, &json);
    folder
}

#[test]
fn config_json_that_lacks_a_key_or_has_another_value() {
    let required = [
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "max_position_embeddings",
        "rope_theta",
        "rms_norm_eps",
    ];
    for key in required {
        let folder = with_json("config.json", |json| {
            json.as_object_mut().expect("an object").remove(key);
        });
        refused(
            folder.path(),
            &folder.path().join("model"),
            &format!("config.json: `{key}` is missing"),
        );
        let folder = with_json("config.json", |json| json[key] = json!("many"));
        refused(
            folder.path(),
            &folder.path().join("model"),
            &format!("config.json: `{key}` is not a"),
        );
    }
    let values = [
        (
            "model_type",
            json!("gemma3"),
            "`model_type` is `gemma3`; `smollm3`, `llama`, `qwen2`, `qwen3` are supported",
        ),
        (
            "num_hidden_layers",
            json!(-1),
            "`num_hidden_layers` is not a whole number",
        ),
        (
            "num_hidden_layers",
            json!(4_000_000_000u32),
            "`no_rope_layers` is not 0 for every fourth",
        ),
        (
            "num_attention_heads",
            json!(0),
            "`num_attention_heads` is 0",
        ),
        (
            "hidden_size",
            json!(4_000_000),
            "is not between 1 and 131072",
        ),
        ("vocab_size", json!(100), "token 260 is beyond the 100"),
        ("vocab_size", json!(4_000_000_000u32), "more tokens than"),
        ("attention_bias", json!(true), "`attention_bias` is set"),
        (
            "attention_bias",
            json!("no"),
            "`attention_bias` is not true or false",
        ),
        ("hidden_act", json!("gelu"), "`hidden_act` is \"gelu\""),
        (
            "no_rope_layers",
            json!([1, 1, 1, 1, 1]),
            "`no_rope_layers` is not 0 for every fourth",
        ),
        (
            "quantization_config",
            json!({ "quant_method": "gptq" }),
            "quantised already",
        ),
        (
            "rope_scaling",
            json!({ "rope_type": "llama3" }),
            "`rope_scaling.rope_type` is `llama3`",
        ),
        (
            "rope_scaling",
            json!({ "rope_type": "yarn" }),
            "`rope_scaling.factor` is missing",
        ),
        (
            "tie_word_embeddings",
            json!(false),
            "tensor `lm_head.weight`: it is missing",
        ),
    ];
    for (key, value, reason) in values {
        let folder = with_json("config.json", |json| json[key] = value.clone());
        refused(folder.path(), &folder.path().join("model"), reason);
    }
    let folder = with_json("config.json", |json| *json = json!([1, 2]));
    refused(
        folder.path(),
        &folder.path().join("model"),
        "config.json: it is not a JSON object",
    );
}

#[test]
fn tokenizers_that_are_not_smollm3s() {
    let values = [
        (json!({}), "tokenizer.json: "),
        (json!([]), "tokenizer.json: "),
        (
            {
                let mut json = tokenizer_json();
                json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = json!("\\w+");
                json
            },
            "pre-tokenizer",
        ),
        (
            {
                let mut json = tokenizer_json();
                json["model"]["type"] = json!("Unigram");
                json
            },
            "model `Unigram` is not supported",
        ),
        (
            {
                let mut json = tokenizer_json();
                json["added_tokens"][0]["id"] = json!(4_000_000_000u32);
                json
            },
            "tokenizer.json: ",
        ),
    ];
    for (value, reason) in values {
        let folder = with_json("tokenizer.json", |json| *json = value.clone());
        refused(folder.path(), &folder.path().join("model"), reason);
    }
    let folder = with_json("generation_config.json", |json| {
        json["top_k"] = json!("few")
    });
    refused(
        folder.path(),
        &folder.path().join("model"),
        "generation_config.json: `top_k` is not a whole number",
    );
    fs::remove_file(folder.path().join("model/tokenizer.json")).expect("it was there");
    refused(
        folder.path(),
        &folder.path().join("model"),
        "tokenizer.json: cannot be read",
    );
    fs::write(folder.path().join("model/tokenizer.json"), [0xff, 0xfe]).expect("written");
    refused(
        folder.path(),
        &folder.path().join("model"),
        "tokenizer.json: it is not UTF-8 text",
    );
    let nested = "[".repeat(100_000);
    fs::write(folder.path().join("model/tokenizer.json"), nested).expect("written");
    refused(
        folder.path(),
        &folder.path().join("model"),
        "tokenizer.json: ",
    );
}

#[test]
fn a_json_file_that_is_huge_is_not_read() {
    let folder = folder();
    let input = folder.path().join("model");
    Model::random(ODD).write_folder(&input, DType::F16, 1);
    let huge = fs::File::create(input.join("tokenizer.json")).expect("made");
    // Without blocks on the disk.
    huge.set_len(1 << 40).expect("sparse");
    refused(
        folder.path(),
        &input,
        "it has 1099511627776 bytes where 268435456 are the most that are read",
    );
}

/// Makes a safetensors file with this header and this number of bytes after it.
fn safetensors(header: &Value, bytes: usize) -> Vec<u8> {
    let header = header.to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + bytes, 0);
    file
}

#[test]
fn safetensors_whose_headers_lie() {
    let tensor = |dtype: &str, shape: &[u64], offsets: [u64; 2]| json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets });
    let whole = tensor("F16", &[4], [0, 8]);
    let files = [
        (vec![], "this is not a safetensors file"),
        (vec![1, 2, 3], "this is not a safetensors file"),
        (vec![0xff; 64], "this is not a safetensors file"),
        (
            1_000_000u64.to_le_bytes().to_vec(),
            "this is not a safetensors file",
        ),
        (b"\x08\0\0\0\0\0\0\0notjson!".to_vec(), "damaged header"),
        (
            safetensors(&json!({ "a": whole }), 7),
            "describes 8 bytes of tensors, and 7 are there",
        ),
        (
            safetensors(&json!({ "a": whole }), 9),
            "describes 8 bytes of tensors, and 9 are there",
        ),
        (
            safetensors(&json!({ "a": tensor("F16", &[4], [0, 6]) }), 6),
            "damaged header",
        ),
        (
            safetensors(&json!({ "a": tensor("F16", &[4], [8, 0]) }), 8),
            "damaged header",
        ),
        (
            safetensors(
                &json!({ "a": tensor("F16", &[u64::MAX, u64::MAX], [0, 8]) }),
                8,
            ),
            "damaged header",
        ),
        (
            safetensors(&json!({ "a": tensor("F99", &[4], [0, 8]) }), 8),
            "damaged header",
        ),
        (
            safetensors(&json!({ "a": whole, "b": whole }), 8),
            "damaged header",
        ),
        (
            safetensors(&json!({ "a": tensor("I8", &[8], [0, 8]) }), 8),
            "tensor `a`: it is stored as I8",
        ),
        (
            safetensors(&json!({ "a": whole }), 8),
            "tensor `model.embed_tokens.weight`: it is missing",
        ),
        (
            safetensors(&json!({ "model.embed_tokens.weight": whole }), 8),
            "its shape is [4] where config.json makes it [262, 160]",
        ),
    ];
    let folder = folder();
    let input = folder.path().join("model");
    Model::random(ODD).write_folder(&input, DType::F16, 1);
    for (bytes, reason) in files {
        fs::write(input.join("model.safetensors"), bytes).expect("written");
        refused(folder.path(), &input, reason);
    }
    fs::remove_file(input.join("model.safetensors")).expect("it was there");
    refused(
        folder.path(),
        &input,
        "no model*.safetensors is in this folder",
    );
    fs::create_dir(input.join("model.safetensors")).expect("made");
    refused(
        folder.path(),
        &input,
        "model.safetensors: this is not a file",
    );
}

#[test]
fn tensors_that_smollm3_does_not_have() {
    let folder = folder();
    let input = folder.path().join("model");
    let mut model = Model::random(ODD);
    let bias = "model.layers.0.self_attn.q_proj.bias";
    model
        .weights
        .insert(bias.to_owned(), (vec![160], vec![0.0; 160]));
    model.write_folder(&input, DType::F16, 1);
    refused(
        folder.path(),
        &input,
        &format!("tensor `{bias}`: `smollm3` has no such tensor"),
    );
}

#[test]
fn shards_that_are_missing_or_lie_elsewhere() {
    let made = || {
        let folder = folder();
        Model::random(ODD).write_folder(&folder.path().join("model"), DType::F16, 3);
        folder
    };
    let folder = made();
    let input = folder.path().join("model");
    fs::remove_file(input.join("model-00002-of-00003.safetensors")).expect("it was there");
    refused(
        folder.path(),
        &input,
        "model-00002-of-00003.safetensors: cannot be read",
    );

    let folder = made();
    let input = folder.path().join("model");
    fs::copy(
        input.join("model-00001-of-00003.safetensors"),
        input.join("model-00002-of-00003.safetensors"),
    )
    .expect("copied");
    refused(
        folder.path(),
        &input,
        "it is not in this file, where model.safetensors.index.json has it",
    );

    let indexes = [
        (json!({}), "model.safetensors.index.json: "),
        (json!({ "weight_map": {} }), "`weight_map` is empty"),
        (
            json!({ "weight_map": { "a": "../elsewhere.safetensors" } }),
            "which is not a file of this folder",
        ),
        (
            json!({ "weight_map": { "a": "/etc/passwd" } }),
            "which is not a file of this folder",
        ),
        (
            json!({ "weight_map": { "a": "" } }),
            "which is not a file of this folder",
        ),
    ];
    for (index, reason) in indexes {
        write_json(&input.join("model.safetensors.index.json"), &index);
        refused(folder.path(), &input, reason);
    }
    // Without an index all files are taken, and two of them have the same tensors now.
    fs::remove_file(input.join("model.safetensors.index.json")).expect("it was there");
    refused(folder.path(), &input, "it is in another file too");
}

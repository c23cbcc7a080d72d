//! Folders of each architecture: what the engine computes from the file against candle-transformers on the folder itself.

use std::fs;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{llama, qwen2, qwen3};
use engine::{Gguf, ModelFile};
use quantize::FileType;
use serde_json::{Value, json};

use crate::models::{
    Model, ODD, WHOLE, distance, folder, gaussian, logits, run, tokenizer_json, tokens, write_json,
};

/// Qwen's split into words.
const QWEN_SPLIT: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Adds vectors of this length to each layer.
fn add(model: &mut Model, name: &str, length: usize, mean: f32) {
    let mut seed = 11;
    for layer in 0..model.dimensions.layers {
        let values = (0..length).map(|_| {
            let value = mean + 0.125 * gaussian(&mut seed);
            half::bf16::from_f32(value).to_f32()
        });
        let name = format!("model.layers.{layer}.{name}");
        model.weights.insert(name, (vec![length], values.collect()));
    }
}

/// A model of this architecture, with its `config.json`.
fn made(architecture: &str) -> (Model, Value) {
    let mut model = Model::random(if architecture == "llama" { ODD } else { WHOLE });
    let it = model.dimensions;
    let head_dim = it.embedding / it.heads;
    let mut config = json!({
        "model_type": architecture,
        "vocab_size": it.vocab,
        "hidden_size": it.embedding,
        "intermediate_size": it.feed_forward,
        "num_hidden_layers": it.layers,
        "num_attention_heads": it.heads,
        "num_key_value_heads": it.kv_heads,
        "max_position_embeddings": 512,
        "tie_word_embeddings": true,
        "rope_theta": 10_000.0,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "eos_token_id": 260,
    });
    match architecture {
        "llama" => {
            config["rope_scaling"] = json!({
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            });
        }
        "qwen2" => {
            for (part, heads) in [("q", it.heads), ("k", it.kv_heads), ("v", it.kv_heads)] {
                let name = format!("self_attn.{part}_proj.bias");
                add(&mut model, &name, heads * head_dim, 0.0);
            }
        }
        "qwen3" => {
            for part in ["q", "k"] {
                add(
                    &mut model,
                    &format!("self_attn.{part}_norm.weight"),
                    head_dim,
                    1.0,
                );
            }
            config["head_dim"] = json!(head_dim);
            config["attention_bias"] = json!(false);
        }
        other => panic!("{other} is no architecture of these tests"),
    }
    if architecture != "llama" {
        config["sliding_window"] = json!(512);
        config["use_sliding_window"] = json!(false);
        config["max_window_layers"] = json!(it.layers);
    }
    (model, config)
}

fn write(folder: &Path, model: &Model, config: &Value) {
    model.write_folder(folder, DType::BF16, 1);
    write_json(&folder.join("config.json"), config);
    if config["model_type"] != "llama" {
        let mut tokenizer = tokenizer_json();
        tokenizer["normalizer"] = json!({ "type": "NFC" });
        tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"] = json!({ "Regex": QWEN_SPLIT });
        tokenizer["model"]["ignore_merges"] = json!(false);
        write_json(&folder.join("tokenizer.json"), &tokenizer);
    }
}

/// The logits after these tokens, by candle.
fn candle(folder: &Path, config: &Value, ids: &[u32]) -> Vec<f32> {
    let device = &Device::Cpu;
    let weights = candle_core::safetensors::load(folder.join("model.safetensors"), device);
    let builder = VarBuilder::from_tensors(weights.expect("safetensors"), DType::F32, device);
    let ids = Tensor::new(ids, device).and_then(|ids| ids.unsqueeze(0));
    let ids = ids.expect("ids");
    let logits = match config["model_type"].as_str() {
        Some("llama") => {
            let config: llama::LlamaConfig =
                serde_json::from_value(config.clone()).expect("candle's keys");
            let config = config.into_config(false);
            let cache = llama::Cache::new(false, DType::F32, &config, device);
            let model = llama::Llama::load(builder, &config).expect("its tensors");
            model.forward(&ids, 0, &mut cache.expect("a cache"))
        }
        Some("qwen2") => {
            let config = serde_json::from_value(config.clone()).expect("candle's keys");
            let model = qwen2::ModelForCausalLM::new(&config, builder);
            model.expect("its tensors").forward(&ids, 0)
        }
        _ => {
            let config = serde_json::from_value(config.clone()).expect("candle's keys");
            let model = qwen3::ModelForCausalLM::new(&config, builder);
            model.expect("its tensors").forward(&ids, 0)
        }
    };
    let logits = logits.and_then(|logits| logits.flatten_all()?.to_vec1());
    logits.expect("it runs")
}

#[test]
fn candle_computes_the_same_from_the_folder_as_the_engine_from_the_file() {
    for (architecture, split, format) in [
        ("llama", "llama-bpe", "ChatML"),
        ("qwen2", "qwen2", "Qwen 2.5"),
        ("qwen3", "qwen2", "Qwen 3"),
    ] {
        let folder = folder();
        let (model, config) = made(architecture);
        let input = folder.path().join("model");
        write(&input, &model, &config);
        let output = folder.path().join("out.gguf");
        run(&input, &output, FileType::F16).expect("it is converted");

        let gguf = Gguf::open(&output).expect("GGUF");
        assert_eq!(gguf.str("general.architecture"), Some(architecture));
        assert_eq!(gguf.str("tokenizer.ggml.pre"), Some(split));
        let file = ModelFile::open(&output).expect("the engine opens it");
        let chosen = file.summary().protocol.to_string();
        assert!(chosen.starts_with(format), "{architecture}: {chosen}");

        let ours = logits(&output);
        for length in [1, 17, tokens().len()] {
            let theirs = candle(&input, &config, &tokens()[..length]);
            let found = distance(&[ours[length - 1].clone()], &[theirs]);
            assert!(found < 1e-4, "{architecture}, {length} tokens: {found}");
        }
        // Quantised, it opens as well.
        let small = folder.path().join("small.gguf");
        run(&output, &small, FileType::Q8_0).expect("it is quantised");
        let found = distance(&logits(&small), &ours);
        assert!(found < 0.1, "{architecture}: {found}");
    }
}

/// llama.cpp's `rope_freqs.weight` of Llama 3.2: 1 for short wavelengths, the factor for long ones.
#[test]
fn the_frequencies_of_llama_3_are_divided_as_it_was_trained() {
    let folder = folder();
    let (model, mut config) = made("llama");
    config["rope_theta"] = json!(500_000.0);
    config["rope_scaling"]["factor"] = json!(32.0);
    config["rope_scaling"]["original_max_position_embeddings"] = json!(8192);
    write(folder.path(), &model, &config);
    let output = folder.path().join("out.gguf");
    run(folder.path(), &output, FileType::F16).expect("it is converted");
    let gguf = Gguf::open(&output).expect("GGUF");
    let bytes = gguf.tensor("rope_freqs.weight").expect("it is there").bytes;
    let bytes = bytes.read().expect("read");
    let values = bytes.as_chunks::<4>().0.iter();
    let values: Vec<f32> = values.map(|it| f32::from_le_bytes(*it)).collect();
    assert_eq!(values.len(), 16, "half of a head of 32");
    assert_eq!((values[0], values[15]), (1.0, 32.0));
    assert!(values.is_sorted());
    assert_eq!(gguf.str("llama.rope.scaling.type"), None);
}

#[test]
fn the_split_of_smollm2_is_found() {
    let folder = folder();
    let (model, mut config) = made("llama");
    config["rope_scaling"] = Value::Null;
    write(folder.path(), &model, &config);
    let mut tokenizer = tokenizer_json();
    tokenizer["pre_tokenizer"]["pretokenizers"] = json!([
        { "type": "Digits", "individual_digits": true },
        { "type": "ByteLevel", "add_prefix_space": false, "use_regex": true },
    ]);
    write_json(&folder.path().join("tokenizer.json"), &tokenizer);
    let output = folder.path().join("out.gguf");
    run(folder.path(), &output, FileType::Q8_0).expect("it is converted");
    let gguf = Gguf::open(&output).expect("GGUF");
    assert_eq!(gguf.str("tokenizer.ggml.pre"), Some("smollm"));

    tokenizer["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = json!(false);
    write_json(&folder.path().join("tokenizer.json"), &tokenizer);
    fs::remove_file(&output).expect("it was there");
    let refused = run(folder.path(), &output, FileType::Q8_0).map(|_| ());
    let refused = refused.expect_err("an unknown split").to_string();
    assert!(refused.contains("pre-tokenizer"), "{refused}");
}

#[test]
fn what_an_architecture_lacks_or_does_not_have_is_named() {
    let refused = |architecture: &str, change: &dyn Fn(&mut Model, &mut Value)| {
        let folder = folder();
        let (mut model, mut config) = made(architecture);
        change(&mut model, &mut config);
        write(folder.path(), &model, &config);
        let output = folder.path().join("out.gguf");
        let refused = run(folder.path(), &output, FileType::Q8_0).map(|_| ());
        refused.expect_err("refused").to_string()
    };
    let bias = "model.layers.1.self_attn.q_proj.bias";
    let norm = "model.layers.1.self_attn.k_norm.weight";
    for (architecture, name) in [("qwen2", bias), ("qwen3", norm)] {
        let missing = refused(architecture, &|model, _| {
            model.weights.remove(name);
        });
        assert!(
            missing.contains(name) && missing.contains("missing"),
            "{missing}"
        );
        let long = refused(architecture, &|model, _| {
            let (shape, values) = model.weights.get_mut(name).expect("it is there");
            shape[0] += 1;
            values.push(0.0);
        });
        assert!(long.contains(name) && long.contains("shape"), "{long}");
    }
    let foreign = refused("llama", &|model, _| {
        add(model, "self_attn.q_norm.weight", 32, 1.0)
    });
    assert!(foreign.contains("`llama` has no such tensor"), "{foreign}");
    for (key, value) in [
        ("factor", json!(-1.0)),
        ("low_freq_factor", json!("low")),
        ("high_freq_factor", json!(0.5)),
        ("original_max_position_embeddings", Value::Null),
        ("rope_type", json!("longrope")),
    ] {
        let found = refused("llama", &|_, config| {
            config["rope_scaling"][key] = value.clone()
        });
        assert!(
            found.contains(&format!("rope_scaling.{key}")),
            "{key}: {found}"
        );
    }
    let found = refused("qwen2", &|_, config| {
        config["rope_scaling"] = json!({ "rope_type": "llama3", "factor": 8.0 });
    });
    assert!(found.contains("rope_scaling.rope_type"), "{found}");
}

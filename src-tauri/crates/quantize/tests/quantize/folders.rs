//! Hugging Face folders against llama.cpp's layout of a GGUF file and against candle-transformers.

use std::fs;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::smol::smollm3::{Config, ModelForCausalLM};
use engine::Gguf;
use kernels::BlockType;
use quantize::FileType;
use serde_json::json;

use crate::models::{
    Model, ODD, TEMPLATE, WHOLE, distance, folder, logits, run, tokens, write_json,
};

/// Returns the tensors of a file, by name.
fn tensors(path: &Path) -> Vec<(String, BlockType, Vec<usize>, Vec<u8>)> {
    let gguf = Gguf::open(path).expect("GGUF");
    let read = |tensor: &engine::gguf::TensorInfo| {
        let view = gguf.tensor(&tensor.name).expect("of the header");
        let bytes = view.bytes.read().expect("read").into_owned();
        (tensor.name.clone(), tensor.ty, tensor.dims.clone(), bytes)
    };
    let mut all: Vec<_> = gguf.tensors().iter().map(read).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn a_folder_becomes_the_file_that_llama_cpp_makes_of_it() {
    for (dtype, shards) in [(DType::BF16, 1), (DType::F16, 3), (DType::F32, 2)] {
        let folder = folder();
        let model = Model::random(WHOLE);
        let input = folder.path().join("SmolLM3-3B");
        model.write_folder(&input, dtype, shards);
        let (output, direct) = (
            folder.path().join("out.gguf"),
            folder.path().join("direct.gguf"),
        );
        run(&input, &output, FileType::F16).expect("it is converted");
        model.write_gguf(&direct, BlockType::F16);
        assert!(tensors(&output) == tensors(&direct), "{dtype:?}, {shards}");
    }
}

#[test]
fn candle_transformers_computes_the_same_from_the_folder_as_the_engine_from_the_file() {
    for dimensions in [WHOLE, ODD] {
        let folder = folder();
        let model = Model::random(dimensions);
        let input = folder.path().join("model");
        model.write_folder(&input, DType::BF16, 1);
        let output = folder.path().join("out.gguf");
        run(&input, &output, FileType::F16).expect("it is converted");

        let config: Config = serde_json::from_value(model.config()).expect("candle's keys");
        let weights = candle_core::safetensors::load(input.join("model.safetensors"), &Device::Cpu);
        let builder =
            VarBuilder::from_tensors(weights.expect("safetensors"), DType::F32, &Device::Cpu);
        let mut theirs = ModelForCausalLM::new(&config, builder).expect("its tensors");
        let ours = logits(&output);
        for length in [1, 17, tokens().len()] {
            theirs.clear_kv_cache();
            let ids =
                Tensor::new(&tokens()[..length], &Device::Cpu).and_then(|ids| ids.unsqueeze(0));
            let last = theirs
                .forward(&ids.expect("ids"), 0)
                .and_then(|it| it.flatten_all()?.to_vec1());
            let found = distance(&[ours[length - 1].clone()], &[last.expect("it runs")]);
            assert!(found < 1e-4, "{length} tokens: {found}");
        }
    }
}

#[test]
fn the_metadata_are_those_of_llama_cpps_converter() {
    let folder = folder();
    let input = folder.path().join("SmolLM3-3B-Base");
    Model::random(WHOLE).write_folder(&input, DType::BF16, 2);
    let output = folder.path().join("out.gguf");
    run(&input, &output, FileType::Q8_0).expect("it is converted");
    let gguf = Gguf::open(&output).expect("GGUF");
    for (key, value) in [
        ("general.architecture", "smollm3"),
        ("general.type", "model"),
        ("general.name", "SmolLM3 3B Base"),
        ("general.basename", "SmolLM3"),
        ("general.finetune", "Base"),
        ("general.size_label", "3B"),
        ("tokenizer.ggml.model", "gpt2"),
        ("tokenizer.ggml.pre", "smaug-bpe"),
        ("tokenizer.chat_template", TEMPLATE),
    ] {
        assert_eq!(gguf.str(key), Some(value), "{key}");
    }
    for (key, value) in [
        ("general.file_type", 7),
        ("general.quantization_version", 2),
        ("general.sampling.top_k", 20),
        ("smollm3.block_count", 8),
        ("smollm3.context_length", 512),
        ("smollm3.embedding_length", 256),
        ("smollm3.feed_forward_length", 512),
        ("smollm3.attention.head_count", 4),
        ("smollm3.attention.head_count_kv", 2),
        ("smollm3.rope.dimension_count", 64),
        ("smollm3.vocab_size", 264),
        ("tokenizer.ggml.bos_token_id", 258),
        ("tokenizer.ggml.eos_token_id", 260),
        ("tokenizer.ggml.padding_token_id", 260),
    ] {
        assert_eq!(gguf.u32(key), Some(value), "{key}");
    }
    for (key, value) in [
        ("general.sampling.temp", 0.6),
        ("general.sampling.top_p", 0.95),
        ("smollm3.rope.freq_base", 5_000_000.0),
        ("smollm3.attention.layer_norm_rms_epsilon", 1e-6),
    ] {
        assert_eq!(gguf.f32(key), Some(value), "{key}");
    }
    assert_eq!(gguf.bool("tokenizer.ggml.add_bos_token"), Some(false));
    let tokens = gguf.strings("tokenizer.ggml.tokens").expect("tokens");
    assert_eq!(
        tokens[256..],
        [
            "<think>",
            "</think>",
            "<|end_of_text|>",
            "<|im_start|>",
            "<|im_end|>",
            "[PAD261]",
            "[PAD262]",
            "[PAD263]"
        ]
    );
    let kinds = gguf.i32s("tokenizer.ggml.token_type").expect("kinds");
    assert_eq!(kinds[255..], [1, 4, 4, 3, 3, 3, 5, 5, 5]);
}

#[test]
fn yarn_and_an_untied_head_are_converted() {
    let folder = folder();
    let mut model = Model::random(WHOLE);
    let head = model.weights["model.embed_tokens.weight"].clone();
    model.weights.insert("lm_head.weight".to_owned(), head);
    model.write_folder(folder.path(), DType::BF16, 1);
    let mut config = model.config();
    config["tie_word_embeddings"] = json!(false);
    config["rope_scaling"] =
        json!({ "rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 256 });
    write_json(&folder.path().join("config.json"), &config);
    let output = folder.path().join("out.gguf");
    let report = run(folder.path(), &output, FileType::Q4KM).expect("it is converted");
    let ty = |name: &str| {
        report
            .tensors
            .iter()
            .find(|tensor| tensor.name == name)
            .map(|tensor| tensor.ty)
    };
    assert_eq!(
        (ty("output.weight"), ty("token_embd.weight")),
        (Some("Q6_K"), Some("Q4_K"))
    );
    let gguf = Gguf::open(&output).expect("GGUF");
    assert_eq!(gguf.str("smollm3.rope.scaling.type"), Some("yarn"));
    assert_eq!(gguf.f32("smollm3.rope.scaling.factor"), Some(2.0));
    assert_eq!(
        gguf.u32("smollm3.rope.scaling.original_context_length"),
        Some(256)
    );
    assert_eq!(logits(&output).len(), tokens().len());
}

#[test]
fn templates_are_found_wherever_a_folder_has_them() {
    let made = |change: &dyn Fn(&Path)| {
        let folder = folder();
        Model::random(ODD).write_folder(folder.path(), DType::BF16, 1);
        change(folder.path());
        let output = folder.path().join("out.gguf");
        run(folder.path(), &output, FileType::Q8_0).expect("it is converted");
        let gguf = Gguf::open(&output).expect("GGUF");
        let text = |key: &str| gguf.str(key).map(str::to_owned);
        (
            text("tokenizer.chat_template"),
            text("tokenizer.chat_template.tools"),
        )
    };
    let settings = |value: serde_json::Value| {
        move |folder: &Path| write_json(&folder.join("tokenizer_config.json"), &value)
    };
    let one = settings(json!({ "chat_template": "one" }));
    assert_eq!(made(&one), (Some("one".to_owned()), None));
    let several = settings(
        json!({ "chat_template": [{ "name": "default", "template": "a" }, { "name": "tools", "template": "b" }] }),
    );
    assert_eq!(made(&several), (Some("a".to_owned()), Some("b".to_owned())));
    let none =
        |folder: &Path| fs::remove_file(folder.join("chat_template.jinja")).expect("it was there");
    assert_eq!(made(&none), (None, None));
}

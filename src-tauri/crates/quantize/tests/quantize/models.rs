//! A small SmolLM3 of random weights, as a Hugging Face folder and as a GGUF file.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use candle_core::{DType, Device, Tensor};
use engine::gguf::write::{self, Field, TensorSpec};
use engine::{Engine, KvType, LoadOptions, Tokenizer};
use half::{bf16, f16};
use kernels::BlockType;
use quantize::{FileType, QuantizeError, QuantizeReport, QuantizeRequest, quantize};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Llama 3's split into words.
const SPLIT: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
pub const TEMPLATE: &str = "{% for m in messages %}{{ m.content }}{% endfor %}";
const SPECIALS: [(&str, bool); 5] = [
    ("<think>", false),
    ("</think>", false),
    ("<|end_of_text|>", true),
    ("<|im_start|>", true),
    ("<|im_end|>", true),
];

/// Dimensions of a model.
#[derive(Clone, Copy)]
pub struct Dimensions {
    pub layers: usize,
    pub embedding: usize,
    pub feed_forward: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub vocab: usize,
}

/// Rows of whole super-blocks.
pub const WHOLE: Dimensions = Dimensions {
    layers: 8,
    embedding: 256,
    feed_forward: 512,
    heads: 4,
    kv_heads: 2,
    vocab: 264,
};

/// Rows that only blocks of 32 divide.
pub const ODD: Dimensions = Dimensions {
    layers: 5,
    embedding: 160,
    feed_forward: 256,
    heads: 5,
    kv_heads: 1,
    vocab: 262,
};

/// The weights, by transformers' names; `[rows, cols]`, or `[cols]` for norms.
pub struct Model {
    pub dimensions: Dimensions,
    pub weights: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Model {
    /// Random weights with outliers, on the grid of F16 and BF16.
    pub fn random(dimensions: Dimensions) -> Model {
        let Dimensions {
            layers,
            embedding: e,
            feed_forward: f,
            heads,
            kv_heads,
            vocab,
        } = dimensions;
        let kv = e / heads * kv_heads;
        let mut shapes = vec![
            ("model.embed_tokens.weight".to_owned(), vec![vocab, e]),
            ("model.norm.weight".to_owned(), vec![e]),
        ];
        for layer in 0..layers {
            let parts = [
                ("input_layernorm", vec![e]),
                ("self_attn.q_proj", vec![e, e]),
                ("self_attn.k_proj", vec![kv, e]),
                ("self_attn.v_proj", vec![kv, e]),
                ("self_attn.o_proj", vec![e, e]),
                ("post_attention_layernorm", vec![e]),
                ("mlp.gate_proj", vec![f, e]),
                ("mlp.up_proj", vec![f, e]),
                ("mlp.down_proj", vec![e, f]),
            ];
            shapes.extend(
                parts.map(|(name, shape)| (format!("model.layers.{layer}.{name}.weight"), shape)),
            );
        }
        let mut seed = 7;
        let weights = shapes.into_iter().map(|(name, shape)| {
            let count = shape.iter().product();
            let scale = 1.0 / (e as f32).sqrt();
            let value = |_| match shape.len() {
                1 => 1.0 + 0.1 * gaussian(&mut seed),
                _ => scale * heavy(&mut seed),
            };
            let values: Vec<f32> = (0..count).map(value).collect();
            // BF16 keeps 8 bits, so these values are exact in F16 too.
            let values = values
                .into_iter()
                .map(|value| bf16::from_f32(value).to_f32())
                .collect();
            (name, (shape, values))
        });
        Model {
            dimensions,
            weights: weights.collect(),
        }
    }

    pub fn config(&self) -> Value {
        let it = self.dimensions;
        let rotates: Vec<u8> = (0..it.layers)
            .map(|layer| u8::from((layer + 1) % 4 != 0))
            .collect();
        json!({
            "architectures": ["SmolLM3ForCausalLM"],
            "model_type": "smollm3",
            "vocab_size": it.vocab,
            "hidden_size": it.embedding,
            "intermediate_size": it.feed_forward,
            "num_hidden_layers": it.layers,
            "num_attention_heads": it.heads,
            "num_key_value_heads": it.kv_heads,
            "max_position_embeddings": 512,
            "tie_word_embeddings": true,
            "rope_theta": 5_000_000.0,
            "rope_scaling": null,
            "rms_norm_eps": 1e-6,
            "hidden_act": "silu",
            "attention_bias": false,
            "no_rope_layer_interval": 4,
            "no_rope_layers": rotates,
            "bos_token_id": 258,
            "eos_token_id": 260,
            "torch_dtype": "bfloat16"
        })
    }

    /// Writes a Hugging Face folder with the weights in `shards` files.
    pub fn write_folder(&self, folder: &Path, dtype: DType, shards: usize) {
        fs::create_dir_all(folder).expect("made");
        write_json(&folder.join("config.json"), &self.config());
        write_json(&folder.join("tokenizer.json"), &tokenizer_json());
        let settings = json!({ "eos_token": { "content": "<|im_end|>" }, "pad_token": "<|im_end|>", "bos_token": null });
        write_json(&folder.join("tokenizer_config.json"), &settings);
        fs::write(folder.join("chat_template.jinja"), TEMPLATE).expect("written");
        let sampling = json!({ "temperature": 0.6, "top_p": 0.95, "top_k": 20, "do_sample": true });
        write_json(&folder.join("generation_config.json"), &sampling);
        let names: Vec<&String> = self.weights.keys().collect();
        let mut index = serde_json::Map::new();
        for (shard, names) in names.chunks(names.len().div_ceil(shards)).enumerate() {
            let file = match shards {
                1 => "model.safetensors".to_owned(),
                _ => format!("model-{:05}-of-{shards:05}.safetensors", shard + 1),
            };
            let tensors = names.iter().map(|&name| {
                index.insert(name.clone(), json!(file));
                let (shape, values) = &self.weights[name];
                let tensor = Tensor::from_slice(values, shape.as_slice(), &Device::Cpu);
                (
                    name.clone(),
                    tensor
                        .and_then(|tensor| tensor.to_dtype(dtype))
                        .expect("a tensor"),
                )
            });
            let tensors: HashMap<String, Tensor> = tensors.collect();
            candle_core::safetensors::save(&tensors, folder.join(file)).expect("written");
        }
        if shards > 1 {
            write_json(
                &folder.join("model.safetensors.index.json"),
                &json!({ "weight_map": index }),
            );
        }
    }

    /// Writes a GGUF file with matrices of type `ty`; query and key rows are paired as llama.cpp does it.
    pub fn write_gguf(&self, path: &Path, ty: BlockType) {
        let (mut tensors, mut data) = (Vec::new(), Vec::new());
        for (hf, (shape, values)) in &self.weights {
            let ty = if shape.len() == 1 { BlockType::F32 } else { ty };
            let values = match hf {
                hf if hf.ends_with("q_proj.weight") => self.paired(values, self.dimensions.heads),
                hf if hf.ends_with("k_proj.weight") => {
                    self.paired(values, self.dimensions.kv_heads)
                }
                _ => values.clone(),
            };
            let bytes = floats(ty, &values);
            tensors.push(TensorSpec {
                name: gguf_name(hf),
                ty,
                dims: shape.iter().rev().copied().collect(),
                len: bytes.len(),
            });
            data.push(bytes);
        }
        let mut file = write::header(self.metadata(), &tensors);
        for bytes in data {
            file.extend(&bytes);
            file.extend(vec![0; write::padding(bytes.len())]);
        }
        fs::write(path, file).expect("written");
    }

    /// Permutes `[heads, 2, half, cols]` to `[heads, half, 2, cols]`.
    fn paired(&self, values: &[f32], heads: usize) -> Vec<f32> {
        let (cols, half) = (
            self.dimensions.embedding,
            self.dimensions.embedding / self.dimensions.heads / 2,
        );
        let mut out = Vec::with_capacity(values.len());
        for head in 0..heads {
            for pair in 0..half {
                for part in 0..2 {
                    let row = (head * 2 + part) * half + pair;
                    out.extend(&values[row * cols..(row + 1) * cols]);
                }
            }
        }
        out
    }

    pub fn metadata(&self) -> Vec<(&'static str, Field)> {
        let it = self.dimensions;
        let count = |count: usize| Field::U32(u32::try_from(count).expect("small"));
        let text = |text: &str| Field::String(text.to_owned());
        let mut tokens: Vec<String> = byte_characters().map(String::from).collect();
        tokens.extend(SPECIALS.map(|(text, _)| text.to_owned()));
        tokens.extend((tokens.len()..it.vocab).map(|id| format!("[PAD{id}]")));
        let kinds =
            (0..it.vocab).map(
                |id| match id.checked_sub(256).and_then(|id| SPECIALS.get(id)) {
                    Some((_, true)) => 3,
                    Some((_, false)) => 4,
                    None if id < 256 => 1,
                    None => 5,
                },
            );
        vec![
            ("general.architecture", text("smollm3")),
            ("general.alignment", Field::U32(32)),
            ("general.file_type", Field::U32(0)),
            (
                "general.tags",
                Field::Strings(vec!["a".to_owned(), "b".to_owned()]),
            ),
            ("goldcrest.empty", Field::I32s(Vec::new())),
            ("smollm3.block_count", count(it.layers)),
            ("smollm3.context_length", count(512)),
            ("smollm3.embedding_length", count(it.embedding)),
            ("smollm3.feed_forward_length", count(it.feed_forward)),
            ("smollm3.attention.head_count", count(it.heads)),
            ("smollm3.attention.head_count_kv", count(it.kv_heads)),
            ("smollm3.rope.freq_base", Field::F32(5_000_000.0)),
            ("smollm3.attention.layer_norm_rms_epsilon", Field::F32(1e-6)),
            (
                "smollm3.rope.dimension_count",
                count(it.embedding / it.heads),
            ),
            ("tokenizer.ggml.model", text("gpt2")),
            ("tokenizer.ggml.pre", text("smaug-bpe")),
            ("tokenizer.ggml.tokens", Field::Strings(tokens)),
            ("tokenizer.ggml.token_type", Field::I32s(kinds.collect())),
            ("tokenizer.ggml.merges", Field::Strings(Vec::new())),
            ("tokenizer.ggml.eos_token_id", Field::U32(260)),
        ]
    }
}

/// Returns a tokenizer of single bytes, with SmolLM3's special tokens and its processor.
pub fn tokenizer_json() -> Value {
    let vocab: serde_json::Map<String, Value> = byte_characters()
        .enumerate()
        .map(|(id, c)| (c.to_string(), json!(id)))
        .collect();
    let added = SPECIALS.iter().enumerate().map(|(at, (text, special))| {
        json!({ "id": 256 + at, "content": text, "special": special, "normalized": false })
    });
    json!({
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": null,
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": SPLIT }, "behavior": "Isolated", "invert": false },
            { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false }
        ] },
        "post_processor": { "type": "ByteLevel", "add_prefix_space": true },
        "model": { "type": "BPE", "vocab": vocab, "merges": [], "ignore_merges": true }
    })
}

pub fn write_json(path: &Path, value: &Value) {
    fs::write(path, value.to_string()).expect("written");
}

fn gguf_name(hf: &str) -> String {
    let name = hf.replace("model.layers.", "blk.").replace("model.", "");
    [
        ("embed_tokens", "token_embd"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ]
    .iter()
    .fold(
        if name == "norm.weight" {
            "output_norm.weight".to_owned()
        } else {
            name
        },
        |name, (hf, gguf)| name.replace(hf, gguf),
    )
}

fn floats(ty: BlockType, values: &[f32]) -> Vec<u8> {
    match ty {
        BlockType::F16 => values
            .iter()
            .flat_map(|&value| f16::from_f32(value).to_le_bytes())
            .collect(),
        BlockType::BF16 => values
            .iter()
            .flat_map(|&value| bf16::from_f32(value).to_le_bytes())
            .collect(),
        _ => values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
    }
}

/// Returns the printable characters by which byte-level vocabularies spell bytes.
fn byte_characters() -> impl Iterator<Item = char> {
    let mut others = (0x100..).filter_map(char::from_u32);
    (0u8..=255).map(move |byte| match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        _ => others.next().expect("there are enough"),
    })
}

fn uniform(seed: &mut u64) -> f32 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 40) as f32 / (1u64 << 24) as f32
}

/// Returns the sum of twelve uniform numbers, less its mean.
pub fn gaussian(seed: &mut u64) -> f32 {
    (0..12).map(|_| uniform(seed)).sum::<f32>() - 6.0
}

/// Returns a Gaussian number, but one in a hundred is four times as large, as in trained weights.
pub fn heavy(seed: &mut u64) -> f32 {
    let outlier = if uniform(seed) < 0.01 { 4.0 } else { 1.0 };
    outlier * gaussian(seed)
}

/// Makes a folder for one test.
pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

pub fn request(input: &Path, output: &Path, file_type: FileType) -> QuantizeRequest {
    QuantizeRequest {
        input: input.to_owned(),
        output: output.to_owned(),
        file_type,
        overwrite: false,
        threads: Some(2),
    }
}

/// Quantises without progress or cancelling.
pub fn run(
    input: &Path,
    output: &Path,
    file_type: FileType,
) -> Result<QuantizeReport, QuantizeError> {
    quantize(
        &request(input, output, file_type),
        &mut |_, _, _| {},
        &AtomicBool::new(false),
    )
}

/// Writes the model in F16 to a file of a folder.
pub fn f16_file(folder: &Path, dimensions: Dimensions) -> PathBuf {
    let path = folder.join("f16.gguf");
    Model::random(dimensions).write_gguf(&path, BlockType::F16);
    path
}

/// Returns the logits of every position, with arithmetic in f32.
pub fn logits(path: &Path) -> Vec<Vec<f32>> {
    let options = LoadOptions {
        exact: true,
        kv: KvType::F32,
        threads: Some(2),
        ..LoadOptions::default()
    };
    let mut engine = Engine::open(path, &options, &mut |_| {}).expect("the engine opens it");
    engine.logits(&tokens(), true).expect("logits")
}

pub fn tokens() -> Vec<u32> {
    let json = tokenizer_json().to_string();
    let tokenizer = Tokenizer::from_json(json.as_bytes()).expect("a tokenizer");
    tokenizer.encode(
        "A small bird of the forests, olive above, with a golden crest.",
        false,
    )
}

/// Returns the Euclidean distance over the norm of `exact`.
pub fn distance(ours: &[Vec<f32>], exact: &[Vec<f32>]) -> f64 {
    let (mut error, mut norm) = (0.0, 0.0);
    for (&a, &b) in ours.iter().flatten().zip(exact.iter().flatten()) {
        error += f64::from(a - b).powi(2);
        norm += f64::from(b).powi(2);
    }
    (error / norm).sqrt()
}

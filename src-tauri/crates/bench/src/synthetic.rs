//! Models of random weights with the shape of real ones, for measurements and tests without a file.

use std::io::{self, Write};
use std::sync::Arc;

use engine::gguf::write::{self, Field, TensorSpec};
use engine::gguf::{BlockType, Gguf, GgufError};
use engine::model::architecture::{self, Architecture};
use engine::model::config::Config;
use engine::model::weights::{Tensor, TensorBytes, TensorShape, WeightSource, required_tensors};
use engine::run::random::Random;
use engine::{ModelFile, OpenError};
use half::f16;

/// Makes a model of random weights with the shape named `spec`, such as `smollm3-3b-q4_k_m`. The same seed makes the
/// same weights.
///
/// # Errors
/// Fails if there is no such shape.
pub fn synthetic(spec: &str, seed: u64) -> Result<ModelFile, SyntheticError> {
    let source = Synthetic::new(spec, seed)?;
    let gguf = source.metadata().map_err(OpenError::from)?;
    Ok(ModelFile::from_parts(&gguf, Arc::new(source))?)
}

/// Error of making a synthetic model.
#[derive(Debug, thiserror::Error)]
pub enum SyntheticError {
    /// No model of that name.
    #[error(transparent)]
    Shape(#[from] UnknownShape),
    /// Invalid metadata.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// No synthetic model has this name.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no synthetic model; there are: {names}", names = names())]
pub struct UnknownShape(String);

/// Dimensions of a synthetic model.
struct SyntheticShape {
    name: &'static str,
    architecture: &'static Architecture,
    /// `tokenizer.ggml.pre`.
    split: &'static str,
    layers: u32,
    embedding: u32,
    feed_forward: u32,
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    vocab: u32,
    context: u32,
    rope_theta: f32,
    type_mix: TypeMix,
}

/// Storage types of the tensors.
#[derive(Clone, Copy)]
enum TypeMix {
    /// llama.cpp's Q4_K_M: Q4_K, but Q6_K for the embedding and, in half of the layers, for `attn_v` and `ffn_down`.
    Q4KM,
    /// Q4_1, but Q8_0 for the embedding: what llama.cpp makes of widths that are not multiples of 256.
    Q41,
    /// One type for all matrices.
    Uniform(BlockType),
}

const SMOLLM3: SyntheticShape = SyntheticShape {
    name: "smollm3-3b-q4_k_m",
    architecture: &architecture::SMOLLM3,
    split: "smaug-bpe",
    layers: 36,
    embedding: 2048,
    feed_forward: 11008,
    heads: 16,
    kv_heads: 4,
    head_dim: 128,
    vocab: 128_256,
    context: 65_536,
    rope_theta: 5e6,
    type_mix: TypeMix::Q4KM,
};

const TINY: SyntheticShape = SyntheticShape {
    name: "tiny-q4_k_m",
    layers: 5,
    embedding: 256,
    feed_forward: 512,
    heads: 8,
    kv_heads: 2,
    head_dim: 32,
    vocab: 512,
    context: 2048,
    ..SMOLLM3
};

/// Source: HuggingFaceTB/SmolLM2-135M-Instruct, config.json.
const SMOLLM2: SyntheticShape = SyntheticShape {
    name: "smollm2-135m",
    architecture: &architecture::LLAMA,
    split: "smollm",
    layers: 30,
    embedding: 576,
    feed_forward: 1536,
    heads: 9,
    kv_heads: 3,
    head_dim: 64,
    vocab: 49_152,
    context: 8192,
    rope_theta: 1e5,
    type_mix: TypeMix::Q41,
};

/// Source: meta-llama/Llama-3.2-3B-Instruct, config.json. Its frequency factors change no time.
const LLAMA_3: SyntheticShape = SyntheticShape {
    name: "llama-3.2-3b",
    architecture: &architecture::LLAMA,
    split: "llama-bpe",
    layers: 28,
    embedding: 3072,
    feed_forward: 8192,
    heads: 24,
    kv_heads: 8,
    head_dim: 128,
    vocab: 128_256,
    context: 131_072,
    rope_theta: 5e5,
    type_mix: TypeMix::Q4KM,
};

/// Source: Qwen/Qwen3-4B, config.json.
const QWEN_3: SyntheticShape = SyntheticShape {
    name: "qwen3-4b",
    architecture: &architecture::QWEN3,
    split: "qwen2",
    layers: 36,
    embedding: 2560,
    feed_forward: 9728,
    heads: 32,
    kv_heads: 8,
    head_dim: 128,
    vocab: 151_936,
    context: 40_960,
    rope_theta: 1e6,
    type_mix: TypeMix::Q4KM,
};

const SHAPES: [SyntheticShape; 7] = [
    SMOLLM3,
    SyntheticShape {
        name: "smollm3-3b-q8_0",
        type_mix: TypeMix::Uniform(BlockType::Q8_0),
        ..SMOLLM3
    },
    SMOLLM2,
    LLAMA_3,
    QWEN_3,
    TINY,
    SyntheticShape {
        name: "tiny-q8_0",
        type_mix: TypeMix::Uniform(BlockType::Q8_0),
        ..TINY
    },
];

fn names() -> String {
    SHAPES.map(|shape| shape.name).join(", ")
}

/// A generator of one model's tensors, each generated on request.
pub struct Synthetic {
    shape: SyntheticShape,
    config: Config,
    seed: u64,
}

impl Synthetic {
    /// Returns the model that `spec` names.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn new(spec: &str, seed: u64) -> Result<Synthetic, UnknownShape> {
        let unknown = || UnknownShape(spec.to_owned());
        let shape = SHAPES
            .into_iter()
            .find(|shape| shape.name == spec)
            .ok_or_else(unknown)?;
        let header = header(&shape, &[]);
        let config = Gguf::from_bytes(header)
            .ok()
            .and_then(|gguf| Config::from_gguf(&gguf).ok());
        Ok(Synthetic {
            config: config.ok_or_else(unknown)?,
            shape,
            seed,
        })
    }

    /// Returns a GGUF image with the metadata and no tensors.
    ///
    /// # Errors
    /// Never, as the tests show.
    pub fn metadata(&self) -> Result<Gguf, GgufError> {
        Gguf::from_bytes(header(&self.shape, &[]))
    }

    /// Writes the whole model as a GGUF file, tensor by tensor.
    ///
    /// # Errors
    /// Fails if `out` cannot be written to.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let tensors = required_tensors(&self.config);
        let describe = |tensor: &TensorShape| {
            let ty = self.stored_as(&tensor.name);
            let dims = if tensor.rows == 1 {
                vec![tensor.cols]
            } else {
                vec![tensor.cols, tensor.rows]
            };
            TensorSpec {
                name: tensor.name.clone(),
                ty,
                dims,
                len: tensor.rows * row_bytes(ty, tensor.cols),
            }
        };
        let descriptions: Vec<TensorSpec> = tensors.iter().map(describe).collect();
        out.write_all(&header(&self.shape, &descriptions))?;
        for tensor in &tensors {
            let bytes = self.generate(&tensor.name, tensor.rows, tensor.cols);
            out.write_all(&bytes)?;
            out.write_all(&vec![0; write::padding(bytes.len())])?;
        }
        Ok(())
    }

    fn stored_as(&self, name: &str) -> BlockType {
        if name.ends_with("norm.weight") {
            return BlockType::F32;
        }
        match self.shape.type_mix {
            TypeMix::Uniform(ty) => ty,
            TypeMix::Q41 if layer_of(name).is_none() => BlockType::Q8_0,
            TypeMix::Q41 => BlockType::Q4_1,
            TypeMix::Q4KM => match layer_of(name) {
                None => BlockType::Q6K,
                Some(layer_of) => {
                    let sensitive = name.contains("attn_v") || name.contains("ffn_down");
                    let more = use_more_bits(layer_of, self.config.shape.layers);
                    if sensitive && more {
                        BlockType::Q6K
                    } else {
                        BlockType::Q4K
                    }
                }
            },
        }
    }

    fn generate(&self, name: &str, rows: usize, cols: usize) -> Vec<u8> {
        let ty = self.stored_as(name);
        let named = name.bytes().fold(self.seed, |hash, byte| {
            hash.rotate_left(5) ^ u64::from(byte)
        });
        random_blocks(
            ty,
            rows * row_bytes(ty, cols),
            cols,
            &mut Random::new(named),
        )
    }

    fn find(&self, name: &str) -> Option<TensorShape> {
        required_tensors(&self.config)
            .into_iter()
            .find(|tensor| tensor.name == name)
    }
}

impl WeightSource for Synthetic {
    fn shape(&self, name: &str) -> Option<(BlockType, usize, usize)> {
        self.find(name)
            .map(|tensor| (self.stored_as(name), tensor.rows, tensor.cols))
    }

    fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let TensorShape { rows, cols, .. } = self.find(name)?;
        let bytes = TensorBytes::Generated(self.generate(name, rows, cols));
        Some(Tensor {
            ty: self.stored_as(name),
            rows,
            cols,
            bytes,
        })
    }
}

/// Returns the layer of a tensor.
fn layer_of(name: &str) -> Option<usize> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// Implements llama.cpp's `use_more_bits`: the first and last eighth of the layers, and every third between.
fn use_more_bits(layer_of: usize, layers: usize) -> bool {
    let eighth = layers / 8;
    layer_of < eighth || layer_of >= 7 * layers / 8 || (layer_of - eighth) % 3 == 2
}

fn row_bytes(ty: BlockType, cols: usize) -> usize {
    ty.row_bytes(cols).unwrap_or(0)
}

/// Makes random blocks whose values have a standard deviation of about 1/√cols, so that activations neither vanish nor
/// explode.
fn random_blocks(ty: BlockType, len: usize, cols: usize, random: &mut Random) -> Vec<u8> {
    if ty == BlockType::F32 {
        return 1.0f32.to_le_bytes().repeat(len / 4);
    }
    let mut bytes = vec![0u8; len];
    for word in bytes.chunks_mut(8) {
        word.copy_from_slice(&random.bits().to_le_bytes()[..word.len()]);
    }
    // Standard deviation of the integers of a block of random bits.
    let spread = match ty {
        BlockType::Q4K => 250.0,
        BlockType::Q6K => 1370.0,
        BlockType::Q4_1 => 4.6,
        _ => 74.0,
    };
    let scale = 1.0 / (spread * (cols as f32).sqrt());
    let (d, dmin) = (
        f16::from_f32(scale).to_le_bytes(),
        f16::from_f32(7.5 * scale).to_le_bytes(),
    );
    for block in bytes.chunks_exact_mut(ty.block_bytes()) {
        match ty {
            BlockType::Q4K => {
                block[..2].copy_from_slice(&d);
                block[2..4].copy_from_slice(&dmin);
            }
            BlockType::Q4_1 => {
                block[..2].copy_from_slice(&d);
                block[2..4].copy_from_slice(&f16::from_f32(-7.5 * scale).to_le_bytes());
            }
            BlockType::Q6K => block[208..].copy_from_slice(&d),
            _ => block[..2].copy_from_slice(&d),
        }
    }
    bytes
}

/// Makes the header of a file with these tensors.
fn header(shape: &SyntheticShape, tensors: &[TensorSpec]) -> Vec<u8> {
    let (tokens, types) = vocabulary(shape.vocab);
    let text = |text: &str| Field::String(text.to_owned());
    let file_type = match shape.type_mix {
        TypeMix::Q4KM => 15,
        TypeMix::Q41 => 3,
        TypeMix::Uniform(_) => 7,
    };
    let of_model = [
        ("block_count", Field::U32(shape.layers)),
        ("context_length", Field::U32(shape.context)),
        ("embedding_length", Field::U32(shape.embedding)),
        ("feed_forward_length", Field::U32(shape.feed_forward)),
        ("attention.head_count", Field::U32(shape.heads)),
        ("attention.head_count_kv", Field::U32(shape.kv_heads)),
        ("attention.key_length", Field::U32(shape.head_dim)),
        ("attention.value_length", Field::U32(shape.head_dim)),
        ("attention.layer_norm_rms_epsilon", Field::F32(1e-6)),
        ("rope.dimension_count", Field::U32(shape.head_dim)),
        ("rope.freq_base", Field::F32(shape.rope_theta)),
        ("vocab_size", Field::U32(shape.vocab)),
    ]
    .map(|(key, field)| (format!("{}.{key}", shape.architecture.name), field));
    let general = [
        ("general.architecture", text(shape.architecture.name)),
        ("general.name", text(shape.name)),
        ("general.file_type", Field::U32(file_type)),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text(shape.split)),
        ("tokenizer.ggml.tokens", Field::Strings(tokens)),
        ("tokenizer.ggml.token_type", Field::I32s(types)),
        ("tokenizer.ggml.merges", Field::Strings(Vec::new())),
        ("tokenizer.ggml.eos_token_id", Field::U32(shape.vocab - 1)),
        ("tokenizer.ggml.add_bos_token", Field::Bool(false)),
    ];
    let of_model = of_model
        .iter()
        .map(|(key, field)| (key.as_str(), field.clone()));
    write::header(general.into_iter().chain(of_model), tensors)
}

/// Makes one token per byte, fillers, and the special tokens at the end; with GGUF's token types.
fn vocabulary(size: u32) -> (Vec<String>, Vec<i32>) {
    const NORMAL: i32 = 1;
    const CONTROL: i32 = 3;
    const USER_DEFINED: i32 = 4;
    let specials = [
        ("<think>", USER_DEFINED),
        ("</think>", USER_DEFINED),
        ("<|end_of_text|>", CONTROL),
        ("<|im_start|>", CONTROL),
        ("<|im_end|>", CONTROL),
    ];
    let fillers = (256..size as usize - specials.len()).map(|id| format!("[{id}]"));
    let ordinary: Vec<String> = byte_characters().map(String::from).chain(fillers).collect();
    let types = vec![NORMAL; ordinary.len()];
    let (texts, kinds): (Vec<_>, Vec<_>) = specials
        .iter()
        .map(|&(text, kind)| (text.to_owned(), kind))
        .unzip();
    ([ordinary, texts].concat(), [types, kinds].concat())
}

/// Returns GPT-2's printable character for each byte, in the order of the bytes.
pub(crate) fn byte_characters() -> impl Iterator<Item = char> {
    let mut replacements = (0x100..).filter_map(char::from_u32);
    (0u8..=255).map(move |byte| match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        _ => replacements.next().unwrap_or(char::REPLACEMENT_CHARACTER),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::BufWriter;

    use engine::{Engine, LoadOptions};

    use super::*;

    #[test]
    fn a_synthetic_model_is_the_same_in_memory_and_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tiny.gguf");
        let mut file = BufWriter::new(fs::File::create(&path).expect("a file"));
        Synthetic::new("tiny-q4_k_m", 7)
            .expect("a known shape")
            .write(&mut file)
            .expect("it is written");
        file.into_inner()
            .expect("it is written")
            .sync_all()
            .expect("it is written");
        let tokens = [3, 1, 4, 1, 5];
        let logits = |file: Result<ModelFile, OpenError>| {
            let options = LoadOptions::default();
            let mut engine =
                Engine::load(&file.expect("it opens"), &options, &mut |_| {}).expect("it loads");
            engine.logits(&tokens, false).expect("logits")
        };
        let from_file = logits(ModelFile::open(&path));
        assert!(from_file[0].iter().all(|logit| logit.is_finite()));
        assert_eq!(
            from_file,
            logits(Ok(synthetic("tiny-q4_k_m", 7).expect("a known shape")))
        );
        assert_ne!(
            from_file,
            logits(Ok(synthetic("tiny-q4_k_m", 8).expect("a known shape")))
        );
        let unknown = synthetic("gpt-5", 1).err().map(|error| error.to_string());
        assert!(unknown.is_some_and(|error| error.contains("smollm3-3b-q4_k_m")));
    }

    /// Parameters as the publishers state them.
    #[test]
    fn the_shapes_are_those_of_the_published_models() {
        for (name, billions) in [
            ("smollm3-3b-q4_k_m", 3.08),
            ("smollm2-135m", 0.135),
            ("llama-3.2-3b", 3.21),
            ("qwen3-4b", 4.02),
        ] {
            let model = Synthetic::new(name, 0).expect("a known shape");
            let tensors = required_tensors(&model.config);
            let parameters: usize = tensors.iter().map(|it| it.rows * it.cols).sum();
            let found = parameters as f64 / 1e9;
            assert!((found - billions).abs() < 0.01, "{name}: {found}");
        }
    }

    #[test]
    fn a_synthetic_model_of_another_architecture_computes() {
        let tokens = [3, 1, 4, 1, 5];
        let file = synthetic("smollm2-135m", 7).expect("a known shape");
        let options = LoadOptions {
            context: Some(256),
            ..LoadOptions::default()
        };
        let mut engine = Engine::load(&file, &options, &mut |_| {}).expect("it loads");
        let logits = engine.logits(&tokens, false).expect("logits").remove(0);
        let spread = logits.iter().map(|logit| logit * logit).sum::<f32>() / logits.len() as f32;
        assert!(
            spread.is_finite() && spread > 0.01 && spread < 100.0,
            "{spread}"
        );
    }
}

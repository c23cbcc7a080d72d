//! Inspection of a model file: its content, the model that the engine reads from it, and the memory of running it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use gpu::Shape;
use kernels::KvType;
use serde::Serialize;

use crate::context::{Context, kv_bytes_per_token};
use crate::gguf::{Gguf, GgufError, Value, quote};
use crate::model::config::Config;
use crate::model::rope::Scaling;
use crate::model::weights;
use crate::model_file::ModelFile;
use crate::options::LoadOptions;
use crate::summary;

/// The content of a file.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// GGUF version.
    pub version: u32,
    /// Size of the file, or of all files of the model.
    pub file_bytes: u64,
    /// Number of files that the model is in.
    pub files: usize,
    /// Number of weights.
    pub parameters: u64,
    /// Storage type of most weights.
    pub quantisation: String,
    /// Every metadata key with its value. Long text is truncated; a long array has its `first` values and `length`.
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// Tensors and bytes per type.
    pub types: BTreeMap<Cow<'static, str>, TypeTotal>,
    /// Every tensor, in the order of the file; tensors of unsupported types come last.
    pub tensors: Vec<TensorLine>,
    /// The chat format of a supported model, with any uncertainty about it.
    pub chat_format: Option<String>,
    /// The model, if it is a supported one.
    pub model: Option<ModelLine>,
    /// Reason that it cannot run.
    pub problem: Option<String>,
}

/// Totals of the tensors of one type.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct TypeTotal {
    /// Number of tensors.
    pub tensors: usize,
    /// Their size in bytes.
    pub bytes: usize,
}

/// One tensor.
#[derive(Clone, Debug, Serialize)]
pub struct TensorLine {
    /// Its name.
    pub name: String,
    /// Storage type.
    #[serde(rename = "type")]
    pub ty: Cow<'static, str>,
    /// Dimensions, fastest first.
    pub dims: Vec<usize>,
    /// Its size in bytes.
    pub bytes: usize,
}

/// The dimensions in the metadata, and the memory that they need.
#[derive(Clone, Debug, Serialize)]
pub struct ModelLine {
    /// The dimensions.
    #[serde(flatten)]
    pub shape: Shape,
    /// Context length that the model was trained for.
    pub trained_context: usize,
    /// Base of the rotary frequencies.
    pub rope_theta: f32,
    /// `none`, `linear` or `yarn`, with its factor.
    pub rope_scaling: String,
    /// Layers without rotary embedding, from 0.
    pub layers_without_rope: Vec<usize>,
    /// True if the head is tied to the embedding table.
    pub tied_head: bool,
    /// The context for which memory is estimated, in tokens.
    pub context: usize,
    /// The longest context that the model supports.
    pub longest_context: usize,
    /// The context that fits in free memory; 0 if none does.
    pub usable_context: usize,
    /// A note on the usable context.
    pub context_note: Option<String>,
    /// Memory of weights as stored.
    pub weights_bytes: u64,
    /// Memory of the KV cache in bytes, by storage type.
    pub kv_bytes: BTreeMap<&'static str, u64>,
}

impl Inspection {
    /// Inspects the file at `path`; memory is estimated for `context` tokens, else for the trained context.
    ///
    /// # Errors
    /// Fails if it is not a readable GGUF file. An unsupported model is not an error: see `problem`.
    pub fn of(path: &Path, context: Option<usize>) -> Result<Inspection, GgufError> {
        let gguf = Gguf::open(path)?;
        let tensors: Vec<TensorLine> = gguf
            .tensors()
            .iter()
            .map(|tensor| TensorLine {
                name: quote(&tensor.name),
                ty: tensor.ty.name().into(),
                dims: tensor.dims.clone(),
                bytes: tensor.data.len(),
            })
            .chain(gguf.unsupported_tensors().iter().map(|tensor| TensorLine {
                name: quote(&tensor.name),
                ty: tensor.ty.clone(),
                dims: tensor.dims.clone(),
                bytes: tensor.bytes,
            }))
            .collect();
        let mut types = BTreeMap::<_, TypeTotal>::new();
        for tensor in &tensors {
            let total = types.entry(tensor.ty.clone()).or_default();
            total.tensors += 1;
            total.bytes += tensor.bytes;
        }
        let mut inspection = Inspection {
            version: gguf.version(),
            file_bytes: gguf.file_bytes() as u64,
            files: gguf.files().count(),
            parameters: (tensors.iter())
                .map(|tensor| tensor.dims.iter().product::<usize>() as u64)
                .fold(0, u64::saturating_add),
            quantisation: summary::quantisation(&gguf),
            metadata: gguf
                .keys()
                .filter_map(|key| Some((quote(key), shorten(gguf.get(key)?))))
                .collect(),
            types,
            tensors,
            model: Config::from_gguf(&gguf)
                .ok()
                .map(|config| ModelLine::new(&gguf, &config, context)),
            chat_format: None,
            problem: None,
        };
        match ModelFile::of_gguf(gguf) {
            Ok(file) => inspection.chat_format = Some(file.summary().protocol.to_string()),
            Err(error) => inspection.problem = Some(error.to_string()),
        }
        Ok(inspection)
    }
}

impl ModelLine {
    fn new(gguf: &Gguf, config: &Config, context: Option<usize>) -> ModelLine {
        let options = LoadOptions {
            context,
            ..LoadOptions::default()
        };
        let (usable_context, context_note) = match Context::new(config, gguf, &options) {
            Ok(context) => (context.tokens, context.note),
            Err(error) => (0, Some(error.to_string())),
        };
        let config = &config.for_context(usable_context);
        let context = context.unwrap_or(config.context);
        let kv = |ty: KvType| {
            (
                ty.name(),
                kv_bytes_per_token(config, ty).saturating_mul(context as u64),
            )
        };
        ModelLine {
            shape: config.shape.clone(),
            trained_context: config.without_window.unwrap_or(config.context),
            rope_theta: config.rope.theta,
            rope_scaling: match &config.rope.scaling {
                Scaling::Linear { factor: 1.0 } => "none".to_owned(),
                Scaling::Linear { factor } => format!("linear {factor}"),
                Scaling::Yarn(yarn) => {
                    format!("yarn {} from {}", yarn.factor, yarn.original_context)
                }
            },
            layers_without_rope: (0..config.shape.layers)
                .filter(|&layer| !config.shape.rotates(layer))
                .collect(),
            tied_head: gguf.tensor_info("output.weight").is_none(),
            context,
            longest_context: config.longest_context(),
            usable_context,
            context_note,
            weights_bytes: weights::stored_bytes(gguf, config),
            kv_bytes: [KvType::F32, KvType::F16, KvType::Q8_0].map(kv).into(),
        }
    }
}

/// A value for display: long text and arrays are truncated.
fn shorten(value: Value<'_>) -> serde_json::Value {
    const LONGEST: usize = 200;
    match value {
        Value::Unsigned(value) => value.into(),
        Value::Signed(value) => value.into(),
        // Through its text, so that an f32 such as 1e-6 does not show the digits of its f64.
        Value::Float(value) => (value as f32)
            .to_string()
            .parse::<f64>()
            .unwrap_or(value)
            .into(),
        Value::Bool(value) => value.into(),
        Value::String(text) if text.chars().count() <= LONGEST => text.into(),
        Value::String(text) => {
            let start: String = text.chars().take(LONGEST).collect();
            format!("{start}… ({} characters)", text.chars().count()).into()
        }
        Value::NotUtf8(bytes) => {
            let start = &bytes[..bytes.len().min(LONGEST)];
            let start = String::from_utf8_lossy(start);
            format!("{start} ({} bytes that are not UTF-8)", bytes.len()).into()
        }
        Value::Array(array) => {
            let start: Vec<_> = array.iter().take(8).map(shorten).collect();
            if array.len() <= start.len() {
                return start.into();
            }
            serde_json::json!({ "first": start, "length": array.len() })
        }
    }
}

//! Facts about a model for display and for the settings.

use std::collections::BTreeMap;
use std::fmt::Write;

use inference::{
    MIN_P, MIN_TEMPERATURE, Parameter, REPEAT_PENALTY, Sampling, SamplingDefaults, TEMPERATURE,
    TOP_K, TOP_P,
};
use sha2::{Digest, Sha256};

use crate::gguf::{Gguf, Value, file_stem, quote};
use crate::model::config::Config;
use crate::text::protocol::ChosenProtocol;
use crate::text::template::ChatTemplate;

/// Facts about a model.
#[derive(Clone, Debug)]
pub struct ModelSummary {
    /// `general.name`, else the file name.
    pub name: String,
    /// `general.architecture`: `smollm3`.
    pub architecture: String,
    /// The quantisation mix, such as `Q4_K_M`.
    pub quantisation: String,
    /// Number of weights.
    pub parameters: u64,
    /// Size of the file in bytes; 0 for a synthetic model.
    pub file_bytes: u64,
    /// Number of tokens in the vocabulary.
    pub vocab: usize,
    /// Length of the context in use, in tokens.
    pub context_length: usize,
    /// A note for the user on that length: shorter than requested, or longer than trained.
    pub context_note: Option<String>,
    /// True if a longer one is possible on request.
    pub context_can_grow: bool,
    /// Trained context length, in tokens.
    pub trained_context: usize,
    /// The chat format of its prompts.
    pub protocol: ChosenProtocol,
    /// True if its chat format has a thinking that can be switched on and off.
    pub can_think: bool,
    /// True if its prompts can list tools, and its chat format has calls.
    pub can_call_tools: bool,
    /// Sampling defaults of the file, else those recommended for the chat format.
    pub sampling: SamplingDefaults,
    /// Identifies the file: a hash of its header and size. Token ids are valid for one model only.
    pub fingerprint: String,
}

impl ModelSummary {
    pub(crate) fn new(
        gguf: &Gguf,
        config: &Config,
        protocol: ChosenProtocol,
        template: &ChatTemplate,
    ) -> ModelSummary {
        let capabilities = template.capabilities();
        let weights = gguf.tensors().iter();
        let parameters = weights.map(|it| (it.rows() * it.cols()) as u64).sum();
        ModelSummary {
            name: name(gguf),
            architecture: gguf
                .str("general.architecture")
                .unwrap_or_default()
                .to_owned(),
            quantisation: quantisation(gguf),
            parameters,
            file_bytes: gguf.file_bytes() as u64,
            vocab: config.shape.vocab,
            context_length: config.context,
            context_note: None,
            context_can_grow: false,
            trained_context: config.without_window.unwrap_or(config.context),
            protocol,
            can_think: capabilities.thinking,
            can_call_tools: template.can_call_tools(),
            sampling: SamplingDefaults {
                with_thinking: sampling(gguf, protocol.protocol.sampling_of(parameters, true)),
                without_thinking: sampling(gguf, protocol.protocol.sampling_of(parameters, false)),
            },
            fingerprint: fingerprint(gguf),
        }
    }
}

pub(crate) fn name(gguf: &Gguf) -> String {
    let named = gguf
        .str("general.name")
        .filter(|name| !name.trim().is_empty());
    let broken = match gguf.get("general.name") {
        Some(Value::NotUtf8(name)) => Some(String::from_utf8_lossy(name)),
        _ => None,
    };
    let named = named.or(broken.as_deref());
    let file = || file_stem(gguf.path()?);
    quote(named.or_else(file).unwrap_or("unnamed model"))
}

/// The mix of `general.file_type`, else the type of most bytes.
pub(crate) fn quantisation(gguf: &Gguf) -> String {
    let known = match gguf.u32("general.file_type") {
        Some(0) => "F32",
        Some(1) => "F16",
        Some(2) => "Q4_0",
        Some(3) => "Q4_1",
        Some(7) => "Q8_0",
        Some(8) => "Q5_0",
        Some(9) => "Q5_1",
        Some(10) => "Q2_K",
        Some(11) => "Q3_K_S",
        Some(12) => "Q3_K_M",
        Some(13) => "Q3_K_L",
        Some(14) => "Q4_K_S",
        Some(15) => "Q4_K_M",
        Some(16) => "Q5_K_S",
        Some(17) => "Q5_K_M",
        Some(18) => "Q6_K",
        Some(25) => "IQ4_NL",
        Some(30) => "IQ4_XS",
        Some(32) => "BF16",
        _ => {
            let mut bytes = BTreeMap::new();
            for tensor in gguf.tensors() {
                *bytes.entry(tensor.ty.name()).or_insert(0) += tensor.data.len();
            }
            for tensor in gguf.unsupported_tensors() {
                *bytes.entry(&tensor.ty).or_insert(0) += tensor.bytes;
            }
            bytes
                .into_iter()
                .max_by_key(|&(_, bytes)| bytes)
                .map_or("unknown", |(name, _)| name)
        }
    };
    known.to_owned()
}

/// The sampling defaults of the file, else the `usual` ones. A value out of range is ignored.
fn sampling(gguf: &Gguf, usual: Sampling) -> Sampling {
    let number = |parameter: Parameter| {
        let key = parameter.file_key?;
        let found = match gguf.get(key)? {
            Value::Float(_) => f64::from(gguf.f32(key)?),
            #[expect(
                clippy::cast_precision_loss,
                reason = "larger numbers are out of range"
            )]
            whole => whole.as_u64()? as f64,
        };
        let is_greedy = parameter == TEMPERATURE && (0.0..MIN_TEMPERATURE.into()).contains(&found);
        let found = if is_greedy { 0.0 } else { found };
        let allowed = parameter.allows(found);
        if !allowed {
            tracing::warn!(key, found, "sampling default out of range ignored");
        }
        allowed.then_some(found)
    };
    #[expect(clippy::cast_possible_truncation, reason = "read as an f32")]
    let real = |parameter| number(parameter).map(|found| found as f32);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number in range"
    )]
    let count = |parameter| number(parameter).map(|found| found as usize);
    let last_n = gguf.u32("general.sampling.penalty_last_n");
    Sampling {
        temperature: real(TEMPERATURE).unwrap_or(usual.temperature),
        top_k: count(TOP_K).unwrap_or(usual.top_k),
        top_p: real(TOP_P).unwrap_or(usual.top_p),
        min_p: real(MIN_P).unwrap_or(usual.min_p),
        repeat_penalty: real(REPEAT_PENALTY).unwrap_or(usual.repeat_penalty),
        repeat_last_n: last_n.map_or(usual.repeat_last_n, |tokens| tokens as usize),
        seed: None,
    }
}

/// SHA-256 over the header and the size of the file, or of all files: a collision cannot be constructed.
fn fingerprint(gguf: &Gguf) -> String {
    let size = (gguf.file_bytes() as u64).to_le_bytes();
    let mut hash = Sha256::new();
    for header in gguf.headers() {
        hash.update(header);
    }
    hash.update(size);
    hex(&hash.finalize())
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use inference::SAMPLING_PARAMETERS;
    use kernels::BlockType;

    use crate::gguf::write::{Field, TensorSpec, header};

    fn of(fields: &[(&str, Field)]) -> Sampling {
        let bytes = header(fields.iter().cloned(), &[]);
        sampling(
            &Gguf::from_bytes(bytes).expect("a header"),
            Sampling::default(),
        )
    }

    #[test]
    fn sampling_defaults_are_read_from_the_file() {
        let key = |name| format!("general.sampling.{name}");
        let keys = [
            "temp",
            "top_k",
            "top_p",
            "min_p",
            "penalty_repeat",
            "penalty_last_n",
        ]
        .map(key);
        let [temp, top_k, top_p, min_p, repeat, last_n] = keys.each_ref().map(String::as_str);
        assert_eq!(of(&[]), Sampling::default());
        let all = [
            (temp, Field::F32(0.25)),
            (top_k, Field::U32(20)),
            (top_p, Field::F32(0.5)),
            (min_p, Field::F32(0.125)),
            (repeat, Field::F32(1.5)),
            (last_n, Field::U32(8)),
        ];
        let expected = Sampling {
            temperature: 0.25,
            top_k: 20,
            top_p: 0.5,
            min_p: 0.125,
            repeat_penalty: 1.5,
            repeat_last_n: 8,
            seed: None,
        };
        assert_eq!(of(&all), expected);
        for zero in [Field::U32(0), Field::F32(1e-6)] {
            let greedy = of(&[(temp, zero)]);
            assert_eq!((greedy.temperature, greedy.top_p), (0.0, 0.95));
        }
    }

    #[test]
    fn a_file_takes_the_place_of_the_usual_sampling_value_by_value() {
        let usual = Sampling {
            temperature: 0.7,
            top_p: 0.8,
            top_k: 20,
            ..Sampling::default()
        };
        let bytes = header([("general.sampling.temp", Field::F32(0.25))], &[]);
        let found = sampling(&Gguf::from_bytes(bytes).expect("a header"), usual.clone());
        let expected = Sampling {
            temperature: 0.25,
            ..usual
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_file_has_the_ranges_of_the_table() {
        for parameter in SAMPLING_PARAMETERS {
            let Some(key) = parameter.file_key else {
                continue;
            };
            let usual = || of(&[]);
            #[expect(clippy::cast_possible_truncation, reason = "as a file has it")]
            let given = |value: f64| of(&[(key, Field::F32(value as f32))]);
            let middle = f64::midpoint(parameter.min, parameter.max);
            for inside in [parameter.min, middle, parameter.max] {
                assert!(parameter.allows(inside), "{key} {inside}");
            }
            // At least one allowed value differs from the default, and so does its result.
            let taken = [parameter.min, middle, parameter.max].map(given);
            assert!(taken.iter().any(|it| *it != usual()), "{key}");
            for outside in [parameter.min - 1.0, parameter.max + 1.0] {
                assert_eq!(given(outside), usual(), "{key} {outside}");
            }
        }
    }

    #[test]
    fn the_file_name_replaces_a_blank_name_and_most_bytes_a_missing_file_type() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let tiny = Gguf::open(&path.join("tests/fixtures/tiny-q4_k_m.gguf")).expect("the fixture");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("Some model.gguf");
        let fields = [("general.name", Field::String("  ".to_owned()))];
        std::fs::write(&file, header(fields, &[])).expect("written");
        let blank = Gguf::open(&file).expect("a header");
        assert_eq!(name(&blank), "Some model");
        assert_ne!(name(&tiny), "tiny-q4_k_m");
        assert_eq!(quantisation(&tiny), "Q4_K_M");
        let descriptions =
            [("a", BlockType::Q8_0, 1), ("b", BlockType::F16, 4)].map(|(name, ty, rows)| {
                TensorSpec {
                    name: name.to_owned(),
                    ty,
                    dims: vec![32, rows],
                    len: rows * ty.row_bytes(32).expect("whole blocks"),
                }
            });
        let mut image = header([], &descriptions);
        image.resize(image.len() + 4096, 0);
        let mixed = Gguf::from_bytes(image).expect("a file");
        assert_eq!(quantisation(&mixed), "F16");
    }

    #[test]
    fn sampling_defaults_out_of_range_are_ignored() {
        for (key, field) in [
            ("general.sampling.temp", Field::F32(f32::NAN)),
            ("general.sampling.temp", Field::F32(-1.0)),
            ("general.sampling.temp", Field::F32(1e9)),
            ("general.sampling.temp", Field::String("hot".to_owned())),
            ("general.sampling.top_k", Field::F32(0.5)),
            ("general.sampling.top_k", Field::U32(200_001)),
            ("general.sampling.top_p", Field::F32(0.0)),
            ("general.sampling.top_p", Field::F32(1.5)),
            ("general.sampling.min_p", Field::F32(1.5)),
            ("general.sampling.penalty_repeat", Field::F32(f32::INFINITY)),
        ] {
            assert_eq!(
                of(&[(key, field.clone())]),
                Sampling::default(),
                "{key} {field:?}"
            );
        }
    }
}

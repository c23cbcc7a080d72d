//! `config.json`: the model's dimensions.

use std::f64::consts::PI;
use std::path::Path;

use engine::gguf::write::Field;
use engine::model::architecture::{ARCHITECTURES, Architecture, LLAMA, SMOLLM3};
use serde_json::Value;

use super::json::{JsonFile, number};
use crate::error::QuantizeError;

/// The `rope_type` of Llama 3.1 and later.
const LLAMA_3_SCALING: &str = "llama3";
/// Flags of variants that the engine does not run.
const VARIANTS: [&str; 3] = ["attention_bias", "mlp_bias", "use_sliding_window"];

/// A checked `config.json`.
pub(super) struct ConfigJson {
    pub(super) file: JsonFile,
    pub(super) architecture: &'static Architecture,
}

impl ConfigJson {
    pub(super) fn read(folder: &Path) -> Result<ConfigJson, QuantizeError> {
        let file = JsonFile::read(&folder.join("config.json"))?;
        let model_type = file.get("model_type").and_then(Value::as_str);
        let model_type = model_type.unwrap_or("(none)");
        // transformers has the names of GGUF.
        let Some(architecture) = Architecture::named(model_type) else {
            let found = engine::gguf::quote(model_type);
            let known = ARCHITECTURES.map(|it| format!("`{}`", it.name)).join(", ");
            return Err(file.fail("model_type", format!("is `{found}`; {known} are supported")));
        };
        if file.get("quantization_config").is_some() {
            return Err(file.fail(
                "quantization_config",
                "says that the weights are quantised already",
            ));
        }
        for key in VARIANTS {
            if file.flag(key, false)? {
                return Err(file.fail(key, "is set; such models are not supported"));
            }
        }
        match file.get("hidden_act").map(|value| (value, value.as_str())) {
            None | Some((_, Some("silu"))) => {}
            Some((value, _)) => {
                return Err(file.fail("hidden_act", format!("is {value}; \"silu\" is supported")));
            }
        }
        let config = ConfigJson { file, architecture };
        if architecture == &SMOLLM3 {
            config.check_rotated_layers()?;
        }
        Ok(config)
    }

    /// Checks that every fourth block has no rotary embedding: the engine assumes it, and no key of GGUF says it.
    fn check_rotated_layers(&self) -> Result<(), QuantizeError> {
        const LIST: &str = "no_rope_layers";
        const INTERVAL: &str = "no_rope_layer_interval";
        let rotates = |layer: usize| u64::from(!(layer + 1).is_multiple_of(4));
        let Some(list) = self.file.get(LIST) else {
            return match self.file.optional_count(INTERVAL)? {
                None | Some(4) => Ok(()),
                Some(interval) => Err(self
                    .file
                    .fail(INTERVAL, format!("is {interval}; 4 is supported"))),
            };
        };
        let layers = self.file.count("num_hidden_layers")? as usize;
        let list = list
            .as_array()
            .ok_or_else(|| self.file.fail(LIST, "is not a list"))?;
        let as_expected = (0..layers).all(|layer| {
            let flag = list.get(layer);
            flag.and_then(|flag| flag.as_u64().or(flag.as_bool().map(u64::from)))
                == Some(rotates(layer))
        });
        if as_expected && list.len() == layers {
            return Ok(());
        }
        let problem = format!("is not 0 for every fourth of {layers} blocks and 1 for the others");
        Err(self.file.fail(LIST, problem))
    }

    /// Returns whether the head is the embedding, by default as in transformers.
    pub(super) fn ties_embeddings(&self) -> Result<bool, QuantizeError> {
        let default = self.architecture == &SMOLLM3;
        self.file.flag("tie_word_embeddings", default)
    }

    /// Returns the size of the embedding table.
    pub(super) fn vocab(&self) -> Result<usize, QuantizeError> {
        Ok(self.file.count("vocab_size")? as usize)
    }

    /// Returns the metadata of the architecture.
    pub(super) fn fields(&self) -> Result<Vec<(String, Field)>, QuantizeError> {
        let file = &self.file;
        let key = |key: &str| format!("{}.{key}", self.architecture.name);
        let count = |gguf: &str, json: &str| Ok((key(gguf), Field::U32(file.count(json)?)));
        let heads = file.count("num_attention_heads")?;
        let mut fields = vec![
            count("block_count", "num_hidden_layers")?,
            count("context_length", "max_position_embeddings")?,
            count("embedding_length", "hidden_size")?,
            count("feed_forward_length", "intermediate_size")?,
            (key("attention.head_count"), Field::U32(heads)),
        ];
        if let Some(kv_heads) = file.optional_count("num_key_value_heads")? {
            fields.push((key("attention.head_count_kv"), Field::U32(kv_heads)));
        }
        fields.extend(self.rope()?);
        let eps = Field::F32(file.number("rms_norm_eps")?);
        fields.push((key("attention.layer_norm_rms_epsilon"), eps));
        let head_dim = file.optional_count("head_dim")?;
        if let Some(head_dim) = head_dim {
            fields.push((key("attention.key_length"), Field::U32(head_dim)));
            fields.push((key("attention.value_length"), Field::U32(head_dim)));
        }
        fields.push(count("vocab_size", "vocab_size")?);
        let rotary = match head_dim {
            Some(head_dim) => head_dim,
            None => (file.count("hidden_size")?)
                .checked_div(heads)
                .ok_or_else(|| file.fail("num_attention_heads", "is 0"))?,
        };
        fields.push((key("rope.dimension_count"), Field::U32(rotary)));
        Ok(fields)
    }

    /// Reads the rotary embedding.
    fn rope(&self) -> Result<Vec<(String, Field)>, QuantizeError> {
        let file = &self.file;
        let (name, scaling) = self.rope_scaling();
        let get = |key: &str| scaling.get(key).filter(|value| !value.is_null());
        let mut fields = Vec::new();
        let prefix = self.architecture.name;
        let mut add = |key: &str, field| fields.push((format!("{prefix}.rope.{key}"), field));
        let theta = self.theta()?;
        if file
            .get("partial_rotary_factor")
            .or_else(|| get("partial_rotary_factor"))
            .is_some_and(|part| part.as_f64() != Some(1.0))
        {
            return Err(file.fail(
                "partial_rotary_factor",
                "is not 1; such models are not supported",
            ));
        }
        match self.rope_type() {
            "default" => {}
            // Its factors are a tensor.
            LLAMA_3_SCALING if self.architecture == &LLAMA => {}
            kind @ ("linear" | "yarn") => {
                let factor = get("factor").and_then(number);
                let factor = factor.ok_or_else(|| {
                    file.fail(&format!("{name}.factor"), "is missing or not a number")
                })?;
                add("scaling.type", Field::String(kind.to_owned()));
                add("scaling.factor", Field::F32(factor));
                if kind == "yarn" {
                    let original = "original_max_position_embeddings";
                    let context = get(original)
                        .or_else(|| file.get(original))
                        .and_then(Value::as_u64);
                    let context = context.and_then(|context| u32::try_from(context).ok());
                    let problem = "is missing or not a whole number";
                    let context =
                        context.ok_or_else(|| file.fail(&format!("{name}.{original}"), problem))?;
                    add("scaling.original_context_length", Field::U32(context));
                    for (json, gguf) in [
                        ("extrapolation_factor", "scaling.yarn_ext_factor"),
                        ("attention_factor", "scaling.yarn_attn_factor"),
                        ("beta_fast", "scaling.yarn_beta_fast"),
                        ("beta_slow", "scaling.yarn_beta_slow"),
                    ] {
                        if let Some(value) = get(json).and_then(number) {
                            add(gguf, Field::F32(value));
                        }
                    }
                }
            }
            other => {
                let own = if self.architecture == &LLAMA {
                    "`linear`, `yarn` and `llama3`"
                } else {
                    "`linear` and `yarn`"
                };
                let problem = format!("is `{}`; {own} are supported", engine::gguf::quote(other));
                return Err(file.fail(&format!("{name}.rope_type"), problem));
            }
        }
        add("freq_base", Field::F32(theta));
        Ok(fields)
    }

    /// Returns `rope_parameters` of newer files, else `rope_scaling`, with its name.
    fn rope_scaling(&self) -> (&'static str, &Value) {
        ["rope_parameters", "rope_scaling"]
            .into_iter()
            .find_map(|name| Some((name, self.file.get(name)?)))
            .unwrap_or(("rope_scaling", &Value::Null))
    }

    fn rope_type(&self) -> &str {
        let (_, scaling) = self.rope_scaling();
        let kind = ["rope_type", "type"]
            .into_iter()
            .find_map(|key| scaling.get(key)?.as_str());
        kind.unwrap_or("default")
    }

    /// Returns the base of the rotary frequencies: beside the scaling, or in it.
    fn theta(&self) -> Result<f32, QuantizeError> {
        let (_, scaling) = self.rope_scaling();
        let theta = self.file.get("rope_theta");
        let theta = theta.or_else(|| scaling.get("rope_theta").filter(|it| !it.is_null()));
        let theta = theta.ok_or_else(|| self.file.fail("rope_theta", "is missing"))?;
        number(theta).ok_or_else(|| self.file.fail("rope_theta", "is not a number"))
    }

    /// Returns the divisors of the `rotary / 2` frequencies that Llama 3.1 and later have: 1 for short wavelengths, the
    /// factor for long ones, and what is smooth between. Source: transformers, `_compute_llama3_parameters`.
    pub(super) fn frequency_divisors(
        &self,
        rotary: usize,
    ) -> Result<Option<Vec<f32>>, QuantizeError> {
        if self.architecture != &LLAMA || self.rope_type() != LLAMA_3_SCALING {
            return Ok(None);
        }
        let (name, scaling) = self.rope_scaling();
        let number = |key: &str| {
            let value = scaling.get(key).and_then(Value::as_f64);
            let value = value.filter(|value| *value > 0.0);
            let problem = "is missing or not a positive number";
            value.ok_or_else(|| self.file.fail(&format!("{name}.{key}"), problem))
        };
        let (factor, context) = (
            number("factor")?,
            number("original_max_position_embeddings")?,
        );
        let (low, high) = (number("low_freq_factor")?, number("high_freq_factor")?);
        if high <= low {
            let key = format!("{name}.high_freq_factor");
            return Err(self.file.fail(&key, "is not above low_freq_factor"));
        }
        let theta = f64::from(self.theta()?);
        let divisor = |pair: usize| {
            let exponent = 2.0 * pair as f64 / rotary as f64;
            let turns = context / (2.0 * PI * theta.powf(exponent));
            let smooth = ((turns - low) / (high - low)).clamp(0.0, 1.0);
            1.0 / ((1.0 - smooth) / factor + smooth)
        };
        #[expect(clippy::cast_possible_truncation, reason = "GGUF stores these as f32")]
        let divisors = (0..rotary / 2).map(|pair| divisor(pair) as f32);
        Ok(Some(divisors.collect()))
    }
}

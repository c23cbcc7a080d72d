//! `config.json`: the model's dimensions.

use std::path::Path;

use engine::gguf::write::Field;
use serde_json::Value;

use super::json::{JsonFile, number};
use crate::error::QuantizeError;

/// Flags of variants that the engine does not run.
const VARIANTS: [&str; 3] = ["attention_bias", "mlp_bias", "use_sliding_window"];

/// A checked `config.json`.
pub(super) struct ConfigJson {
    pub(super) file: JsonFile,
}

impl ConfigJson {
    pub(super) fn read(folder: &Path) -> Result<ConfigJson, QuantizeError> {
        let file = JsonFile::read(&folder.join("config.json"))?;
        let model_type = file.get("model_type").and_then(Value::as_str);
        if model_type != Some("smollm3") {
            let found = model_type.unwrap_or("(none)");
            let problem = format!(
                "is `{}`; `smollm3` is supported",
                engine::gguf::quote(found)
            );
            return Err(file.fail("model_type", problem));
        }
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
        let config = ConfigJson { file };
        config.check_rotated_layers()?;
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

    /// Returns whether the head is the embedding; transformers' default for SmolLM3.
    pub(super) fn ties_embeddings(&self) -> Result<bool, QuantizeError> {
        self.file.flag("tie_word_embeddings", true)
    }

    /// Returns the size of the embedding table.
    pub(super) fn vocab(&self) -> Result<usize, QuantizeError> {
        Ok(self.file.count("vocab_size")? as usize)
    }

    /// Returns the `smollm3.*` metadata.
    pub(super) fn fields(&self) -> Result<Vec<(String, Field)>, QuantizeError> {
        let file = &self.file;
        let key = |key: &str| format!("smollm3.{key}");
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

    /// Reads the rotary embedding: `rope_theta` beside `rope_scaling`, or both in `rope_parameters` in newer files.
    fn rope(&self) -> Result<Vec<(String, Field)>, QuantizeError> {
        let file = &self.file;
        let (name, scaling) = ["rope_parameters", "rope_scaling"]
            .into_iter()
            .find_map(|name| Some((name, file.get(name)?)))
            .unwrap_or(("rope_scaling", &Value::Null));
        let get = |key: &str| scaling.get(key).filter(|value| !value.is_null());
        let mut fields = Vec::new();
        let mut add = |key: &str, field| fields.push((format!("smollm3.rope.{key}"), field));
        let theta = file.get("rope_theta").or_else(|| get("rope_theta"));
        let theta = theta.ok_or_else(|| file.fail("rope_theta", "is missing"))?;
        let theta = number(theta).ok_or_else(|| file.fail("rope_theta", "is not a number"))?;
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
        let kind = get("rope_type")
            .or_else(|| get("type"))
            .and_then(Value::as_str);
        match kind.unwrap_or("default") {
            "default" => {}
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
                let problem = format!(
                    "is `{}`; `linear` and `yarn` are supported",
                    engine::gguf::quote(other)
                );
                return Err(file.fail(&format!("{name}.rope_type"), problem));
            }
        }
        add("freq_base", Field::F32(theta));
        Ok(fields)
    }
}

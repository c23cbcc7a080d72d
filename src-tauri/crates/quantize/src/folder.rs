//! A Hugging Face folder as input: `config.json`, `tokenizer.json` and safetensors, as llama.cpp's
//! `convert_hf_to_gguf.py` reads them for SmolLM3.

mod card;
mod config_json;
mod json;
mod name;
mod shards;
mod template;
mod vocabulary;

use std::path::Path;

use crate::error::QuantizeError;
use crate::model::{FloatModel, FloatTensor, ModelTensor, config_of, head, model_tensors};
use config_json::ConfigJson;
use name::text;
use shards::Shards;

/// Buffers that some exporters store beside the weights; computed, not learnt.
const COMPUTED: &str = ".rotary_emb.inv_freq";

/// Opens the folder and checks that its tensors are those of its `config.json`.
pub(crate) fn open(path: &Path) -> Result<FloatModel, QuantizeError> {
    let config_json = ConfigJson::read(path)?;
    let mut fields = vec![
        text("general.architecture", "smollm3"),
        text("general.type", "model"),
    ];
    let mut shape = config_json.fields()?;
    let vocabulary = vocabulary::fields(path, &config_json)?;
    // The embedding's size follows from the list of tokens, so both are needed for the dimensions.
    let described: Vec<_> = [&fields[..], &shape, &vocabulary].concat();
    let config = config_of(path, &described)?;

    let shards = Shards::open(path)?;
    let mut expected = model_tensors(&config);
    if !config_json.ties_embeddings()? {
        expected.push(head(&config));
    }
    let tensors = expected.iter().map(|tensor| take(path, &shards, tensor));
    let tensors: Vec<FloatTensor> = tensors.collect::<Result<_, _>>()?;
    let known = |name: &str| {
        name.ends_with(COMPUTED)
            || name == "lm_head.weight"
            || expected.iter().any(|tensor| tensor.hf == name)
    };
    if let Some((name, shard)) = shards.names().find(|(name, _)| !known(name)) {
        let problem = "SmolLM3 has no such tensor, so the model would not be what was trained";
        return Err(QuantizeError::tensor(shard, name, problem));
    }
    let parameters = tensors
        .iter()
        .map(|tensor| (tensor.rows() * tensor.cols()) as u64);
    fields.extend(name::fields(path, parameters.sum()));
    fields.extend(card::fields(path));
    fields.extend(template::sampling(path)?);
    fields.append(&mut shape);
    fields.extend(vocabulary);
    fields.extend(template::fields(path)?);
    Ok(FloatModel {
        path: path.to_owned(),
        fields,
        config,
        tensors,
        files: shards.files,
    })
}

/// Takes one tensor of the model from the shards and checks it.
fn take(path: &Path, shards: &Shards, tensor: &ModelTensor) -> Result<FloatTensor, QuantizeError> {
    let missing = || QuantizeError::tensor(path, &tensor.hf, "it is missing");
    let stored = shards.get(&tensor.hf).ok_or_else(missing)?;
    let is_norm = tensor.rows == 1 && tensor.hf.ends_with("norm.weight");
    let wanted = if is_norm {
        vec![tensor.cols]
    } else {
        vec![tensor.rows, tensor.cols]
    };
    if stored.shape != wanted {
        let problem = format!(
            "its shape is {:?} where config.json makes it {wanted:?}",
            stored.shape
        );
        let file = &shards.files[stored.file].path;
        return Err(QuantizeError::tensor(file, &tensor.hf, problem));
    }
    Ok(FloatTensor {
        name: tensor.gguf.clone(),
        source_name: tensor.hf.clone(),
        ty: stored.ty,
        dims: wanted.into_iter().rev().collect(),
        file: stored.file,
        start: stored.start,
        order: tensor.order,
    })
}

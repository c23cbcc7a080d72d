//! A Hugging Face folder as input: `config.json`, `tokenizer.json` and safetensors, as llama.cpp's
//! `convert_hf_to_gguf.py` reads them for the architectures that the engine runs.

mod card;
mod config_json;
mod json;
mod name;
mod shards;
mod template;
mod vocabulary;

use std::path::Path;

use kernels::BlockType;

use crate::error::QuantizeError;
use crate::model::{
    FloatModel, FloatTensor, ModelTensor, RowOrder, config_of, head, model_tensors,
};
use config_json::ConfigJson;
use name::text;
use shards::Shards;

/// Buffers that some exporters store beside the weights; computed, not learnt.
const COMPUTED: &str = ".rotary_emb.inv_freq";

/// Opens the folder and checks that its tensors are those of its `config.json`.
pub(crate) fn open(path: &Path) -> Result<FloatModel, QuantizeError> {
    let config_json = ConfigJson::read(path)?;
    let mut fields = vec![
        text("general.architecture", config_json.architecture.name),
        text("general.type", "model"),
    ];
    let mut shape = config_json.fields()?;
    let vocabulary = vocabulary::fields(path, &config_json)?;
    // The embedding's size follows from the list of tokens, so both are needed for the dimensions.
    let described: Vec<_> = [&fields[..], &shape, &vocabulary].concat();
    let mut config = config_of(path, &described)?;

    let shards = Shards::open(path)?;
    let mut expected = model_tensors(&config);
    if !config_json.ties_embeddings()? {
        expected.push(head(&config));
    }
    let tensors = expected.iter().map(|tensor| take(path, &shards, tensor));
    let mut tensors: Vec<FloatTensor> = tensors.collect::<Result<_, _>>()?;
    if let Some(divisors) = config_json.frequency_divisors(config.shape.rotary)? {
        config.rope.divisors.clone_from(&divisors);
        tensors.insert(0, computed("rope_freqs.weight", divisors));
    }
    let known = |name: &str| {
        name.ends_with(COMPUTED)
            || name == "lm_head.weight"
            || expected.iter().any(|tensor| tensor.hf == name)
    };
    if let Some((name, shard)) = shards.names().find(|(name, _)| !known(name)) {
        let problem = format!(
            "`{}` has no such tensor, so the model would not be what was trained",
            config.architecture.name
        );
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
    let is_vector = tensor.hf.ends_with("norm.weight") || tensor.hf.ends_with(".bias");
    let wanted = if is_vector {
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
        computed: None,
        order: tensor.order,
    })
}

/// Makes a vector of values that no file holds.
fn computed(name: &str, values: Vec<f32>) -> FloatTensor {
    FloatTensor {
        name: name.to_owned(),
        source_name: name.to_owned(),
        ty: BlockType::F32,
        dims: vec![values.len()],
        file: 0,
        start: 0,
        computed: Some(values),
        order: RowOrder::Same,
    }
}

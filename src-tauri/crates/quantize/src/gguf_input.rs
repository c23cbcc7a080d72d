//! A GGUF file in floats as input.

use std::fs::File;
use std::path::Path;

use engine::gguf::write::Field;
use engine::{Config, Gguf};
use kernels::BlockType;

use crate::error::QuantizeError;
use crate::model::{
    FloatModel, FloatTensor, InputFile, ModelTensor, RowOrder, head, model_tensors,
};

/// Written by the output itself, or without meaning for the output.
const LEFT_OUT: [&str; 6] = [
    "general.file_type",
    "general.quantization_version",
    "general.alignment",
    "split.no",
    "split.count",
    "split.tensors.count",
];

/// Opens the file and checks that its tensors are those of its metadata, in floats.
pub(crate) fn open(path: &Path) -> Result<FloatModel, QuantizeError> {
    let gguf = Gguf::open(path).map_err(|source| QuantizeError::Gguf {
        path: path.to_owned(),
        source,
    })?;
    if gguf.u32("split.count").is_some_and(|count| count > 1) {
        let problem = "it is one part of several; only a whole model in one file is read";
        return Err(QuantizeError::input(path, problem));
    }
    let config = Config::from_gguf(&gguf).map_err(|source| QuantizeError::Config {
        path: path.to_owned(),
        source,
    })?;
    let expected = model_tensors(&config);
    let head = head(&config);
    let required = expected.iter().map(|tensor| (tensor, true));
    for (tensor, required) in required.chain([(&head, false)]) {
        check(path, &gguf, tensor, required)?;
    }
    let tensors = gguf.tensors().iter().map(|info| {
        if !matches!(info.ty, BlockType::F32 | BlockType::F16 | BlockType::BF16) {
            let problem = format!(
                "it is stored as {}; only F32, F16 and BF16 are quantised",
                info.ty.name()
            );
            return Err(QuantizeError::tensor(path, &info.name, problem));
        }
        Ok(FloatTensor {
            name: info.name.clone(),
            source_name: info.name.clone(),
            ty: info.ty,
            dims: info.dims.clone(),
            file: 0,
            start: info.data.start as u64,
            order: RowOrder::Same,
        })
    });
    let tensors = tensors.collect::<Result<_, _>>()?;
    let fields = gguf.stored_fields().into_iter();
    let fields = fields.filter(|(key, _)| !LEFT_OUT.contains(key));
    let fields = fields.map(|(key, bytes)| (key.to_owned(), Field::Stored(bytes.to_vec())));
    let file = File::open(path)
        .map_err(|error| QuantizeError::input(path, format!("cannot be read: {error}")))?;
    Ok(FloatModel {
        path: path.to_owned(),
        fields: fields.collect(),
        config,
        tensors,
        files: vec![InputFile {
            path: path.to_owned(),
            file,
        }],
    })
}

fn check(
    path: &Path,
    gguf: &Gguf,
    tensor: &ModelTensor,
    required: bool,
) -> Result<(), QuantizeError> {
    let problem = match gguf.tensor_info(&tensor.gguf) {
        None if required => "it is missing".to_owned(),
        Some(info) if (info.rows(), info.cols()) != (tensor.rows, tensor.cols) => format!(
            "its shape is {} × {} where the metadata require {} × {}",
            info.rows(),
            info.cols(),
            tensor.rows,
            tensor.cols
        ),
        _ => return Ok(()),
    };
    Err(QuantizeError::tensor(path, &tensor.gguf, problem))
}

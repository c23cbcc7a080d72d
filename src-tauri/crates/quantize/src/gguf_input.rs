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

/// Keys that the output writes itself, or that have no meaning for it.
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
    let not_floats = |name: &str, ty: &str| {
        let problem = format!("it is stored as {ty}; only F32, F16 and BF16 are quantised");
        QuantizeError::tensor(path, name, problem)
    };
    if let Some(tensor) = gguf.unsupported_tensors().first() {
        return Err(not_floats(&tensor.name, &tensor.ty));
    }
    let tensors = gguf.tensors().iter().map(|info| {
        if !matches!(info.ty, BlockType::F32 | BlockType::F16 | BlockType::BF16) {
            return Err(not_floats(&info.name, info.ty.name()));
        }
        Ok(FloatTensor {
            name: info.name.clone(),
            source_name: info.name.clone(),
            ty: info.ty,
            dims: info.dims.clone(),
            file: info.part,
            start: info.data.start as u64,
            computed: None,
            order: RowOrder::Same,
        })
    });
    let tensors = tensors.collect::<Result<_, _>>()?;
    let fields = gguf.stored_fields().into_iter();
    let fields = fields.filter(|(key, _)| !LEFT_OUT.contains(key));
    let fields = fields.map(|(key, bytes)| (key.to_owned(), Field::Stored(bytes.to_vec())));
    let files = gguf.files().map(|path| {
        let file = File::open(path);
        let file =
            file.map_err(|error| QuantizeError::input(path, format!("cannot be read: {error}")))?;
        Ok(InputFile {
            path: path.to_owned(),
            file,
        })
    });
    Ok(FloatModel {
        path: path.to_owned(),
        fields: fields.collect(),
        config,
        tensors,
        files: files.collect::<Result<_, QuantizeError>>()?,
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

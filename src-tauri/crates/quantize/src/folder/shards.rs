//! The safetensors files of a folder: one, or several that an index names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kernels::{BlockType, read_exact_at};
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::Deserialize;

use super::json;
use crate::error::QuantizeError;
use crate::model::{InputFile, open_regular};

const INDEX: &str = "model.safetensors.index.json";
/// The 326 tensors of SmolLM3-3B take 40 kB. In memory a tensor takes ten times the bytes of its description.
const LONGEST_HEADER: u64 = 4 << 20;
/// Above the tensors of any model, in all files together.
const MOST_TENSORS: usize = 1 << 16;

/// The tensors of all files, by name.
pub(super) struct Shards {
    pub(super) files: Vec<InputFile>,
    tensors: BTreeMap<String, StoredTensor>,
}

/// Location of a tensor.
pub(super) struct StoredTensor {
    pub(super) file: usize,
    pub(super) start: u64,
    pub(super) ty: BlockType,
    /// Slowest first, as safetensors writes it.
    pub(super) shape: Vec<usize>,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Shards {
    pub(super) fn open(folder: &Path) -> Result<Shards, QuantizeError> {
        let index_path = folder.join(INDEX);
        let index: Option<Index> = match index_path.try_exists() {
            Ok(false) => None,
            _ => Some(json::read(&index_path)?),
        };
        let names = match &index {
            Some(index) => of_index(&index_path, index)?,
            None => of_folder(folder)?,
        };
        let mut shards = Shards {
            files: Vec::new(),
            tensors: BTreeMap::new(),
        };
        for name in &names {
            let listed = |tensor: &str| {
                let index = index.as_ref();
                index.is_none_or(|index| index.weight_map.get(tensor) == Some(name))
            };
            shards.add(folder.join(name), listed)?;
        }
        let unfound = index.iter().flat_map(|index| &index.weight_map);
        let mut unfound = unfound.filter(|(tensor, _)| !shards.tensors.contains_key(*tensor));
        if let Some((tensor, name)) = unfound.next() {
            let problem = format!("it is not in this file, where {INDEX} has it");
            return Err(QuantizeError::tensor(&folder.join(name), tensor, problem));
        }
        Ok(shards)
    }

    pub(super) fn get(&self, name: &str) -> Option<&StoredTensor> {
        self.tensors.get(name)
    }

    /// Returns every tensor's name, with its file.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &Path)> {
        let file = |tensor: &StoredTensor| &*self.files[tensor.file].path;
        self.tensors
            .iter()
            .map(move |(name, tensor)| (&**name, file(tensor)))
    }

    /// Reads one file's header; takes the tensors that are `listed` for it.
    fn add(&mut self, path: PathBuf, listed: impl Fn(&str) -> bool) -> Result<(), QuantizeError> {
        let (file, len) = open_regular(&path, u64::MAX)?;
        let fail = |problem: String| QuantizeError::input(&path, problem);
        let read = |start: u64, bytes: &mut [u8]| {
            read_exact_at(&file, start, bytes)
                .map_err(|error| fail(format!("cannot be read: {error}")))
        };
        let mut length = [0; 8];
        if len < 8 {
            return Err(fail("this is not a safetensors file".to_owned()));
        }
        read(0, &mut length)?;
        let header_len = u64::from_le_bytes(length);
        if header_len > LONGEST_HEADER || header_len > len - 8 {
            let problem = format!(
                "this is not a safetensors file of such a model: its header would have {header_len} bytes"
            );
            return Err(fail(problem));
        }
        let mut header = vec![0; usize::try_from(header_len).unwrap_or(usize::MAX)];
        read(8, &mut header)?;
        // Deserialising checks that the tensors are contiguous, and that each is as long as its shape.
        let header: Metadata = serde_json::from_slice(&header)
            .map_err(|error| fail(format!("damaged header: {error}")))?;
        let data = len - 8 - header_len;
        if header.data_len() as u64 != data {
            let problem = format!(
                "its header describes {} bytes of tensors, and {data} are there",
                header.data_len()
            );
            return Err(fail(problem));
        }
        for (name, info) in header.tensors() {
            if !listed(&name) {
                continue;
            }
            let ty = match info.dtype {
                Dtype::F32 => BlockType::F32,
                Dtype::F16 => BlockType::F16,
                Dtype::BF16 => BlockType::BF16,
                other => {
                    let problem =
                        format!("it is stored as {other}; only F32, F16 and BF16 are quantised");
                    return Err(QuantizeError::tensor(&path, &name, problem));
                }
            };
            let tensor = StoredTensor {
                file: self.files.len(),
                start: 8 + header_len + info.data_offsets.0 as u64,
                ty,
                shape: info.shape.clone(),
            };
            if self.tensors.len() == MOST_TENSORS {
                let problem = format!("there are more than {MOST_TENSORS} tensors");
                return Err(fail(problem));
            }
            if self.tensors.insert(name.clone(), tensor).is_some() {
                return Err(QuantizeError::tensor(
                    &path,
                    &name,
                    "it is in another file too",
                ));
            }
        }
        self.files.push(InputFile { path, file });
        Ok(())
    }
}

/// Returns the files that the index names, each once; they lie in the folder itself.
fn of_index(path: &Path, index: &Index) -> Result<Vec<String>, QuantizeError> {
    let mut names: Vec<String> = index.weight_map.values().cloned().collect();
    names.sort_unstable();
    names.dedup();
    let plain = |name: &String| {
        let mut parts = Path::new(name).components();
        matches!(parts.next(), Some(std::path::Component::Normal(_))) && parts.next().is_none()
    };
    if let Some(name) = names.iter().find(|name| !plain(name)) {
        let problem = format!(
            "names `{}`, which is not a file of this folder",
            engine::gguf::quote(name)
        );
        return Err(QuantizeError::key(path, "weight_map", problem));
    }
    if names.is_empty() {
        return Err(QuantizeError::key(path, "weight_map", "is empty"));
    }
    Ok(names)
}

/// Returns the files without an index: every `model*.safetensors`.
fn of_folder(folder: &Path) -> Result<Vec<String>, QuantizeError> {
    let fail =
        |error: std::io::Error| QuantizeError::input(folder, format!("cannot be read: {error}"));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("model") && name.ends_with(".safetensors") {
            names.push(name.into_owned());
        }
    }
    names.sort_unstable();
    if names.is_empty() {
        return Err(QuantizeError::input(
            folder,
            "no model*.safetensors is in this folder",
        ));
    }
    Ok(names)
}

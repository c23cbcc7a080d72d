//! Models in several files, as `gguf-split` of llama.cpp writes them: `NAME-00001-of-00003.gguf` and so on. The first
//! file has the metadata; each has tensors of its own and `split.no`, `split.count` and `split.tensors.count`. A model is
//! opened by any of its files: the others are found by their names, and have to match by their headers.

use std::io;
use std::path::{Path, PathBuf};

use super::error::{GgufError, quote};
use super::file_part::FilePart;
use super::value::Value;

const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// Above the parts of any model: SmolLM3-3B has 326 tensors. All parts are open at the same time.
const MAX_PARTS: usize = 500;

/// Returns the files of the model that the file at `path` belongs to, in order: all present parts of a split model,
/// otherwise the file alone.
pub fn model_files(path: &Path) -> Vec<PathBuf> {
    let alone = || vec![path.to_owned()];
    let Some(name) = PartName::of(path) else {
        return alone();
    };
    match FilePart::open(path) {
        Ok(part) if SplitKeys::of(&part).is_some_and(|split| split.is_named(&name)) => {
            let all = (1..=name.count).map(|number| name.path(path, number));
            all.filter(|part| part.is_file()).collect()
        }
        _ => alone(),
    }
}

/// The file name of a model without its extension, and without the number of its part.
pub fn file_stem(path: &Path) -> Option<&str> {
    let stem = path.file_stem()?.to_str()?;
    Some(match PartName::of(path) {
        Some(name) => &stem[..name.start.len()],
        None => stem,
    })
}

/// Opens all parts of the model that `given`, the file at `path`, belongs to; returns `given` alone for a whole model.
pub(super) fn open_all(path: &Path, given: FilePart) -> Result<Vec<FilePart>, GgufError> {
    let Some(split) = SplitKeys::of(&given) else {
        return Ok(vec![given]);
    };
    if given.has_another_behind()? {
        return Err(GgufError::Joined);
    }
    if split.count > MAX_PARTS {
        let problem = format!("{} parts are more than any model has", split.count);
        return Err(GgufError::Header(problem));
    }
    let name = PartName::of(path).filter(|name| split.is_named(name));
    let name = name.ok_or(GgufError::PartName {
        number: split.number + 1,
        count: split.count,
    })?;
    let mut given = Some(given);
    let mut parts: Vec<FilePart> = Vec::new();
    for number in 1..=name.count {
        let path = name.path(path, number);
        let file = quote(&path.file_name().unwrap_or_default().to_string_lossy());
        let part = match given.take_if(|_| number == name.number) {
            Some(part) => part,
            None => FilePart::open(&path).map_err(|error| match error {
                GgufError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                    GgufError::MissingPart { file: file.clone() }
                }
                error => GgufError::Part {
                    file: file.clone(),
                    problem: error.to_string(),
                },
            })?,
        };
        let expected = SplitKeys {
            number: number - 1,
            ..split
        };
        let is_foreign = SplitKeys::of(&part) != Some(expected)
            || (parts.first()).is_some_and(|first| first.contradicts(&part, NUMBER));
        if is_foreign {
            return Err(GgufError::ForeignPart { file });
        }
        parts.push(part);
    }
    let tensors: usize = parts.iter().map(FilePart::tensor_count).sum();
    if split.tensors.is_some_and(|declared| declared != tensors) {
        return Err(GgufError::PartTensors {
            declared: split.tensors.unwrap_or(0),
            found: tensors,
        });
    }
    Ok(parts)
}

/// The place of a file in its model, by its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SplitKeys {
    /// Number of the part, from 0.
    number: usize,
    count: usize,
    /// Tensors of all parts.
    tensors: Option<usize>,
}

impl SplitKeys {
    /// `None` for a whole model.
    fn of(part: &FilePart) -> Option<SplitKeys> {
        let number = |key| {
            let value = part.get(key).as_ref().and_then(Value::as_u64)?;
            usize::try_from(value).ok()
        };
        let count = number(COUNT).filter(|&count| count > 1)?;
        Some(SplitKeys {
            number: number(NUMBER).unwrap_or(0),
            count,
            tensors: number(TENSORS),
        })
    }

    fn is_named(&self, name: &PartName<'_>) -> bool {
        (self.number + 1, self.count) == (name.number, name.count)
    }
}

/// A file name that ends in `-00001-of-00003.gguf`.
struct PartName<'a> {
    start: &'a str,
    /// Number of the part, from 1.
    number: usize,
    count: usize,
    extension: &'a str,
}

impl PartName<'_> {
    fn of(path: &Path) -> Option<PartName<'_>> {
        let (stem, extension) = path.file_name()?.to_str()?.rsplit_once('.')?;
        let (rest, count) = stem.rsplit_once("-of-")?;
        let (start, number) = rest.rsplit_once('-')?;
        let five_digits = |text: &str| {
            let is_number = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        };
        let (number, count) = (five_digits(number)?, five_digits(count)?);
        let is_part = extension.eq_ignore_ascii_case("gguf") && (1..=count).contains(&number);
        is_part.then_some(PartName {
            start,
            number,
            count,
            extension,
        })
    }

    /// The path of a part beside the one at `path`.
    fn path(&self, path: &Path, number: usize) -> PathBuf {
        let PartName {
            start,
            count,
            extension,
            ..
        } = self;
        path.with_file_name(format!("{start}-{number:05}-of-{count:05}.{extension}"))
    }
}

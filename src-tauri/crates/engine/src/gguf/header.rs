//! The checked header: positions of every value and every tensor.

use std::collections::BTreeMap;
use std::ops::Range;

use kernels::BlockType;

use super::error::{GgufError, quote};
use super::value::{Reader, Value};

/// Above the entries of any model; bounds the tables of a hostile file.
const MAX_ENTRIES: usize = 1 << 16;
const DEFAULT_ALIGNMENT: usize = 32;
const ALIGNMENT: &str = "general.alignment";

/// GGUF's tensor info: name, type, dimensions and position of a tensor.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    /// Its name.
    pub name: String,
    /// How its values are stored.
    pub ty: BlockType,
    /// One to four dimensions, fastest first as GGUF writes them.
    pub dims: Vec<usize>,
    /// Range of its bytes in the file.
    pub data: Range<usize>,
}

impl TensorInfo {
    /// Values in a row.
    pub fn cols(&self) -> usize {
        self.dims[0]
    }

    /// Number of rows; 1 for a vector.
    pub fn rows(&self) -> usize {
        self.dims[1..].iter().product()
    }
}

pub(super) struct Header {
    pub(super) version: u32,
    /// Offset of each key's value (at its type).
    pub(super) fields: BTreeMap<String, usize>,
    pub(super) tensors: Vec<TensorInfo>,
    by_name: BTreeMap<String, usize>,
    /// Offset of the end of the tensor infos.
    pub(super) end: usize,
}

/// Why a header is not parsed.
pub(super) enum HeaderError {
    /// More bytes of the file are needed.
    Incomplete,
    /// It is damaged.
    Invalid(GgufError),
}

impl Header {
    /// The header of a file of `file_len` bytes that begins with `file`.
    pub(super) fn parse(file: &[u8], file_len: usize) -> Result<Header, HeaderError> {
        let mut reader = Reader::of_prefix(file, file_len);
        let header = Header::read(&mut reader, file, file_len);
        header.map_err(|error| {
            if reader.is_truncated() {
                HeaderError::Incomplete
            } else {
                HeaderError::Invalid(error)
            }
        })
    }

    fn read(reader: &mut Reader<'_>, file: &[u8], file_len: usize) -> Result<Header, GgufError> {
        if !file.starts_with(b"GGUF") {
            return Err(GgufError::NotGguf);
        }
        reader.u32().map_err(GgufError::Header)?;
        let version = reader.u32().map_err(GgufError::Header)?;
        if !matches!(version, 2 | 3) {
            return Err(GgufError::Version(version));
        }
        // Least bytes: a tensor has a name's length, a dimension count, one dimension, a type and an offset; a field has a
        // key's length, a type and at least one byte.
        let tensor_count = entries(reader, 32, "tensors")?;
        let field_count = entries(reader, 13, "metadata keys")?;
        let fields = fields(reader, field_count)?;
        let mut header = Header {
            version,
            fields,
            tensors: Vec::new(),
            by_name: BTreeMap::new(),
            end: 0,
        };
        let alignment = header.alignment(file)?;
        let unplaced_tensors = unplaced_tensors(reader, tensor_count)?;
        header.end = reader.at();
        for unplaced_tensor in unplaced_tensors {
            let tensor = unplaced_tensor.place(file_len, header.end, alignment)?;
            if header
                .by_name
                .insert(tensor.name.clone(), header.tensors.len())
                .is_some()
            {
                return Err(tensor_error(&tensor.name, "it is defined twice"));
            }
            header.tensors.push(tensor);
        }
        header.check_overlaps()?;
        Ok(header)
    }

    pub(super) fn value<'a>(&self, file: &'a [u8], key: &str) -> Option<Value<'a>> {
        let mut reader = Reader::new(&file[*self.fields.get(key)?..]);
        let ty = reader.ty().ok()?;
        reader.value(ty).ok()
    }

    /// Keys in the order of the file, each with the bytes of its value's type and of its value.
    pub(super) fn stored_fields<'a>(&'a self, file: &'a [u8]) -> Vec<(&'a str, &'a [u8])> {
        let stored = |start: usize| {
            let mut reader = Reader::new(&file[start..]);
            let ty = reader.ty().ok()?;
            reader.value(ty).ok()?;
            Some(&file[start..start + reader.at()])
        };
        let mut fields: Vec<(&str, usize)> = (self.fields.iter())
            .map(|(key, &start)| (key.as_str(), start))
            .collect();
        fields.sort_by_key(|&(_, start)| start);
        fields
            .into_iter()
            .filter_map(|(key, start)| Some((key, stored(start)?)))
            .collect()
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.by_name.get(name).map(|&index| &self.tensors[index])
    }

    fn alignment(&self, file: &[u8]) -> Result<usize, GgufError> {
        let Some(value) = self.value(file, ALIGNMENT) else {
            return Ok(DEFAULT_ALIGNMENT);
        };
        value
            .as_u64()
            .and_then(|alignment| usize::try_from(alignment).ok())
            .filter(|alignment| *alignment >= 8 && alignment.is_power_of_two())
            .ok_or_else(|| key_error(ALIGNMENT, "it is not a power of two of at least 8"))
    }

    /// Tensors without shared bytes cannot hold more than the file does.
    fn check_overlaps(&self) -> Result<(), GgufError> {
        let mut by_offset: Vec<&TensorInfo> = self.tensors.iter().collect();
        by_offset.sort_by_key(|tensor| tensor.data.start);
        for pair in by_offset.windows(2) {
            if pair[1].data.start < pair[0].data.end {
                return Err(tensor_error(
                    &pair[1].name,
                    format!("its data overlaps that of `{}`", quote(&pair[0].name)),
                ));
            }
        }
        Ok(())
    }
}

fn entries(reader: &mut Reader<'_>, min_bytes: usize, what: &str) -> Result<usize, GgufError> {
    let count = reader
        .count(min_bytes)
        .map_err(|problem| GgufError::Header(format!("{what}: {problem}")))?;
    if count > MAX_ENTRIES {
        return Err(GgufError::Header(format!(
            "{count} {what} are more than any model has"
        )));
    }
    Ok(count)
}

fn fields(reader: &mut Reader<'_>, count: usize) -> Result<BTreeMap<String, usize>, GgufError> {
    let mut fields = BTreeMap::new();
    for index in 0..count {
        let key = reader
            .string()
            .map_err(|problem| key_error(&format!("number {index}"), problem))?;
        let start = reader.at();
        let value = reader.ty().and_then(|ty| reader.value(ty));
        value.map_err(|problem| key_error(key, problem))?;
        if fields.insert(key.to_owned(), start).is_some() {
            return Err(key_error(key, "it is there twice"));
        }
    }
    Ok(fields)
}

/// A tensor info as written, before the start of the data is known.
struct UnplacedTensor {
    name: String,
    ty: BlockType,
    dims: Vec<usize>,
    /// Relative to the start of the data.
    offset: u64,
}

fn unplaced_tensors(
    reader: &mut Reader<'_>,
    count: usize,
) -> Result<Vec<UnplacedTensor>, GgufError> {
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        let name = reader
            .string()
            .map_err(|problem| tensor_error(&format!("number {index}"), problem))?;
        all.push(unplaced_tensor(reader, name).map_err(|problem| tensor_error(name, problem))?);
    }
    Ok(all)
}

fn unplaced_tensor(reader: &mut Reader<'_>, name: &str) -> Result<UnplacedTensor, String> {
    let dimensions = reader.u32()?;
    if !matches!(dimensions, 1..=4) {
        return Err(format!("{dimensions} dimensions"));
    }
    let mut dims = Vec::with_capacity(4);
    for _ in 0..dimensions {
        let dim = reader.u64()?;
        match usize::try_from(dim) {
            Ok(dim) if dim > 0 => dims.push(dim),
            _ => return Err(format!("a dimension of {dim}")),
        }
    }
    let id = reader.u32()?;
    let ty = BlockType::from_ggml(id)
        .ok_or_else(|| format!("its type {} is not supported", type_name(id)))?;
    Ok(UnplacedTensor {
        name: name.to_owned(),
        ty,
        dims,
        offset: reader.u64()?,
    })
}

impl UnplacedTensor {
    fn place(
        self,
        file_len: usize,
        header_end: usize,
        alignment: usize,
    ) -> Result<TensorInfo, GgufError> {
        let problem = |problem: String| tensor_error(&self.name, problem);
        let rows = self.dims[1..]
            .iter()
            .try_fold(1usize, |rows, &dim| rows.checked_mul(dim));
        let row_bytes = self.ty.row_bytes(self.dims[0]).ok_or_else(|| {
            problem(format!(
                "rows of {} values do not divide into {} blocks",
                self.dims[0],
                self.ty.name()
            ))
        })?;
        let len = rows
            .and_then(|rows| rows.checked_mul(row_bytes))
            .ok_or_else(|| problem(format!("dimensions {:?} are absurd", self.dims)))?;
        if !self.offset.is_multiple_of(alignment as u64) {
            return Err(problem(format!(
                "its offset {} is not aligned to {alignment}",
                self.offset
            )));
        }
        let start = header_end
            .checked_next_multiple_of(alignment)
            .and_then(|data| {
                let offset = usize::try_from(self.offset).ok()?;
                data.checked_add(offset)
            });
        match start.and_then(|start| Some(start..start.checked_add(len)?)) {
            Some(data) if data.end <= file_len => Ok(TensorInfo {
                name: self.name,
                ty: self.ty,
                dims: self.dims,
                data,
            }),
            _ => Err(problem(format!(
                "its data ({len} bytes) goes past the end of the file, which must be incomplete"
            ))),
        }
    }
}

/// Names of ggml types without kernels here.
fn type_name(id: u32) -> String {
    let name = match id {
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        _ => return id.to_string(),
    };
    name.to_owned()
}

fn key_error(key: &str, problem: impl Into<String>) -> GgufError {
    GgufError::Key {
        key: quote(key),
        problem: problem.into(),
    }
}

fn tensor_error(name: &str, problem: impl Into<String>) -> GgufError {
    GgufError::Tensor {
        name: quote(name),
        problem: problem.into(),
    }
}
